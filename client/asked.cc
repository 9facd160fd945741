#include "client/asked.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "experiment/submit.h"

namespace shirabe::client {
namespace {

// Its open trial, running; else why there is none and will not be; else nothing at all.
StatusOr<Asked> OpenTrialOf(db::Store& store, const ExperimentKey& key, const std::string& caller) {
  // In this order: a trial that is made in between is seen.
  ASSIGN_OR_RETURN(const auto experiment, store.GetExperiment(key));
  ASSIGN_OR_RETURN(const auto live, store.ListTrials({.experiment = key, .live_only = true}));
  Asked asked;
  for (const auto& [trial, revision] : live) {
    if (trial.caller() != caller) continue;
    if (trial.phase() != v1::TRIAL_RUNNING) return asked;  // it soon is
    ASSIGN_OR_RETURN(
        const auto attempts,
        store.ListAttempts({.experiment = key, .trial = trial.number(), .open_only = true}));
    if (attempts.empty() || attempts[0].record.state() != v1::ATTEMPT_RUNNING) return asked;
    asked.trial = trial;
    asked.attempt = attempts[0].record.number();
    asked.token = attempts[0].record.token();
    return asked;
  }
  const v1::Experiment& record = experiment.record;
  // One that is tried again waits for whoever asks next.
  const bool waits = std::any_of(live.begin(), live.end(),
                                 [](const auto& trial) { return trial.record.caller().empty(); });
  if (waits && !experiment::IsEnded(record)) return asked;
  if (experiment::IsEnded(record)) {
    asked.ended = true;
    asked.reason = "the experiment has ended: " + experiment::CurrentCondition(record).message();
  } else if (record.spec().has_max_trial_count() &&
             record.status().trials() >= record.spec().max_trial_count()) {
    asked.reason = absl::StrCat("all ", record.status().trials(), " trials have been given out, ",
                                live.size(), " of them have not been told yet");
  } else if (record.status().shirabe().exhausted()) {
    asked.reason = "the algorithm has no further point; " + std::to_string(live.size()) +
                   " trials have not been told yet";
  }
  return asked;
}

}  // namespace

StatusOr<Asked> FindAsked(db::Store& store, const ExperimentKey& key, const std::string& caller) {
  ASSIGN_OR_RETURN(Asked asked, OpenTrialOf(store, key, caller));
  if (asked.trial || !asked.reason.empty()) return asked;
  ASSIGN_OR_RETURN(const auto now, store.GetExperiment(key));
  asked.pending = true;
  asked.reason = now.record.status().shirabe().waiting();
  if (asked.reason.empty()) asked.reason = "no point yet: ask again";
  return asked;
}

}  // namespace shirabe::client
