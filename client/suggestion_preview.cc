#include "client/suggestion_preview.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiment/conditions.h"
#include "experiment/experiment_state.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "experiment/warm_start.h"

namespace shirabe::client {
namespace {

using experiment::State;

constexpr int kMaxSuggestions = 1000;  // in one answer

// For an experiment that is not stored: a store of its own, where it is.
StatusOr<std::unique_ptr<db::Store>> StoreWith(const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(auto store, db::Open("memory:"));
  db::Batch batch;
  batch.experiment = experiment::KeyOf(experiment);
  batch.put = {experiment, 0};
  RETURN_IF_ERROR(store->Commit(batch).status());
  return store;
}

Status AddStartPoints(const State& state, int count, Candidates& candidates) {
  const int starts = state.experiment().spec().shirabe().start_size();
  for (int i = static_cast<int>(state.history().size()); i < starts && count > 0; ++i, --count) {
    ASSIGN_OR_RETURN(auto assignments, experiment::StartPoint(state.experiment().spec(), i));
    candidates.points.push_back({std::move(assignments), "given in spec.shirabe.start"});
  }
  return absl::OkStatus();
}

// As if the points so far were being tried.
suggestion::History HistoryWith(const State& state, const Candidates& candidates) {
  suggestion::History history = state.history();
  for (const Candidate& candidate : candidates.points) {
    if (auto point = state.space().Encode(candidate.assignments); point.ok()) {
      history.Add(*point, {});
    }
  }
  return history;
}

}  // namespace

StatusOr<Candidates> SuggestNext(db::Store& store, const v1::Experiment& experiment, int count) {
  if (count < 0 || count > kMaxSuggestions) {
    return absl::InvalidArgumentError(absl::StrCat("count: ", count,
                                                   " suggestions are not from 0 to ",
                                                   kMaxSuggestions, ": ask for fewer at a time"));
  }
  const ExperimentKey key = experiment::KeyOf(experiment);
  std::unique_ptr<db::Store> own;
  if (absl::IsNotFound(store.GetExperiment(key).status())) {
    RETURN_IF_ERROR(experiment::CheckWarmStart(store, experiment));
    ASSIGN_OR_RETURN(own, StoreWith(experiment));
  }
  ASSIGN_OR_RETURN(const auto state, State::Load(own ? *own : store, key, /*epoch=*/0));
  Candidates candidates;
  RETURN_IF_ERROR(AddStartPoints(*state, count, candidates));
  const int left = count - static_cast<int>(candidates.points.size());
  if (left == 0) return candidates;
  suggestion::History history = HistoryWith(*state, candidates);
  if (own != nullptr) {  // earlier experiments are in the other store
    ASSIGN_OR_RETURN(auto known, experiment::ReadWarmStart(store, experiment, state->space()));
    history.SetPrior(std::move(known.trials));
  }
  ASSIGN_OR_RETURN(const suggestion::Proposal proposal,
                   state->algorithm->Propose(history, left, Rng(state->seed)));
  for (const suggestion::Suggestion& suggestion : proposal.suggestions) {
    candidates.points.push_back({state->space().Decode(suggestion.point), suggestion.explanation});
  }
  candidates.reason = proposal.reason;
  return candidates;
}

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
  // One that is tried again waits for the next caller that asks.
  const bool waits = std::any_of(live.begin(), live.end(),
                                 [](const auto& trial) { return trial.record.caller().empty(); });
  if (waits && !experiment::IsEnded(record)) return asked;
  if (experiment::IsEnded(record)) {
    asked.ended = true;
    asked.reason = "the experiment has ended: " + experiment::CurrentCondition(record).message();
  } else if (record.spec().has_max_trial_count() &&
             record.status().trials() >= record.spec().max_trial_count()) {
    asked.reason = absl::StrCat("all ", record.status().trials(), " trials have been given out, ",
                                live.size(), " of them have no result yet");
  } else if (record.status().shirabe().exhausted()) {
    asked.reason = "the algorithm has no further point; " + std::to_string(live.size()) +
                   " trials have no result yet";
  }
  return asked;
}

}  // namespace

StatusOr<Asked> FindAskReply(db::Store& store, const ExperimentKey& key,
                             const std::string& caller) {
  ASSIGN_OR_RETURN(Asked asked, OpenTrialOf(store, key, caller));
  if (asked.trial || !asked.reason.empty()) return asked;
  ASSIGN_OR_RETURN(const auto now, store.GetExperiment(key));
  asked.pending = true;
  asked.reason = now.record.status().shirabe().waiting();
  if (asked.reason.empty()) asked.reason = "no point yet: ask again";
  return asked;
}

}  // namespace shirabe::client
