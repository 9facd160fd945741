#include "crd/schedule_sync.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "crd/event_forwarder.h"
#include "crd/resource_kinds.h"
#include "crd/schedule_object.h"
#include "kube/watch_cache.h"
#include "schedule/parse_schedule.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr absl::Duration kScheduleRetry = absl::Seconds(10);
// However far away its time is, and though nothing seems to happen.
constexpr absl::Duration kScheduleResync = absl::Minutes(1);

// What asks for a start now; "" if nothing does. Asked for again with the same words after a start,
// it is another request.
std::string RequestOf(const Json& object) {
  const Json* asked = FindAt(object, {"metadata", "annotations", schedule::kRunNow});
  if (asked == nullptr) return "";
  return absl::StrCat(kube::Dump(*asked), " ", Number(object, {"status", "starts"}));
}

class CachingScheduleSync : public ScheduleSync {
 public:
  explicit CachingScheduleSync(ScheduleSyncOptions options) : options_(std::move(options)) {
    events_.kube = options_.kube;
    events_.instance = options_.instance;
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }
  ~CachingScheduleSync() override {
    thread_.request_stop();
    thread_.join();
  }

 private:
  void Run(const std::stop_token& stop);
  void StartWatching();
  void Touch(const ExperimentKey& key);
  void LookAtAll();
  void LookAt(const Json& object);
  StatusOr<absl::Time> Reconcile(const Json& object);
  StatusOr<absl::Time> Start(const Json& object, const schedule::StartDecision& decision);
  StatusOr<absl::Time> StartNow(const Json& object);
  StatusOr<std::optional<Json>> ReadLive(const Json& object);
  Status TakeOffRequest(const Json& live);
  Status CreateOnce(const Json& object, const schedule::StartDecision& decision, bool* taken);
  Status Remove(const Json& object, const std::string& name);
  Status PutStatus(const Json& object, const ScheduleNews& news);
  std::vector<Json> ExperimentsOf(const Json& object) const;
  void Tell(const Json& object, bool warning, const std::string& reason, const std::string& note);

  const ScheduleSyncOptions options_;
  SyncContext events_;  // for these alone
  std::unique_ptr<kube::WatchCache> schedules_;
  std::unique_ptr<kube::WatchCache> experiments_;
  std::map<ExperimentKey, absl::Time> due_;
  std::string last_error_;
  Mutex mutex_;
  CondVar changed_;
  std::set<ExperimentKey> touched_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

void CachingScheduleSync::Touch(const ExperimentKey& key) {
  {
    const MutexLock lock(mutex_);
    touched_.insert(key);
  }
  changed_.NotifyOne();
}

void CachingScheduleSync::StartWatching() {
  schedules_ = kube::WatchCache::Start(
      {.client = options_.kube,
       .clock = options_.clock,
       .query = {ScheduledExperiments(), options_.namespace_name, "", ""},
       .on_change = [this](const Json& object, bool) { Touch(KeyOfObject(object)); }});
  experiments_ = kube::WatchCache::Start(
      {.client = options_.kube,
       .clock = options_.clock,
       .query = {Experiments(), options_.namespace_name, schedule::kScheduleLabel, ""},
       .on_change = [this](const Json& object, bool) {
         Touch({NamespaceOf(object), LabelOf(object, schedule::kScheduleLabel)});
       }});
}

void CachingScheduleSync::Run(const std::stop_token& stop) {
  StartWatching();
  while (!stop.stop_requested()) {
    // Before both lists are in, an Experiment that is not there means nothing.
    const Status synced = schedules_->AwaitSynced(options_.interval);
    const Status known = synced.ok() ? experiments_->AwaitSynced(options_.interval) : synced;
    const std::string error = known.ok() ? schedules_->LastError() : Message(known);
    if (!error.empty() && last_error_.empty()) {
      Log(LogLevel::kWarning, "failed to watch ScheduledExperiments", {{"error", error}});
    }
    last_error_ = error;
    if (known.ok()) LookAtAll();
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, options_.interval);
  }
  schedules_ = nullptr;
  experiments_ = nullptr;
}

void CachingScheduleSync::LookAtAll() {
  std::set<ExperimentKey> touched;
  {
    const MutexLock lock(mutex_);
    touched.swap(touched_);
  }
  for (const ExperimentKey& key : touched) due_.erase(key);
  std::set<ExperimentKey> there;
  for (const Json& object : schedules_->All()) {
    const ExperimentKey key = KeyOfObject(object);
    there.insert(key);
    const auto due = due_.find(key);
    if (due == due_.end() || due->second <= options_.clock->Now()) LookAt(object);
  }
  std::erase_if(due_, [&](const auto& entry) { return !there.contains(entry.first); });
}

