#include "crd/trial_objects.h"

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "base/rng.h"
#include "crd/resource_kinds.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::crd {
namespace {

using kube::Json;

// Few, so that others do not wait long for an experiment with many. Each has its own: objects of
// trials that have ended do not pile up while others come and change without end.
constexpr size_t kMaxTrialsPerPass = 64;
constexpr size_t kMaxDeletesPerPass = 64;
// Between two looks at how far a running trial is: a phase, or a lost attempt, shows at once.
constexpr absl::Duration kProgress = absl::Seconds(30);
// Between two writes of the Suggestion; and where the budget of such writes is used up.
constexpr absl::Duration kSuggestion = absl::Seconds(30);
constexpr absl::Duration kOldSuggestion = absl::Seconds(60);
// A new trial is about to start: that it has not is worth no write of its own so soon.
constexpr absl::Duration kAboutToStart = absl::Seconds(3);
// Where the budget of such writes is used up, one is tried again after this.
constexpr absl::Duration kNextTry = absl::Seconds(5);

// What is worth a write of its own.
Json Landmarks(const Json& status) {
  Json marks = Json::array();
  for (const char* key : {"phase", "attempts", "failures", "preemptions", "waiting"}) {
    const Json* value = FindAt(status, {"shirabe", key});
    marks.push_back(value == nullptr ? Json() : *value);
  }
  return marks;
}

Json StatusOf(const Json& object) {
  const Json* status = FindAt(object, {"status"});
  return status == nullptr ? Json::object() : *status;
}

bool HasLabels(const Json& object, const Json& wanted) {
  const Json* labels = FindAt(object, {"metadata", "labels"});
  if (labels == nullptr) return false;
  return std::all_of(wanted.items().begin(), wanted.items().end(), [&](const auto& item) {
    return labels->contains(item.key()) && (*labels)[item.key()] == item.value();
  });
}

// What is left of some writes, and the first thing that went wrong. Thread-safe.
class Writes {
 public:
  explicit Writes(size_t count) : left_(count) {}

  void Finish(const Status& status) {
    const MutexLock lock(mutex_);
    first_.Update(status);
    if (--left_ == 0) ended_.NotifyOne();
  }
  Status Await() {
    MutexLock lock(mutex_);
    ended_.Wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left_ == 0; });
    return first_;
  }

 private:
  Mutex mutex_;
  CondVar ended_;
  size_t left_ ABSL_GUARDED_BY(mutex_);
  Status first_ ABSL_GUARDED_BY(mutex_);
};

// All of it, some at a time, since each waits for an answer.
Status DoAll(TaskPool& writers, std::vector<std::function<Status()>> all) {
  Writes writes(all.size());
  for (std::function<Status()>& one : all) {
    writers.Run([&writes, one = std::move(one)] { writes.Finish(one()); });
  }
  return writes.Await();
}

// What the server has then is known at once: the watch comes later.
Status Apply(const SyncContext& context, const Json& object, const char* subresource) {
  auto applied = context.kube->Apply(Trials(), object, kFieldManager, subresource);
  RETURN_IF_ERROR(applied.status());
  context.trials->Put(*applied);
  return absl::OkStatus();
}

}  // namespace

absl::Duration ProgressWait(const SyncContext& context, absl::Duration age, absl::Duration least,
                            absl::Duration most) {
  if (age < least) return least - age;
  if (age >= most || context.progress_writes->Acquire("").ok()) return absl::ZeroDuration();
  return std::min(kNextTry, most - age);
}

struct TrialObjects::Pass {
  const SyncContext& context;
  const v1::Experiment& experiment;
  const TrialWindow& window;
  const Json& owner;
  const TrialObjectNames& presence;
  view::TrialRenderer view;
  absl::Duration again = absl::InfiniteDuration();

  void Again(absl::Duration after) { again = std::min(again, after); }
};

