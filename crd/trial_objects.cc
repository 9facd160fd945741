#include "crd/trial_objects.h"

#include <algorithm>

#include "base/log.h"
#include "base/rng.h"
#include "crd/objects.h"
#include "experiment/submit.h"

namespace shirabe::crd {
namespace {

using kube::Json;

// Few, so that nobody waits long for an experiment with many; half of them may be deletions, so
// that objects of trials that have ended do not pile up while others come and change without end.
constexpr int kWritesInOneGo = 20;
constexpr int kDeletesInOneGo = kWritesInOneGo / 2;
// Between two looks at how far a running trial is: a phase, or a lost attempt, shows at once.
constexpr absl::Duration kProgress = absl::Seconds(30);
constexpr absl::Duration kSuggestion = absl::Seconds(10);
// A new trial is about to start: that it has not is worth no write of its own so soon.
constexpr absl::Duration kAboutToStart = absl::Seconds(3);

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

}  // namespace

struct TrialObjects::Pass {
  const Context& context;
  const v1::Experiment& experiment;
  const TrialWindow& window;
  const Json& owner;
  const Presence& presence;
  client::TrialView view;
  int writes = 0;
  absl::Duration again = absl::InfiniteDuration();
  absl::Duration trial_again = absl::InfiniteDuration();  // for the trial that is looked at

  bool full() const { return writes >= kWritesInOneGo; }
  void Again(absl::Duration after) {
    again = std::min(again, after);
    trial_again = std::min(trial_again, after);
  }