void CachingScheduleSync::LookAt(const Json& object) {
  const ExperimentKey key = KeyOfObject(object);
  const absl::Time now = options_.clock->Now();
  if (FindAt(object, {"metadata", "deletionTimestamp"}) != nullptr) {
    due_[key] = now + kScheduleResync;
    return;
  }
  const auto again = Reconcile(object);
  due_[key] = std::min(again.value_or(now + kScheduleRetry), now + kScheduleResync);
  // A conflict is news that have not come yet.
  if (again.ok() || absl::IsAborted(again.status())) return;
  Log(LogLevel::kWarning, "failed to look after a ScheduledExperiment; trying again",
      {{"schedule", ToString(key)}, {"error", Message(again.status())}});
}

std::vector<Json> CachingScheduleSync::ExperimentsOf(const Json& object) const {
  std::vector<Json> own;
  for (Json& experiment : experiments_->All()) {
    if (NamespaceOf(experiment) == NamespaceOf(object) && IsOwnedBy(experiment, object)) {
      own.push_back(std::move(experiment));
    }
  }
  return own;
}

void CachingScheduleSync::Tell(const Json& object, bool warning, const std::string& reason,
                               const std::string& note) {
  const Status told = CreateEvent(events_, object,
                                  {.warning = warning,
                                   .reason = reason,
                                   .note = note,
                                   .id = absl::StrCat(Number(object, {"metadata", "generation"}),
                                                      "-", absl::Hex(Fingerprint(note))),
                                   .time = options_.clock->Now()});
  if (!told.ok()) Log(LogLevel::kWarning, "failed to write an event", {{"error", Message(told)}});
}

StatusOr<absl::Time> CachingScheduleSync::Reconcile(const Json& object) {
  const absl::Time now = options_.clock->Now();
  const auto read = ReadScheduleObject(object);
  const auto rules =
      read.ok() ? schedule::RulesOf(read->spec()) : StatusOr<schedule::StartRules>(read.status());
  if (!rules.ok()) {
    Tell(object, true, "InvalidSpec", Message(rules.status()));
    RETURN_IF_ERROR(PutStatus(object, {.waiting = Message(rules.status())}));
    return absl::InfiniteFuture();
  }
  if (!RequestOf(object).empty()) return StartNow(object);
  const schedule::ScheduleState state = ScheduleStateOf(object, ExperimentsOf(object));
  const schedule::StartDecision decision = schedule::DecideStart(*rules, state, now);
  for (const std::string& name : decision.remove) RETURN_IF_ERROR(Remove(object, name));
  if (decision.start) return Start(object, decision);
  RETURN_IF_ERROR(PutStatus(object, {.waiting = decision.waiting, .next = decision.wake}));
  return decision.wake;
}

Status CachingScheduleSync::Remove(const Json& object, const std::string& name) {
  const auto there = experiments_->Find(NamespaceOf(object), name);
  if (!there) return absl::OkStatus();
  const Status deleted =
      options_.kube->Delete({Experiments(), NamespaceOf(object), name}, {.uid = UidOf(*there)});
  return absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
}

// `taken`: an Experiment of that name is there, and is not of this schedule.
Status CachingScheduleSync::CreateOnce(const Json& object, const schedule::StartDecision& decision,
                                       bool* taken) {
  const bool learns = FindAt(object, {"spec", "warmStartFromLast"}) != nullptr &&
                      *FindAt(object, {"spec", "warmStartFromLast"}) == Json(true);
  const std::string last =
      learns ? LastSuccessOf(ScheduleStateOf(object, ExperimentsOf(object))) : "";
  const auto created =
      options_.kube->Create(Experiments(), ExperimentObject(object, decision, last));
  if (created.ok()) experiments_->Put(*created);
  if (!absl::IsAlreadyExists(created.status())) return created.status();
  ASSIGN_OR_RETURN(const Json there,
                   options_.kube->Get({Experiments(), NamespaceOf(object), decision.name}));
  *taken = !IsOwnedBy(there, object);
  return absl::OkStatus();
}

// The copy may lag behind what a leader before this one has done; the server does not. nullopt if
// it does: the copy is up to date then.
StatusOr<std::optional<Json>> CachingScheduleSync::ReadLive(const Json& object) {
  ASSIGN_OR_RETURN(
      Json live, options_.kube->Get({ScheduledExperiments(), NamespaceOf(object), NameOf(object)}));
  if (kube::VersionOf(live) == kube::VersionOf(object)) return std::optional(std::move(live));
  schedules_->Put(live);
  return std::optional<Json>();
}

// Only of the object as it was read: what was asked for since then is another request.
Status CachingScheduleSync::TakeOffRequest(const Json& live) {
  const Json patch = {{"metadata",
                       {{"uid", UidOf(live)},
                        {"resourceVersion", kube::VersionOf(live)},
                        {"annotations", {{schedule::kRunNow, nullptr}}}}}};
  ASSIGN_OR_RETURN(const Json patched,
                   options_.kube->Patch({ScheduledExperiments(), NamespaceOf(live), NameOf(live)},
                                        kube::PatchType::kMerge, patch, ""));
  schedules_->Put(patched);
  return absl::OkStatus();
}

