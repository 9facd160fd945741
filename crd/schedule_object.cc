#include "crd/schedule_object.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/sorting.h"
#include "base/timestamp.h"
#include "crd/resource_kinds.h"
#include "schedule/parse_schedule.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr size_t kMaxMistakes = 8;

std::optional<absl::Time> TimeOf(const std::string& text) {
  absl::Time time;
  if (text.empty() || !absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) {
    return std::nullopt;
  }
  return time;
}

bool Holds(const Json& experiment, const std::string& type) {
  const Json* conditions = FindAt(experiment, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  return std::any_of(conditions->begin(), conditions->end(), [&](const Json& condition) {
    return Text(condition, {"type"}) == type && Text(condition, {"status"}) == "True";
  });
}

}  // namespace

StatusOr<v1::ScheduledExperiment> ReadScheduleObject(const Json& object) {
  Json document = {{"apiVersion", kApiVersion},
                   {"kind", schedule::kKind},
                   {"metadata", {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}}}};
  if (const Json* spec = FindAt(object, {"spec"})) document["spec"] = *spec;
  auto parsed = schedule::ParseSchedules(kube::Dump(document));  // JSON is YAML
  if (parsed.size() != 1) return absl::InvalidArgumentError("it is no ScheduledExperiment");
  std::vector<std::string> mistakes;
  for (const experiment::Finding& finding : parsed[0].findings) {
    if (!finding.warning && mistakes.size() < kMaxMistakes) {
      mistakes.push_back(experiment::InWords(finding));
    }
  }
  if (!mistakes.empty()) return absl::InvalidArgumentError(absl::StrJoin(mistakes, "\n"));
  return std::move(parsed[0].schedule);
}

bool IsOwnedBy(const Json& experiment, const Json& object) {
  const Json* owners = FindAt(experiment, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return false;
  return std::any_of(owners->begin(), owners->end(),
                     [&](const Json& owner) { return Text(owner, {"uid"}) == UidOf(object); });
}

schedule::ScheduleState ScheduleStateOf(const Json& object, const std::vector<Json>& experiments) {
  schedule::ScheduleState state{
      .key = KeyOfObject(object),
      .created =
          TimeOf(Text(object, {"metadata", "creationTimestamp"})).value_or(absl::UnixEpoch())};
  state.last_scheduled = TimeOf(Text(object, {"status", "lastScheduleTime"}));
  for (const Json& experiment : experiments) {
    if (!IsOwnedBy(experiment, object)) continue;
    const bool succeeded = Holds(experiment, "Succeeded");
    const auto scheduled =
        TimeOf(Text(experiment, {"metadata", "annotations", schedule::kScheduledAt}));
    state.started.push_back({.name = NameOf(experiment),
                             .scheduled = scheduled.value_or(absl::UnixEpoch()),
                             .ended = succeeded || Holds(experiment, "Failed"),
                             .succeeded = succeeded});
  }
  return state;
}

Json ExperimentObject(const Json& object, const schedule::StartDecision& decision,
                      const std::string& last) {
  const Json* wanted = FindAt(object, {"spec", "experimentTemplate"});
  Json made = {
      {"apiVersion", kApiVersion},
      {"kind", "Experiment"},
      {"metadata", Json::object()},
      {"spec", wanted == nullptr ? Json::object() : wanted->value("spec", Json::object())}};
  Json& metadata = made["metadata"];
  for (const char* field : {"labels", "annotations"}) {
    const Json* given = wanted == nullptr ? nullptr : FindAt(*wanted, {"metadata", field});
    metadata[field] = given != nullptr && given->is_object() ? *given : Json::object();
  }
  metadata["name"] = decision.name;
  metadata["namespace"] = NamespaceOf(object);
  metadata["labels"][schedule::kScheduleLabel] = NameOf(object);
  metadata["labels"][kManagedLabel] = "true";
  metadata["annotations"][schedule::kScheduledAt] = FormatTime(ToProto(*decision.start));
  metadata["ownerReferences"] = Json::array({{{"apiVersion", kApiVersion},
                                              {"kind", schedule::kKind},
                                              {"name", NameOf(object)},
                                              {"uid", UidOf(object)},
                                              {"controller", true}}});
  if (last.empty()) return made;
  Json& names = made["spec"]["shirabe"]["warmStart"]["experiments"];
  if (!names.is_array()) names = Json::array();
  if (std::find(names.begin(), names.end(), Json(last)) == names.end()) names.push_back(last);
  return made;
}

std::string LastSuccessOf(const schedule::ScheduleState& state) {
  const schedule::StartedExperiment* last = nullptr;
  for (const auto& one : state.started) {
    if (one.succeeded && (last == nullptr || last->scheduled < one.scheduled)) last = &one;
  }
  return last == nullptr ? "" : last->name;
}

Json ScheduleStatusJson(const Json& object, const std::vector<Json>& experiments,
                        const ScheduleNews& news) {
  const Json* there = FindAt(object, {"status"});
  Json status = there != nullptr && there->is_object() ? *there : Json::object();
  std::vector<std::string> active;
  for (const Json& experiment : experiments) {
    if (!IsOwnedBy(experiment, object)) continue;
    const bool succeeded = Holds(experiment, "Succeeded");
    if (!succeeded && !Holds(experiment, "Failed")) active.push_back(NameOf(experiment));
    const std::string end = Text(experiment, {"status", "completionTime"});
    const auto time = TimeOf(end);
    const auto known = TimeOf(Text(status, {"lastSuccessfulTime"}));
    if (succeeded && time && (!known || *known < *time)) status["lastSuccessfulTime"] = end;
  }
  const bool listed = std::find(active.begin(), active.end(), news.name) != active.end();
  if (!news.name.empty() && !listed) active.push_back(news.name);
  StableSort(active);
  status["active"] = active;
  const auto count = [&](const char* field, int64_t more) {
    const int64_t now = Number(status, {field}) + more;
    if (now > 0) status[field] = now;
  };
  count("missedStarts", news.missed);
  if (news.started) status["lastScheduleTime"] = FormatTime(ToProto(*news.started));
  if (!news.name.empty()) {
    status["lastExperiment"] = news.name;
    count("starts", 1);
  }
  status.erase("waiting");
  if (!news.waiting.empty()) status["waiting"] = news.waiting;
  status.erase("nextScheduleTime");
  if (news.next != absl::InfiniteFuture()) {
    status["nextScheduleTime"] = FormatTime(ToProto(news.next));
  }
  return status;
}

}  // namespace shirabe::crd