// One trial of a pass. Several are looked at at the same time, each by one thread.
struct TrialObjects::TrialWrite {
  const Pass& pass;
  const v1::Trial& trial;
  WrittenTrial& shown;
  absl::Duration again = absl::InfiniteDuration();

  Status Put();
  Status Create(const ObjectJson& wanted);
  Status PutStatus(const ObjectJson& wanted, const Json& there);
};

StatusOr<absl::Duration> TrialObjects::Put(const SyncContext& context,
                                           const ObjectsInput& showing) {
  Pass pass{context,       showing.experiment, showing.window,
            showing.owner, showing.presence,   view::TrialRenderer(showing.experiment)};
  RETURN_IF_ERROR(RemoveOthers(pass));
  RETURN_IF_ERROR(PutTrials(pass));
  RETURN_IF_ERROR(PutSuggestion(pass));
  return pass.again;
}

// The newest first, and after a pass that was full those that it did not reach. What stands as it
// was left, in the store and in the cluster, is not compared again.
Status TrialObjects::PutTrials(Pass& pass) {
  const std::map<int64_t, v1::Trial>& trials = pass.window.trials();
  const ExperimentKey key = experiment::KeyOf(pass.experiment);
  const absl::Duration now = pass.context.clock->Monotonic();
  std::vector<const v1::Trial*> order;
  for (auto it = trials.rbegin(); it != trials.rend(); ++it) order.push_back(&it->second);
  const auto reached = [&](const v1::Trial* trial) { return trial->number() > stopped_at_; };
  if (stopped_at_ > 0) std::stable_partition(order.begin(), order.end(), std::not_fn(reached));
  stopped_at_ = 0;

  std::vector<TrialWrite> looks;
  for (const v1::Trial* trial : order) {
    WrittenTrial& shown = written_[trial->number()];
    const uint64_t print = Fingerprint(trial->SerializeAsString());
    const bool touched = pass.presence.touched.count(TrialName({key, trial->number()})) > 0;
    if (!touched && shown.print == print && now < shown.until) {
      pass.Again(shown.until - now);
      continue;
    }
    if (looks.size() == kMaxTrialsPerPass) {
      stopped_at_ = trial->number();
      pass.Again(absl::ZeroDuration());
      break;
    }
    shown.print = print;
    shown.until = -absl::InfiniteDuration();  // unless all goes well
    looks.push_back({pass, *trial, shown});
  }
  std::vector<std::function<Status()>> all;
  for (TrialWrite& look : looks) all.push_back([&look] { return look.Put(); });
  RETURN_IF_ERROR(DoAll(*pass.context.writers, std::move(all)));
  for (const TrialWrite& look : looks) pass.Again(look.again);
  return absl::OkStatus();
}

Status TrialObjects::TrialWrite::Put() {
  const SyncContext& context = pass.context;
  const ObjectJson wanted =
      TrialObject(pass.view, pass.experiment.spec().trial_template(), trial, pass.owner);
  const auto there = context.trials->Find(NamespaceOf(pass.owner), NameOf(wanted.object));
  const bool ended = HasEnded(trial);
  if (there) {
    const bool same = there->value("spec", Json()) == wanted.object["spec"] &&
                      HasLabels(*there, wanted.object["metadata"]["labels"]);
    if (!same) RETURN_IF_ERROR(Apply(context, wanted.object, ""));
    RETURN_IF_ERROR(PutStatus(wanted, *there));
  } else if (!ended || !shown.settled) {  // was deleted: of an ended one it is only a copy
    RETURN_IF_ERROR(Create(wanted));
  }
  shown.settled = ended;
  shown.until = context.clock->Monotonic() + again;
  return absl::OkStatus();
}