  // The object, or its status, as the server has it then.
  Status Apply(const kube::Resource& resource, Json object, const char* subresource) {
    ++writes;
    auto applied = context.kube->Apply(resource, object, kFieldManager, subresource);
    RETURN_IF_ERROR(applied.status());
    if (resource.plural == "trials") context.trials->Put(*applied);
    return absl::OkStatus();
  }
};

StatusOr<absl::Duration> TrialObjects::Put(const Context& context, const Showing& showing) {
  Pass pass{context,       showing.experiment, showing.window,
            showing.owner, showing.presence,   client::TrialView(showing.experiment)};
  const std::map<int64_t, v1::Trial>& trials = showing.window.trials();
  const ExperimentKey key = experiment::KeyOf(showing.experiment);
  std::erase_if(left_, [&](const auto& entry) {
    return showing.presence.touched.count(TrialName({key, entry.first})) > 0;
  });
  RETURN_IF_ERROR(RemoveOthers(pass));
  for (auto it = trials.rbegin(); it != trials.rend() && !pass.full(); ++it) {
    RETURN_IF_ERROR(LookAtTrial(pass, it->second));
  }
  if (!pass.full()) RETURN_IF_ERROR(PutSuggestion(pass));
  if (pass.full()) pass.Again(absl::ZeroDuration());
  return pass.again;
}

// What stands as it was left, in the store and in the cluster, is not compared again.
Status TrialObjects::LookAtTrial(Pass& pass, const v1::Trial& trial) {
  const uint64_t print = Fingerprint(trial.SerializeAsString());
  const absl::Duration now = pass.context.clock->Monotonic();
  const auto left = left_.find(trial.number());
  const bool same = left != left_.end() && left->second.print == print;
  if (same && now < left->second.until) {
    pass.Again(left->second.until - now);
    return absl::OkStatus();
  }
  left_.erase(trial.number());
  pass.trial_again = absl::InfiniteDuration();
  RETURN_IF_ERROR(PutTrial(pass, trial));
  left_[trial.number()] = {print, now + pass.trial_again};
  return absl::OkStatus();
}

Status TrialObjects::PutTrial(Pass& pass, const v1::Trial& trial) {
  const std::string name = TrialName({ExperimentKeyOf(trial), trial.number()});
  const bool settled = HasEnded(trial) && settled_.count(trial.number()) > 0;
  const ObjectJson wanted = TrialObject(pass.view, trial, pass.owner);
  const auto there = pass.context.trials->Find(NamespaceOf(pass.owner), name);
  if (!there) {
    // Somebody deleted it: of a trial that has ended it is only a copy.
    if (settled) return absl::OkStatus();
    RETURN_IF_ERROR(PutObject(pass, wanted, trial));
  } else {
    const bool same = there->value("spec", Json()) == wanted.object["spec"] &&
                      HasLabels(*there, wanted.object["metadata"]["labels"]);
    if (!same) RETURN_IF_ERROR(pass.Apply(Trials(), wanted.object, ""));
    RETURN_IF_ERROR(PutStatus(pass, wanted, *there, trial));
  }
  if (HasEnded(trial)) settled_.insert(trial.number());
  return absl::OkStatus();
}

// Created, not applied: an object of that name that is another's stays as it is.
Status TrialObjects::PutObject(Pass& pass, const ObjectJson& wanted, const v1::Trial& trial) {
  ++pass.writes;
  const auto created = pass.context.kube->Create(Trials(), wanted.object);
  if (absl::IsAlreadyExists(created.status())) {
    // Ours, then the watch will show it; another's, then there is nothing to be done.
    pass.Again(kProgress);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(created.status());
  pass.context.trials->Put(*created);
  shown_[trial.number()] = pass.context.clock->Monotonic();
  return PutStatus(pass, wanted, *created, trial);
}

Status TrialObjects::PutStatus(Pass& pass, const ObjectJson& wanted, const Json& there,
                               const v1::Trial& trial) {
  const Json status = StatusOf(there);
  if (status == wanted.status) return absl::OkStatus();
  const absl::Duration now = pass.context.clock->Monotonic();
  const auto shown = shown_.find(trial.number());
  absl::Duration patience = -absl::InfiniteDuration();
  if (Landmarks(status) == Landmarks(wanted.status)) patience = kProgress;
  if (status.empty() && trial.phase() == v1::TRIAL_PENDING) patience = kAboutToStart;
  if (shown != shown_.end() && now < shown->second + patience) {
    pass.Again(shown->second + patience - now);
    return absl::OkStatus();
  }
  shown_[trial.number()] = now;
  Json object = {
      {"apiVersion", kApiVersion},
      {"kind", "Trial"},
      {"metadata", {{"name", NameOf(wanted.object)}, {"namespace", NamespaceOf(wanted.object)}}},
      {"status", wanted.status}};
  const Status applied = pass.Apply(Trials(), std::move(object), "status");
  // Deleted meanwhile.
  return absl::IsNotFound(applied) ? absl::OkStatus() : applied;
}

Status TrialObjects::RemoveOthers(Pass& pass) {
  std::set<std::string> wanted;
  const ExperimentKey key = experiment::KeyOf(pass.experiment);
  for (const auto& [number, trial] : pass.window.trials()) wanted.insert(TrialName({key, number}));
  for (const std::string& name : pass.presence.names) {
    if (wanted.count(name) > 0) continue;
    if (pass.writes >= kDeletesInOneGo) {
      pass.Again(absl::ZeroDuration());
      break;
    }
    ++pass.writes;
    const Status deleted = pass.context.kube->Delete({Trials(), key.ns, name}, {});
    if (!deleted.ok() && !absl::IsNotFound(deleted)) return deleted;
  }
  const auto gone = [&](int64_t number) { return pass.window.trials().count(number) == 0; };
  std::erase_if(settled_, gone);
  std::erase_if(left_, [&](const auto& entry) { return gone(entry.first); });
  std::erase_if(shown_, [&](const auto& entry) { return gone(entry.first); });
  return absl::OkStatus();
}

Status TrialObjects::PutSuggestion(Pass& pass) {
  ObjectJson wanted = SuggestionObject(pass.experiment, pass.window.Live(), pass.owner);
  Json whole = wanted.object;
  whole["status"] = wanted.status;
  if (suggestion_ == whole) return absl::OkStatus();
  const absl::Duration now = pass.context.clock->Monotonic();
  const bool ended = experiment::IsEnded(pass.experiment);
  if (suggestion_ && !ended && now < suggested_ + kSuggestion) {
    pass.Again(suggested_ + kSuggestion - now);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(pass.Apply(Suggestions(), wanted.object, ""));
  Json status = {
      {"apiVersion", kApiVersion},
      {"kind", "Suggestion"},
      {"metadata", {{"name", NameOf(wanted.object)}, {"namespace", NamespaceOf(wanted.object)}}},
      {"status", wanted.status}};
  status["status"]["lastReconcileTime"] = FormatTime(ToProto(pass.context.clock->Now()));
  RETURN_IF_ERROR(pass.Apply(Suggestions(), std::move(status), "status"));
  suggestion_ = std::move(whole);
  suggested_ = now;
  return absl::OkStatus();
}

}  // namespace shirabe::crd
