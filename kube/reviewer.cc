#include "kube/reviewer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::kube {
namespace {

constexpr absl::Duration kAllowedStands = absl::Seconds(30);
constexpr absl::Duration kRefusedStands = absl::Seconds(10);
constexpr size_t kMaxKeptAnswers = 4096;
constexpr size_t kLongestToken = 16 << 10;

const Status& StatusOf(const Status& answer) { return answer; }
const Status& StatusOf(const StatusOr<Person>& answer) { return answer.status(); }

// The list of `audiences` is what both sides know; an older server leaves it out.
bool HasAudience(const Json& status, const std::string& audience) {
  const Json* audiences = FindAt(status, {"audiences"});
  return audiences != nullptr && audiences->is_array() &&
         std::find(audiences->begin(), audiences->end(), audience) != audiences->end();
}

std::string Words(const Deed& deed) {
  if (!deed.path.empty()) return absl::StrCat(deed.verb, " ", deed.path);
  const std::string place =
      deed.namespace_name.empty() ? "in all namespaces" : "in namespace " + deed.namespace_name;
  return absl::StrCat(deed.verb, " ", deed.resource, ".", deed.group, " ", place);
}

}  // namespace

template <class Answer>
std::optional<Answer> Reviewer::Kept<Answer>::Find(const std::string& asked, absl::Duration now) {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find(asked);
  if (found == answers_.end() || found->second.second < now) return std::nullopt;
  return found->second.first;
}

// Where nobody could be asked there is nothing to keep.
template <class Answer>
void Reviewer::Kept<Answer>::Keep(const std::string& asked, const Answer& answer,
                                  absl::Duration until) {
  const Status& status = StatusOf(answer);
  if (!status.ok() && !absl::IsUnauthenticated(status) && !absl::IsPermissionDenied(status)) return;
  const std::lock_guard lock(mutex_);
  if (answers_.size() >= kMaxKeptAnswers) answers_.clear();
  answers_.insert_or_assign(asked, std::pair(answer, until));
}

Reviewer::Reviewer(Client* client, Clock* clock, std::string audience, const ReviewLimits& limits)
    : client_(client),
      clock_(clock),
      audience_(std::move(audience)),
      limits_(limits),
      each_(limits.each, clock),
      all_(limits.all, clock) {}

StatusOr<Person> Reviewer::Review(const std::string& token, const std::string& caller) {
  if (token.size() > kLongestToken) return absl::UnauthenticatedError("this is no token");
  if (auto kept = people_.Find(token, clock_->Monotonic())) return *std::move(kept);
  if (!each_.Take(caller).ok() || !all_.Take("").ok()) {
    return absl::UnavailableError("too many unknown tokens are being shown: try again in a second");
  }
  StatusOr<Person> answer = AskWho(token);
  people_.Keep(token, answer,
               clock_->Monotonic() + (answer.ok() ? limits_.stands : kRefusedStands));
  return answer;
}

StatusOr<Person> Reviewer::AskWho(const std::string& token) {
  const Resource resource{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
  auto review = client_->Create(
      resource, {{"apiVersion", resource.ApiVersion()},
                 {"kind", resource.kind},
                 {"spec", {{"token", token}, {"audiences", Json::array({audience_})}}}});
  // What it is that we may not do is for our log and not for who calls.
  if (!review.ok()) {
    return absl::UnavailableError("the cluster cannot be asked whose token this is: " +
                                  Message(review.status()));
  }
  const Json* status = FindAt(*review, {"status"});
  const Json* known = FindAt(*review, {"status", "authenticated"});
  const Json* user = FindAt(*review, {"status", "user"});
  if (known == nullptr || *known != true || user == nullptr || !HasAudience(*status, audience_)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the cluster knows no such token, or it has expired, or it is not for the audience ",
        audience_, ": kubectl create token ACCOUNT --audience ", audience_));
  }
  return Person{.name = Text(*user, {"username"}), .info = *user};
}

Status Reviewer::MayDo(const Person& person, const Deed& deed) {
  const std::string key = absl::StrCat(Dump(person.info), "\n", Words(deed));
  if (auto kept = rights_.Find(key, clock_->Monotonic())) return *std::move(kept);
  Status answer = AskWhether(person, deed);
  rights_.Keep(key, answer, clock_->Monotonic() + (answer.ok() ? kAllowedStands : kRefusedStands));
  return answer;
}

Status Reviewer::AskWhether(const Person& person, const Deed& deed) {
  const Resource resource{"authorization.k8s.io", "v1", "subjectaccessreviews",
                          "SubjectAccessReview", false};
  Json spec = {{"user", person.name}};
  if (deed.path.empty()) {
    spec["resourceAttributes"] = {{"verb", deed.verb},
                                  {"group", deed.group},
                                  {"resource", deed.resource},
                                  {"namespace", deed.namespace_name}};
  } else {
    spec["nonResourceAttributes"] = {{"verb", deed.verb}, {"path", deed.path}};
  }
  for (const char* field : {"uid", "groups", "extra"}) {
    if (const Json* value = FindAt(person.info, {field})) spec[field] = *value;
  }
  const auto review = client_->Create(
      resource,
      {{"apiVersion", resource.ApiVersion()}, {"kind", resource.kind}, {"spec", std::move(spec)}});
  if (!review.ok()) {
    return absl::UnavailableError("the cluster cannot be asked what " + person.name +
                                  " may do: " + Message(review.status()));
  }
  const Json* allowed = FindAt(*review, {"status", "allowed"});
  if (allowed != nullptr && *allowed == true) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(person.name, " may not ", Words(deed), ": by the cluster's RBAC; ",
                   deed.path.empty() ? "the role `edit` or `view` there allows it"
                                     : "a ClusterRole with these nonResourceURLs allows it"));
}

}  // namespace shirabe::kube