// Created, not applied: an object of that name that is another's stays as it is.
Status TrialObjects::TrialWrite::Create(const ObjectJson& wanted) {
  const SyncContext& context = pass.context;
  const auto created = context.kube->Create(Trials(), wanted.object);
  if (absl::IsAlreadyExists(created.status())) {
    // Ours, then the watch will show it; another's, then there is nothing to be done.
    again = kProgress;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(created.status());
  context.trials->Put(*created);
  shown.written = context.clock->Monotonic();
  return PutStatus(wanted, *created);
}

Status TrialObjects::TrialWrite::PutStatus(const ObjectJson& wanted, const Json& there) {
  const Json status = StatusOf(there);
  if (status == wanted.status) return absl::OkStatus();
  const absl::Duration now = pass.context.clock->Monotonic();
  absl::Duration patience = -absl::InfiniteDuration();
  if (Landmarks(status) == Landmarks(wanted.status)) patience = kProgress;
  if (status.empty() && trial.phase() == v1::TRIAL_PENDING) patience = kAboutToStart;
  const absl::Duration wait = ProgressWait(pass.context, now - shown.written, patience,
                                           HasEnded(trial) ? patience : kProgress);
  if (wait > absl::ZeroDuration()) {
    again = wait;
    return absl::OkStatus();
  }
  shown.written = now;
  const Json object = {
      {"apiVersion", kApiVersion},
      {"kind", "Trial"},
      {"metadata", {{"name", NameOf(wanted.object)}, {"namespace", NamespaceOf(wanted.object)}}},
      {"status", wanted.status}};
  const Status applied = Apply(pass.context, object, "status");
  // Deleted meanwhile.
  return absl::IsNotFound(applied) ? absl::OkStatus() : applied;
}

Status TrialObjects::RemoveOthers(Pass& pass) {
  std::set<std::string> wanted;
  const ExperimentKey key = experiment::KeyOf(pass.experiment);
  for (const auto& [number, trial] : pass.window.trials()) wanted.insert(TrialName({key, number}));
  std::erase_if(written_,
                [&](const auto& entry) { return pass.window.trials().count(entry.first) == 0; });
  std::vector<std::function<Status()>> all;
  for (const std::string& name : pass.presence.names) {
    if (wanted.count(name) > 0) continue;
    if (all.size() == kMaxDeletesPerPass) {
      pass.Again(absl::ZeroDuration());
      break;
    }
    all.push_back([&pass, ref = kube::Ref{Trials(), key.ns, name}] {
      const Status deleted = pass.context.kube->Delete(ref, {});
      return absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
    });
  }
  return DoAll(*pass.context.writers, std::move(all));
}

Status TrialObjects::PutSuggestion(Pass& pass) {
  ObjectJson wanted = SuggestionObject(pass.experiment, pass.window.trials(), pass.owner);
  Json whole = wanted.object;
  whole["status"] = wanted.status;
  if (suggestion_ == whole) return absl::OkStatus();
  const absl::Duration now = pass.context.clock->Monotonic();
  const bool ended = experiment::IsEnded(pass.experiment);
  if (suggestion_ && !ended) {
    const absl::Duration wait =
        ProgressWait(pass.context, now - suggested_, kSuggestion, kOldSuggestion);
    if (wait > absl::ZeroDuration()) {
      pass.Again(wait);
      return absl::OkStatus();
    }
  }
  const auto apply = [&](const Json& object, const char* subresource) {
    return pass.context.kube->Apply(Suggestions(), object, kFieldManager, subresource).status();
  };
  RETURN_IF_ERROR(apply(wanted.object, ""));
  Json status = {
      {"apiVersion", kApiVersion},
      {"kind", "Suggestion"},
      {"metadata", {{"name", NameOf(wanted.object)}, {"namespace", NamespaceOf(wanted.object)}}},
      {"status", wanted.status}};
  status["status"]["lastReconcileTime"] = FormatTime(ToProto(pass.context.clock->Now()));
  RETURN_IF_ERROR(apply(status, "status"));
  suggestion_ = std::move(whole);
  suggested_ = now;
  return absl::OkStatus();
}

}  // namespace shirabe::crd
