#include "crd/optimization_sync.h"

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
#include "convert/optimization_job.h"
#include "crd/event_forwarder.h"
#include "crd/object_conversion.h"
#include "crd/optimization_object.h"
#include "crd/resource_kinds.h"
#include "crd/schedule_object.h"
#include "experiment/spec/findings.h"
#include "kube/watch_cache.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr absl::Duration kJobRetry = absl::Seconds(10);
constexpr absl::Duration kJobResync = absl::Minutes(5);  // though nothing seems to happen
constexpr size_t kMaxJobProblems = 8;

class CachingOptimizationSync : public OptimizationSync {
 public:
  explicit CachingOptimizationSync(OptimizationSyncOptions options) : options_(std::move(options)) {
    events_.kube = options_.kube;
    events_.instance = options_.instance;
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }
  ~CachingOptimizationSync() override {
    thread_.request_stop();
    thread_.join();
  }

 private:
  void Run(const std::stop_token& stop);
  bool AwaitKind(const std::stop_token& stop);
  void StartWatching();
  void Touch(const ExperimentKey& key);
  void LookAtAll();
  void LookAt(const Json& object);
  StatusOr<absl::Duration> Reconcile(const Json& object);
  StatusOr<absl::Duration> Begin(const Json& object, const OptimizationRequest& request);
  StatusOr<absl::Duration> Follow(const Json& object, Json experiment,
                                  const OptimizationRequest& request);
  StatusOr<absl::Duration> Refuse(const Json& object, const OptimizationNews& news,
                                  absl::Duration again);
  Status PutStatus(const Json& object, const OptimizationNews& news);
  void Tell(const Json& object, bool warning, const std::string& reason, const std::string& note);

  const OptimizationSyncOptions options_;
  SyncContext events_;  // for these alone
  std::unique_ptr<kube::WatchCache> jobs_;
  std::unique_ptr<kube::WatchCache> experiments_;
  std::map<ExperimentKey, absl::Duration> due_;      // monotonic
  std::map<ExperimentKey, std::string> last_notes_;  // what events said last
  std::string last_error_;
  Mutex mutex_;
  CondVar changed_;
  std::set<ExperimentKey> touched_ ABSL_GUARDED_BY(mutex_);  // namespaces and Experiments' names
  std::jthread thread_;
};

void CachingOptimizationSync::Touch(const ExperimentKey& key) {
  {
    const MutexLock lock(mutex_);
    touched_.insert(key);
  }
  changed_.NotifyOne();
}

// Until the cluster knows the kind. False if it is to end.
bool CachingOptimizationSync::AwaitKind(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto found =
        options_.kube->FindResource(convert::kTrainerVersion, convert::kOptimizationJob);
    if (found.ok()) return true;
    const std::string error = absl::IsNotFound(found.status()) ? "" : Message(found.status());
    if (!error.empty() && error != last_error_) {
      Log(LogLevel::kWarning, "failed to look for OptimizationJobs", {{"error", error}});
    }
    last_error_ = error;
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, options_.absent);
  }
  return false;
}

void CachingOptimizationSync::StartWatching() {
  jobs_ = kube::WatchCache::Start({.client = options_.kube,
                                   .clock = options_.clock,
                                   .query = {OptimizationJobs(), options_.namespace_name, "", ""},
                                   .on_change = [this](const Json& object, bool) {
                                     Touch({NamespaceOf(object), ExperimentNameFor(object)});
                                   }});
  experiments_ = kube::WatchCache::Start(
      {.client = options_.kube,
       .clock = options_.clock,
       .query = {Experiments(), options_.namespace_name, kOptimizationLabel, ""},
       .on_change = [this](const Json& object, bool) { Touch(KeyOfObject(object)); }});
}

