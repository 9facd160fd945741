#include "trial/pod/pod_place.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::trial {
namespace {

Json Joined(const Json& a, const Json& b) {
  Json joined = a;
  for (const char* list : {"matchExpressions", "matchFields"}) {
    for (const Json& expression : Items(At(b, list))) ListIn(joined, list).push_back(expression);
  }
  return joined;
}

// The user's terms are alternatives, and so are ours: each of theirs with each of ours.
void Require(const Json& terms, Json& affinity) {
  Json& required = ObjectIn(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  Json& theirs = ListIn(required, "nodeSelectorTerms");
  if (theirs.empty()) {
    theirs = terms;
    return;
  }
  Json all = Json::array();
  for (const Json& their : theirs) {
    for (const Json& our : terms) all.push_back(their.is_object() ? Joined(their, our) : our);
  }
  theirs = std::move(all);
}

Status ApplySelector(const Json& wanted, Json& pod_spec) {
  Json& selector = ObjectIn(pod_spec, "nodeSelector");
  for (const auto& [key, value] : wanted.items()) {
    const Json& theirs = At(selector, key.c_str());
    if (theirs.is_string() && theirs != value) {
      return CannotProgress(absl::StrCat(
          "the trial's object asks for nodes with the label ", key, "=", Text(theirs),
          " and its pool for ", key, "=", Text(value),
          ": remove the nodeSelector, or name another pool in spec.shirabe.capacity.pools"));
    }
    selector[key] = value;
  }
  return absl::OkStatus();
}

}  // namespace

Status ApplyScheduling(const PodScheduling& place, Json& pod_spec) {
  if (!place.node_selector.empty()) {
    RETURN_IF_ERROR(ApplySelector(place.node_selector, pod_spec));
  }
  for (const Json& toleration : place.tolerations) {
    ListIn(pod_spec, "tolerations").push_back(toleration);
  }
  if (place.required.empty() && place.preferred.empty()) return absl::OkStatus();
  Json& affinity = ObjectIn(ObjectIn(pod_spec, "affinity"), "nodeAffinity");
  if (!place.required.empty()) Require(place.required, affinity);
  for (const Json& term : place.preferred) {
    ListIn(affinity, "preferredDuringSchedulingIgnoredDuringExecution").push_back(term);
  }
  return absl::OkStatus();
}

Status CannotProgress(const std::string& why) {
  return absl::InvalidArgumentError("cannot progress: " + why);
}

}  // namespace shirabe::trial
