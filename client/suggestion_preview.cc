#include "client/suggestion_preview.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "experiment/conditions.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/experiment_state.h"
#include "experiment/state/warm_start.h"
#include "experiment/submission.h"

namespace shirabe::client {
namespace {

using experiment::ExperimentState;

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

void AddPoint(std::vector<v1::Assignment> assignments, const std::string& explanation,
              v1::SuggestReply& reply) {
  v1::SuggestReply::Point& point = *reply.add_points();
  for (v1::Assignment& one : assignments) *point.add_assignments() = std::move(one);
  point.set_explanation(explanation);
}

Status AddStartPoints(const ExperimentState& state, int count, v1::SuggestReply& reply) {
  const int starts = state.experiment().spec().shirabe().start_size();
  for (int i = static_cast<int>(state.history().size()); i < starts && count > 0; ++i, --count) {
    ASSIGN_OR_RETURN(auto assignments, experiment::StartPoint(state.experiment().spec(), i));
    AddPoint(std::move(assignments), "given in spec.shirabe.start", reply);
  }
  return absl::OkStatus();
}

// As if the points so far were being tried.
suggestion::History HistoryWith(const ExperimentState& state, const v1::SuggestReply& reply) {
  suggestion::History history = state.history();
  for (const v1::SuggestReply::Point& given : reply.points()) {
    const auto point =
        state.space().Encode({given.assignments().begin(), given.assignments().end()});
    if (point.ok()) history.Add(*point, {});
  }
  return history;
}

}  // namespace

StatusOr<v1::SuggestReply> SuggestNext(db::Store& store, const v1::Experiment& experiment,
                                       int count) {
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
  ASSIGN_OR_RETURN(const auto state, ExperimentState::Load(own ? *own : store, key, /*epoch=*/0));
  v1::SuggestReply reply;
  RETURN_IF_ERROR(AddStartPoints(*state, count, reply));
  const int left = count - reply.points_size();
  if (left == 0) return reply;
  suggestion::History history = HistoryWith(*state, reply);
  if (own != nullptr) {  // earlier experiments are in the other store
    ASSIGN_OR_RETURN(auto known, experiment::ReadWarmStart(store, experiment, state->space()));
    history.SetPrior(std::move(known.trials));
  }
  ASSIGN_OR_RETURN(const suggestion::Proposal proposal,
                   state->setup().algorithm->Propose(history, left, Rng(state->setup().seed)));
  for (const suggestion::Suggestion& suggestion : proposal.suggestions) {
    AddPoint(state->space().Decode(suggestion.point), suggestion.explanation, reply);
  }
  reply.set_reason(proposal.reason);
  return reply;
}

namespace {

// Its open trial, running; else why there is none and will not be; else nothing at all.
StatusOr<v1::AskReply> OpenTrialOf(db::Store& store, const ExperimentKey& key,
                                   const std::string& caller) {
  // In this order: a trial that is made in between is seen.
  ASSIGN_OR_RETURN(const auto experiment, store.GetExperiment(key));
  ASSIGN_OR_RETURN(const auto live, store.ListTrials({.experiment = key, .live_only = true}));
  v1::AskReply asked;
  for (const auto& [trial, revision] : live) {
    if (trial.caller() != caller) continue;
    if (trial.phase() != v1::TRIAL_RUNNING) return asked;  // it soon is
    ASSIGN_OR_RETURN(
        const auto attempts,
        store.ListAttempts({.experiment = key, .trial = trial.number(), .open_only = true}));
    if (attempts.empty() || attempts[0].record.state() != v1::ATTEMPT_RUNNING) return asked;
    *asked.mutable_trial() = trial;
    asked.set_attempt(attempts[0].record.number());
    asked.set_token(attempts[0].record.token());
    return asked;
  }
  const v1::Experiment& record = experiment.record;
  // One that is tried again waits for the next caller that asks.
  const bool waits = std::any_of(live.begin(), live.end(),
                                 [](const auto& trial) { return trial.record.caller().empty(); });
  if (waits && !experiment::IsEnded(record)) return asked;
  if (experiment::IsEnded(record)) {
    asked.set_ended(true);
    asked.set_reason("the experiment has ended: " + experiment::CurrentCondition(record).message());
  } else if (record.spec().has_max_trial_count() &&
             record.status().trials() >= record.spec().max_trial_count()) {
    asked.set_reason(absl::StrCat("all ", record.status().trials(), " trials have been given out, ",
                                  live.size(), " of them have no result yet"));
  } else if (record.status().shirabe().exhausted()) {
    asked.set_reason("the algorithm has no further point; " + std::to_string(live.size()) +
                     " trials have no result yet");
  }
  return asked;
}

}  // namespace

StatusOr<v1::AskReply> FindAskReply(db::Store& store, const ExperimentKey& key,
                                    const std::string& caller, experiment::Controller* controller) {
  ASSIGN_OR_RETURN(v1::AskReply asked, OpenTrialOf(store, key, caller));
  if (asked.has_trial() || !asked.reason().empty()) return asked;
  ASSIGN_OR_RETURN(const auto now, store.GetExperiment(key));
  asked.set_pending(true);
  asked.set_reason(now.record.status().shirabe().waiting());
  const std::string error = controller == nullptr ? "" : controller->LastError(key);
  if (!error.empty()) asked.set_reason("no point yet: " + error);
  if (asked.reason().empty()) asked.set_reason("no point yet: ask again");
  return asked;
}

}  // namespace shirabe::client
