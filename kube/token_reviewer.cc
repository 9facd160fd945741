#include "kube/token_reviewer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::kube {
namespace {

constexpr absl::Duration kAllowedTtl = absl::Seconds(30);
constexpr absl::Duration kDeniedTtl = absl::Seconds(10);
constexpr size_t kMaxTokenBytes = 16 << 10;

// The list of `audiences` is what both sides know; an older server leaves it out.
bool HasAudience(const Json& status, const std::string& audience) {
  const Json* audiences = FindAt(status, {"audiences"});
  return audiences != nullptr && audiences->is_array() &&
         std::find(audiences->begin(), audiences->end(), audience) != audiences->end();
}

std::string Words(const ResourceAttributes& attributes) {
  if (!attributes.path.empty()) return absl::StrCat(attributes.verb, " ", attributes.path);
  const std::string place = attributes.namespace_name.empty()
                                ? "in all namespaces"
                                : "in namespace " + attributes.namespace_name;
  return absl::StrCat(attributes.verb, " ", attributes.resource, ".", attributes.group, " ", place);
}

}  // namespace

TokenReviewer::TokenReviewer(Client* client, Clock* clock, ReviewOptions options)
    : client_(client),
      clock_(clock),
      options_(std::move(options)),
      each_(options_.limits.each, clock),
      all_(options_.limits.all, clock) {
  if (options_.only_namespace.empty()) return;
  verifier_.emplace(client, clock, options_.audience, options_.only_namespace);
}

StatusOr<UserInfo> TokenReviewer::Review(const std::string& token, const std::string& caller) {
  if (token.size() > kMaxTokenBytes) return absl::UnauthenticatedError("this is not a token");
  if (auto kept = users_.Find(token, clock_->Monotonic())) return *std::move(kept);
  if (!each_.Acquire(caller).ok() || !all_.Acquire("").ok()) {
    return absl::UnavailableError("too many unknown tokens are being shown: try again in a second");
  }
  StatusOr<UserInfo> answer = ReviewToken(token);
  users_.Keep(token, answer,
              clock_->Monotonic() + (answer.ok() ? options_.limits.ttl : kDeniedTtl));
  return answer;
}

StatusOr<UserInfo> TokenReviewer::ReviewToken(const std::string& token) {
  StatusOr<UserInfo> answer = absl::PermissionDeniedError("");
  if (may_review_) answer = AskForReview(token);
  // That a right is missing is said of us, never of the token.
  if (!absl::IsPermissionDenied(answer.status())) return answer;
  if (!verifier_) {
    return absl::UnavailableError("the cluster cannot be asked whose token this is: " +
                                  Message(answer.status()));
  }
  may_review_ = false;
  return verifier_->Verify(token);
}

StatusOr<UserInfo> TokenReviewer::AskForReview(const std::string& token) {
  const Resource resource{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
  auto review = client_->Create(
      resource, {{"apiVersion", resource.ApiVersion()},
                 {"kind", resource.kind},
                 {"spec", {{"token", token}, {"audiences", Json::array({options_.audience})}}}});
  // What it is that we may not do is for our log and not for who calls.
  if (absl::IsPermissionDenied(review.status())) return review.status();
  if (!review.ok()) {
    return absl::UnavailableError("the cluster cannot be asked whose token this is: " +
                                  Message(review.status()));
  }
  const Json* status = FindAt(*review, {"status"});
  const Json* known = FindAt(*review, {"status", "authenticated"});
  const Json* user = FindAt(*review, {"status", "user"});
  if (known == nullptr || *known != true || user == nullptr ||
      !HasAudience(*status, options_.audience)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the cluster knows no such token, or it has expired, or it is not for the audience ",
        options_.audience, ": kubectl create token ACCOUNT --audience ", options_.audience));
  }
  return UserInfo{.name = Text(*user, {"username"}), .info = *user};
}

Status TokenReviewer::Authorize(const UserInfo& user_info, const ResourceAttributes& attributes) {
  if (verifier_ && attributes.namespace_name != options_.only_namespace) {
    if (attributes.namespace_name.empty() && attributes.path.empty()) {
      ResourceAttributes here = attributes;  // all namespaces that there are for us
      here.namespace_name = options_.only_namespace;
      return Authorize(user_info, here);
    }
    return absl::PermissionDeniedError(absl::StrCat(user_info.name, " may not ", Words(attributes),
                                                    ": this Shirabe is installed for namespace ",
                                                    options_.only_namespace, " alone"));
  }
  const std::string key = absl::StrCat(Dump(user_info.info), "\n", Words(attributes));
  if (auto kept = decisions_.Find(key, clock_->Monotonic())) return *std::move(kept);
  Status answer = ReviewAccess(user_info, attributes);
  decisions_.Keep(key, answer, clock_->Monotonic() + (answer.ok() ? kAllowedTtl : kDeniedTtl));
  return answer;
}

Status TokenReviewer::ReviewAccess(const UserInfo& user_info,
                                   const ResourceAttributes& attributes) {
  const bool local = verifier_.has_value();
  const Resource resource =
      local ? Resource{"authorization.k8s.io", "v1", "localsubjectaccessreviews",
                       "LocalSubjectAccessReview", true}
            : Resource{"authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
                       false};
  Json object = {{"apiVersion", resource.ApiVersion()}, {"kind", resource.kind}};
  Json spec = {{"user", user_info.name}};
  if (local) object["metadata"] = {{"namespace", options_.only_namespace}};
  if (attributes.path.empty()) {
    spec["resourceAttributes"] = {{"verb", attributes.verb},
                                  {"group", attributes.group},
                                  {"resource", attributes.resource},
                                  {"namespace", attributes.namespace_name}};
  } else {
    spec["nonResourceAttributes"] = {{"verb", attributes.verb}, {"path", attributes.path}};
  }
  for (const char* field : {"uid", "groups", "extra"}) {
    if (const Json* value = FindAt(user_info.info, {field})) spec[field] = *value;
  }
  object["spec"] = std::move(spec);
  const auto review = client_->Create(resource, object);
  if (!review.ok()) {
    return absl::UnavailableError("the cluster cannot be asked what " + user_info.name +
                                  " may do: " + Message(review.status()));
  }
  const Json* allowed = FindAt(*review, {"status", "allowed"});
  if (allowed != nullptr && *allowed == true) return absl::OkStatus();
  const bool reads =
      attributes.verb == "get" || attributes.verb == "list" || attributes.verb == "watch";
  return absl::PermissionDeniedError(
      absl::StrCat(user_info.name, " may not ", Words(attributes), ": by the cluster's RBAC; ",
                   !attributes.path.empty() ? "a ClusterRole with these nonResourceURLs allows it"
                   : reads                  ? "the role `edit` or `view` there allows it"
                                            : "the role `edit` there allows it"));
}

}  // namespace shirabe::kube