void CachingOptimizationSync::Run(const std::stop_token& stop) {
  if (!AwaitKind(stop)) return;
  StartWatching();
  while (!stop.stop_requested()) {
    // Before both lists are in, an Experiment that is not there means nothing.
    const Status synced = jobs_->AwaitSynced(options_.interval);
    const Status known = synced.ok() ? experiments_->AwaitSynced(options_.interval) : synced;
    const std::string error = known.ok() ? jobs_->LastError() : Message(known);
    if (!error.empty() && last_error_.empty()) {
      Log(LogLevel::kWarning, "failed to watch OptimizationJobs", {{"error", error}});
    }
    last_error_ = error;
    if (known.ok()) LookAtAll();
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, options_.interval);
  }
  jobs_ = nullptr;
  experiments_ = nullptr;
}

void CachingOptimizationSync::LookAtAll() {
  std::set<ExperimentKey> touched;
  {
    const MutexLock lock(mutex_);
    touched.swap(touched_);
  }
  const absl::Duration now = options_.clock->Monotonic();
  std::set<ExperimentKey> there;
  for (const Json& object : jobs_->All()) {
    if (!IsManaged(object)) continue;
    const ExperimentKey key = KeyOfObject(object);
    there.insert(key);
    const auto due = due_.find(key);
    const bool news = touched.contains({key.ns, ExperimentNameFor(object)});
    if (news || due == due_.end() || due->second <= now) LookAt(object);
  }
  const auto gone = [&](const auto& entry) { return !there.contains(entry.first); };
  std::erase_if(due_, gone);
  std::erase_if(last_notes_, gone);
}

void CachingOptimizationSync::LookAt(const Json& object) {
  const bool leaving = FindAt(object, {"metadata", "deletionTimestamp"}) != nullptr;
  const auto again = leaving ? StatusOr<absl::Duration>(kJobResync) : Reconcile(object);
  due_[KeyOfObject(object)] = options_.clock->Monotonic() + again.value_or(kJobRetry);
  // A conflict is news that have not come yet.
  if (again.ok() || absl::IsAborted(again.status())) return;
  Log(LogLevel::kWarning, "failed to look after an OptimizationJob; trying again",
      {{"job", ToString(KeyOfObject(object))}, {"error", Message(again.status())}});
}

void CachingOptimizationSync::Tell(const Json& object, bool warning, const std::string& reason,
                                   const std::string& note) {
  std::string& last = last_notes_[KeyOfObject(object)];
  if (last == note) return;
  last = note;
  const Status told = CreateEvent(events_, object,
                                  {.warning = warning,
                                   .reason = reason,
                                   .note = note,
                                   .id = absl::StrCat("opt-", absl::Hex(Fingerprint(note))),
                                   .time = options_.clock->Now()});
  if (!told.ok()) Log(LogLevel::kWarning, "failed to write an event", {{"error", Message(told)}});
}

StatusOr<absl::Duration> CachingOptimizationSync::Reconcile(const Json& object) {
  const OptimizationRequest request = ReadOptimizationObject(object);
  auto experiment = experiments_->Find(NamespaceOf(object), ExperimentNameFor(object));
  if (experiment && IsOwnedBy(*experiment, object)) {
    return Follow(object, *std::move(experiment), request);
  }
  if (HasEndedJob(object)) return kJobResync;
  if (request.problems.empty()) return Begin(object, request);
  return Refuse(object,
                {.reason = request.in_annotations ? "InvalidAnnotation" : "InvalidSpec",
                 .message = experiment::JoinProblems(request.problems, kMaxJobProblems),
                 .failed = !request.in_annotations},
                kJobResync);
}

StatusOr<absl::Duration> CachingOptimizationSync::Refuse(const Json& object,
                                                         const OptimizationNews& news,
                                                         absl::Duration again) {
  Tell(object, true, news.reason, news.message);
  RETURN_IF_ERROR(PutStatus(object, news));
  return again;
}

