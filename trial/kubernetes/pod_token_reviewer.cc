#include "trial/kubernetes/pod_token_reviewer.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/json_fields.h"
#include "base/text/json_text.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {
namespace {

constexpr size_t kMaxTokenBytes = 16 << 10;
// Of one pod: thousands may come at once after a restart of ours, and a program that knows the uid
// of one can show made-up tokens.
constexpr kube::ReviewLimits kLimits = {
    .each = {.requests_per_second = 1, .burst = 10},
    .all = {.requests_per_second = 200, .burst = 4000},  // every sidecar after a restart of ours
    .ttl = absl::Minutes(5),
};
constexpr char kPodUid[] = "authentication.kubernetes.io/pod-uid";

std::string Extra(const kube::UserInfo& user_info, const char* name) {
  const Json& values = Items(At(user_info.info, {"extra", name}));
  return values.size() == 1 ? Text(values[0]) : "";
}

}  // namespace

PodTokenReviewer::PodTokenReviewer(kube::Client* client, Clock* clock,
                                   const std::string& only_namespace)
    : clock_(clock),
      verifier_(client, clock, kPodAudience, only_namespace),
      reviewer_(client, clock,
                {.audience = kPodAudience, .only_namespace = only_namespace, .limits = kLimits}) {}

std::string PodTokenReviewer::SignedPod(const std::string& token) {
  if (token.size() > kMaxTokenBytes) return "";
  if (auto kept = signed_.Find(token, clock_->Monotonic())) return **std::move(kept);
  const StatusOr<Json> claims = verifier_.Claims(token);
  if (!claims.ok()) return "";
  const std::string uid = Text(*claims, {"kubernetes.io", "pod", "uid"});
  if (uid.empty()) return "";
  const std::string pod = absl::StrCat(Text(*claims, {"kubernetes.io", "namespace"}), "/", uid);
  signed_.Keep(token, pod, clock_->Monotonic() + kLimits.ttl);
  return pod;
}

Status PodTokenReviewer::Check(const std::string& token, const std::string& namespace_name,
                               const std::string& pod_uid) {
  const std::string pod = absl::StrCat(namespace_name, "/", pod_uid);
  if (!pod_uid.empty() && SignedPod(token) == pod) return absl::OkStatus();
  ASSIGN_OR_RETURN(const kube::UserInfo user_info, reviewer_.Review(token, pod_uid));
  const bool of_namespace =
      absl::StartsWith(user_info.name, absl::StrCat("system:serviceaccount:", namespace_name, ":"));
  if (of_namespace && !pod_uid.empty() && Extra(user_info, kPodUid) == pod_uid) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError("the token is not that of this pod");
}

std::string PodTokenReviewer::ClaimedPod(const std::string& token) {
  if (token.size() > kMaxTokenBytes) return "";
  const std::vector<std::string> parts = absl::StrSplit(token, '.');
  std::string payload;
  if (parts.size() != 3 || !absl::WebSafeBase64Unescape(parts[1], &payload)) return "";
  const Json claims = ReadJsonOrDiscarded(payload);
  return Text(claims, {"kubernetes.io", "pod", "uid"});
}

}  // namespace shirabe::trial
