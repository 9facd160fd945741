#include "kube/impersonation.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace shirabe::kube {
namespace {

constexpr size_t kShownBytes = 64;
constexpr char kAccountPayload[] = "shirabe.dev/refused-account";
// Of a refusal by rights, whatever stands before and after it.
constexpr char kMayNotActAs[] = " cannot impersonate resource \"serviceaccounts\"";

Status Refused(const std::string& words, const ActingAs& acting) {
  Status status = absl::PermissionDeniedError(words);
  status.SetPayload(kAccountPayload, absl::Cord(acting.account));
  return status;
}

std::string RightOn(const Resource& resource) {
  return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
}

}  // namespace

Status CheckAccountName(const std::string& name) {
  if (IsDnsName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::CHexEscape(name.substr(0, kShownBytes)),
      "\" is not the name of a ServiceAccount: give lower case letters, digits, '-' and '.', as ",
      "shirabe-trials"));
}

StatusOr<std::string> ActingAs::User() const {
  RETURN_IF_ERROR(CheckAccountName(account));
  if (!IsDnsName(namespace_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(namespace_name.substr(0, kShownBytes)),
                     "\" is not the name of a namespace"));
  }
  return absl::StrCat("system:serviceaccount:", namespace_name, ":", account);
}

Status ExplainRefusal(const Status& refused, const WriteKind& write, const ActingAs& acting) {
  const auto user = acting.User();
  if (!absl::IsPermissionDenied(refused) || !user.ok()) return refused;
  const std::string words = Message(refused);
  const std::string who = acting.namespace_name + "/" + acting.account;
  if (absl::StrContains(words, kMayNotActAs)) {
    return Refused(
        absl::StrCat("the controller may not act as ServiceAccount ", who,
                     ": give its own account the verb `impersonate` on serviceaccounts named ",
                     acting.account, ", as deploy/kubernetes/components/trial-account does"),
        acting);
  }
  if (!absl::StrContains(words, absl::StrCat("User \"", *user, "\" cannot "))) return refused;
  const std::string right = RightOn(write.resource);
  return Refused(
      absl::StrCat(
          "ServiceAccount ", who, " may not ", write.verb, " ", right, " in namespace ",
          acting.namespace_name, ", and trials are made with its rights: bind a role with ",
          "that right to it, as kubectl -n ", acting.namespace_name, " create rolebinding ",
          acting.account, " --clusterrole=shirabe-trials --serviceaccount=", acting.namespace_name,
          ":", acting.account),
      acting);
}

bool IsAccountRefused(const Status& status) {
  return status.GetPayload(kAccountPayload).has_value();
}

}  // namespace shirabe::kube
