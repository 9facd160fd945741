#include "cmd/cluster_token.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/json_text.h"
#include "cmd/people.h"
#include "kube/errors.h"
#include "kube/url.h"

namespace shirabe::cmd {
namespace {

constexpr char kAdmin[] = "shirabe-admin";
constexpr char kAccount[] = "shirabe";
constexpr int kSeconds = 600;  // the least that a cluster grants
constexpr absl::Duration kUse = absl::Minutes(8);

bool IsMissing(const Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status);
}

}  // namespace

StatusOr<std::string> ClusterToken::Make(const std::string& ns, const std::string& account) {
  const std::string what = absl::StrCat("create a token of serviceaccount ", ns, "/", account);
  const kube::Json request = {
      {"apiVersion", "authentication.k8s.io/v1"},
      {"kind", "TokenRequest"},
      {"spec", {{"audiences", kube::Json::array({kAudience})}, {"expirationSeconds", kSeconds}}}};
  const kube::Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount"};
  auto reply = transport_->Call({.method = "POST",
                                 .target = kube::PathOf(accounts, ns, account, "token"),
                                 .content_type = "application/json",
                                 .body = kube::Dump(request)},
                                kube::Repeat::kSafe);
  RETURN_IF_ERROR(Prefix(what, reply.status()));
  if (reply->answer.status / 100 != 2) return kube::ToStatus(what, reply->answer);
  const kube::Json made = ParseServerJson(reply->answer.body);
  std::string token = kube::TextAt(made, {"status", "token"});
  if (token.empty()) return absl::UnavailableError(what + ": the server's answer has no token");
  return token;
}

Status ClusterToken::NoShirabe() const {
  return absl::UnavailableError(absl::Substitute(
      "there is no Shirabe in namespace $0 of this cluster (nor an account $1/$2): kubectl apply "
      "--server-side -k deploy/kubernetes installs one; for another place give --server "
      "kube://NAMESPACE/SERVICE, for another cluster --context",
      accounts_.system, accounts_.ns, kAccount));
}

Status ClusterToken::NoToken(const Status& why) const {
  return absl::PermissionDeniedError(absl::Substitute(
      "you may make no token for Shirabe in this cluster ($0). Ask an administrator of namespace "
      "$1 for: kubectl -n $1 create serviceaccount $2 && kubectl -n $1 create rolebinding $2 "
      "--clusterrole=edit --serviceaccount=$1:$2; or give a token by --token-file",
      Message(why), accounts_.ns, kAccount));
}

StatusOr<std::string> ClusterToken::Get() {
  const std::lock_guard lock(mutex_);
  if (clock_->Monotonic() < renew_at_) return token_;
  auto token = Make(accounts_.system, kAdmin);
  const bool installed = !absl::IsNotFound(token.status());
  if (IsMissing(token.status())) token = Make(accounts_.ns, kAccount);
  if (IsMissing(token.status())) return installed ? NoToken(token.status()) : NoShirabe();
  RETURN_IF_ERROR(token.status());
  token_ = *std::move(token);
  renew_at_ = clock_->Monotonic() + kUse;
  return token_;
}

}  // namespace shirabe::cmd
