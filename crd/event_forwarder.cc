#include "crd/event_forwarder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "crd/resource_kinds.h"
#include "kube/api_errors.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr double kEventBurst = 20;
constexpr absl::Duration kEventInterval = absl::Seconds(10);  // for one more
constexpr absl::Duration kMaxEventAge = absl::Minutes(10);
constexpr int64_t kPage = 500;
constexpr size_t kMaxNoteBytes = 1000;  // the API server takes 1 kB
constexpr char kController[] = "shirabe.dev/controller";

// Not cut inside a character.
std::string Cut(std::string text) {
  if (text.size() <= kMaxNoteBytes) return text;
  size_t end = kMaxNoteBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "…";
}

}  // namespace

Status CreateEvent(const SyncContext& context, const Json& object, const ClusterEvent& text) {
  // Of the older of both APIs, which alone can say when something was seen first and last: the SDKs
  // of Kubeflow leave out what does not.
  const std::string seen = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", text.time, absl::UTCTimeZone());
  const Json event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", absl::StrCat(NameOf(object), ".", UidOf(object).substr(0, 8), ".", text.id)},
        {"namespace", NamespaceOf(object)}}},
      {"eventTime", MicroTime(text.time)},
      {"firstTimestamp", seen},
      {"lastTimestamp", seen},
      {"count", 1},
      {"source", {{"component", kController}}},
      {"reportingComponent", kController},
      {"reportingInstance", context.instance.empty() ? "shirabe" : context.instance},
      {"action", "Tune"},
      {"reason", text.reason},
      {"type", text.warning ? "Warning" : "Normal"},
      {"message", Cut(text.note)},
      {"involvedObject",
       {{"apiVersion", object.value("apiVersion", kApiVersion)},
        {"kind", object.value("kind", "Experiment")},
        {"name", NameOf(object)},
        {"namespace", NamespaceOf(object)},
        {"uid", UidOf(object)}}}};
  const Status created = context.kube->Create(Events(), event).status();
  // With its namespace the events of an object go as well.
  const bool done = absl::IsAlreadyExists(created) || kube::IsNamespaceGone(created);
  return done ? absl::OkStatus() : created;
}

namespace {

// On the object and, of a trial, on that of the trial where there is one. `left_out`: so many were
// not told before it.
Status CreateEvents(const SyncContext& context, const Json& object, const v1::Event& event,
                    int64_t left_out) {
  const ExperimentKey key = KeyOfObject(object);
  ClusterEvent told{.warning = event.warning(),
                    .reason = event.reason(),
                    .note = event.message(),
                    .id = absl::StrCat(absl::Hex(event.id())),
                    .time = FromProto(event.time())};
  if (event.trial() != 0) {
    const std::string name = TrialName({key, event.trial()});
    const auto trial = context.trials->Find(key.ns, name);
    if (trial) RETURN_IF_ERROR(CreateEvent(context, *trial, told));
    told.note = absl::StrCat(name, ": ", told.note);
  }
  if (left_out > 0) {
    absl::StrAppend(&told.note, " (", left_out, " events before it are not here: shirabe events ",
                    key.name, ")");
  }
  return CreateEvent(context, object, told);
}

}  // namespace

bool EventForwarder::MayTell(absl::Duration now) {
  const double refilled = absl::FDivDuration(now - filled_, kEventInterval);
  tokens_ = begun_ ? std::min(kEventBurst, tokens_ + refilled) : kEventBurst;
  filled_ = now;
  begun_ = true;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

Status EventForwarder::Forward(const SyncContext& context, const Json& object) {
  const ExperimentKey key = KeyOfObject(object);
  for (;;) {
    ASSIGN_OR_RETURN(
        const auto events,
        context.store->ListEvents({.experiment = key, .after_id = after_, .limit = kPage}));
    for (const v1::Event& event : events) {
      const absl::Time time = FromProto(event.time());
      const bool stale = time < context.clock->Now() - kMaxEventAge;
      if (!stale && MayTell(context.clock->Monotonic())) {
        RETURN_IF_ERROR(CreateEvents(context, object, event, left_out_));
        left_out_ = 0;
      } else if (!stale) {
        ++left_out_;
      }
      after_ = event.id();
    }
    if (static_cast<int64_t>(events.size()) < kPage) return absl::OkStatus();
  }
}

}  // namespace shirabe::crd