StatusOr<absl::Duration> CachingOptimizationSync::Begin(const Json& object,
                                                        const OptimizationRequest& request) {
  // The copy may lag behind what the user, or a leader before this one, has done.
  const kube::Ref ref{OptimizationJobs(), NamespaceOf(object), NameOf(object)};
  ASSIGN_OR_RETURN(const Json live, options_.kube->Get(ref));
  if (kube::VersionOf(live) != kube::VersionOf(object)) {
    jobs_->Put(live);
    return absl::ZeroDuration();
  }
  const std::string name = NameOf(request.experiment);
  const auto created = options_.kube->Create(Experiments(), request.experiment);
  if (created.ok()) {
    experiments_->Put(*created);
    Tell(object, false, "ExperimentCreated", absl::StrCat("experiment ", name, " runs its trials"));
    return Follow(live, *created, request);
  }
  if (absl::IsAlreadyExists(created.status())) {
    ASSIGN_OR_RETURN(const Json there,
                     options_.kube->Get({Experiments(), NamespaceOf(object), name}));
    if (IsOwnedBy(there, object)) return Follow(live, there, request);
    return Refuse(live,
                  {.reason = "NameTaken",
                   .message = absl::StrCat("metadata.name: an experiment ", name,
                                           " is there already, and is not of this object: delete "
                                           "that one, or choose another name")},
                  kJobRetry);
  }
  if (!absl::IsInvalidArgument(created.status()) && !absl::IsPermissionDenied(created.status())) {
    return created.status();
  }
  return Refuse(live,
                {.reason = "ExperimentCreationFailed",
                 .message = absl::StrCat("experiment ", name, ": ", Message(created.status()))},
                kJobRetry);
}

// The spec of an OptimizationJob does not change, but its annotations may.
StatusOr<absl::Duration> CachingOptimizationSync::Follow(const Json& object, Json experiment,
                                                         const OptimizationRequest& request) {
  OptimizationNews news;
  const auto print = [](const Json& one) {
    return Text(one, {"metadata", "annotations", kOptimizationPrint});
  };
  if (!request.problems.empty()) {
    news.message = "not applied: " + experiment::JoinProblems(request.problems, kMaxJobProblems);
    Tell(object, true, "InvalidAnnotation", news.message);
  } else if (print(experiment) != print(request.experiment)) {
    const kube::Ref ref{Experiments(), NamespaceOf(experiment), NameOf(experiment)};
    auto patched = options_.kube->Patch(ref, kube::PatchType::kMerge,
                                        SpecPatch(experiment, request.experiment), "");
    if (patched.ok()) {
      experiments_->Put(*patched);
      experiment = *std::move(patched);
    } else if (absl::IsInvalidArgument(patched.status()) ||
               absl::IsPermissionDenied(patched.status())) {
      news.message = "not applied: " + Message(patched.status());
      Tell(object, true, "AnnotationNotApplied", news.message);
    } else if (!absl::IsNotFound(patched.status())) {
      return patched.status();
    }
  }
  news.experiment = std::move(experiment);
  RETURN_IF_ERROR(PutStatus(object, news));
  return kJobResync;
}

Status CachingOptimizationSync::PutStatus(const Json& object, const OptimizationNews& news) {
  Json status = OptimizationStatusJson(object, news, options_.clock->Now());
  const Json* there = FindAt(object, {"status"});
  if (there != nullptr && *there == status) return absl::OkStatus();
  // With the uid, so that an object of the same name that came later is left alone.
  const Json body = {
      {"apiVersion", convert::kTrainerVersion},
      {"kind", convert::kOptimizationJob},
      {"metadata",
       {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}, {"uid", UidOf(object)}}},
      {"status", std::move(status)}};
  const auto applied = options_.kube->Apply(OptimizationJobs(), body, kFieldManager, "status");
  if (absl::IsNotFound(applied.status())) return absl::OkStatus();
  RETURN_IF_ERROR(applied.status());
  jobs_->Put(*applied);
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<OptimizationSync> OptimizationSync::Start(OptimizationSyncOptions options) {
  return std::make_unique<CachingOptimizationSync>(std::move(options));
}

}  // namespace shirabe::crd