// Named after the request, so that one that was made before a crash is not made again. The request
// is taken off before it is counted: else it would be another request after a crash.
StatusOr<absl::Time> CachingScheduleSync::StartNow(const Json& object) {
  ASSIGN_OR_RETURN(const auto live, ReadLive(object));
  if (!live) return options_.clock->Now();
  const std::string name =
      schedule::ExperimentNameFor(NameOf(*live), Fingerprint(RequestOf(*live)));
  const schedule::ScheduleState state = ScheduleStateOf(object, ExperimentsOf(object));
  const auto running = std::count_if(state.started.begin(), state.started.end(),
                                     [](const auto& one) { return !one.ended; });
  Status created = absl::ResourceExhaustedError(
      absl::StrCat(running, " experiments of it run already, as many as may"));
  bool taken = false;
  if (running < static_cast<int64_t>(schedule::kMaxActive)) {
    created = CreateOnce(*live, {.start = options_.clock->Now(), .name = name}, &taken);
  }
  if (taken) created = absl::AlreadyExistsError("another experiment of that name is there");
  const bool refused = absl::IsInvalidArgument(created) || absl::IsPermissionDenied(created) ||
                       absl::IsResourceExhausted(created) || absl::IsAlreadyExists(created);
  if (!refused) RETURN_IF_ERROR(created);
  RETURN_IF_ERROR(TakeOffRequest(*live));
  if (refused) {
    Tell(object, true, "StartFailed",
         absl::StrCat("experiment ", name, ", which the annotation ", schedule::kRunNow,
                      " asked for, cannot be started: ", Message(created)));
    return options_.clock->Now();
  }
  Tell(object, false, "ExperimentStarted",
       absl::StrCat("experiment ", name, " was started: the annotation ", schedule::kRunNow,
                    " asked for it"));
  const auto now = schedules_->Find(NamespaceOf(object), NameOf(object));
  if (now) RETURN_IF_ERROR(PutStatus(*now, {.name = name}));
  return options_.clock->Now();
}

StatusOr<absl::Time> CachingScheduleSync::Start(const Json& object,
                                                const schedule::StartDecision& decision) {
  ASSIGN_OR_RETURN(const auto read, ReadLive(object));
  if (!read) return options_.clock->Now();
  const Json& live = *read;
  for (const std::string& name : decision.stop) {
    RETURN_IF_ERROR(Remove(object, name));
    Tell(object, false, "ExperimentReplaced",
         absl::StrCat(name, " was deleted: ", decision.name, " is started in its place"));
  }
  bool taken = false;
  const Status created = CreateOnce(live, decision, &taken);
  if (absl::IsInvalidArgument(created) || absl::IsPermissionDenied(created)) {
    const std::string why =
        absl::StrCat("experiment ", decision.name, " cannot be started: ", Message(created));
    Tell(object, true, "StartFailed", why);
    RETURN_IF_ERROR(PutStatus(live, {.waiting = why, .next = decision.wake}));
    return options_.clock->Now() + kScheduleRetry;
  }
  RETURN_IF_ERROR(created);
  RETURN_IF_ERROR(PutStatus(live, {.started = decision.start,
                                   .name = taken ? "" : decision.name,
                                   .missed = decision.missed + (taken ? 1 : 0),
                                   .next = decision.wake}));
  if (taken) {
    Tell(object, true, "NameTaken",
         absl::StrCat("experiment ", decision.name, " is there already, and was not started for ",
                      "this schedule: this start is left out"));
  } else {
    Tell(object, false, "ExperimentStarted",
         absl::StrCat("experiment ", decision.name, " was started for ",
                      FormatTime(ToProto(*decision.start))));
  }
  if (decision.missed > 0) {
    const bool many = decision.missed >= schedule::kMaxMissed;
    Tell(object, true, many ? "TooManyMissedTimes" : "StartsMissed",
         absl::StrCat(many ? "more than " : "", decision.missed, " starts before ", decision.name,
                      " were missed and are not made up for"));
  }
  return decision.wake;
}

Status CachingScheduleSync::PutStatus(const Json& object, const ScheduleNews& news) {
  Json status = ScheduleStatusJson(object, ExperimentsOf(object), news);
  const Json* there = FindAt(object, {"status"});
  if (there != nullptr && *there == status) return absl::OkStatus();
  // With the uid, so that an object of the same name that came later is left alone.
  const Json body = {
      {"apiVersion", kApiVersion},
      {"kind", schedule::kKind},
      {"metadata",
       {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}, {"uid", UidOf(object)}}},
      {"status", std::move(status)}};
  const auto applied = options_.kube->Apply(ScheduledExperiments(), body, kFieldManager, "status");
  if (absl::IsNotFound(applied.status())) return absl::OkStatus();
  RETURN_IF_ERROR(applied.status());
  schedules_->Put(*applied);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ScheduleSync> ScheduleSync::Start(ScheduleSyncOptions options) {
  return std::make_unique<CachingScheduleSync>(std::move(options));
}

}  // namespace shirabe::crd
