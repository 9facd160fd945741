#include "view/wait_condition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/records/enum_words.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::view {
namespace {

constexpr int64_t kPage = 256;

}  // namespace

Status EachTrialPage(client::Client& client, const ExperimentKey& key,
                     const std::function<bool(std::vector<v1::Trial>&)>& page) {
  db::TrialQuery query{.experiment = key, .limit = kPage};
  for (;;) {
    ASSIGN_OR_RETURN(auto trials, client.ListTrials(query));
    if (trials.empty()) return absl::OkStatus();
    query.after_number = trials.back().number();
    const bool last = static_cast<int64_t>(trials.size()) < kPage;
    if (!page(trials) || last) return absl::OkStatus();
  }
}

namespace {

using Kind = AwaitCondition::Kind;

// A server that is asked for longer is asked again.
constexpr absl::Duration kMaxAwaitCall = absl::Minutes(1);

constexpr std::pair<const char*, Kind> kWords[] = {
    {"succeeded", Kind::kSucceeded}, {"failed", Kind::kFailed},   {"completed", Kind::kCompleted},
    {"running", Kind::kRunning},     {"deleted", Kind::kDeleted},
};

Status NoCondition(const std::string& text) {
  return absl::InvalidArgumentError("--for " + text +
                                    " is not a condition: it is succeeded, failed, completed, "
                                    "running, deleted, 'metric=loss<0.1' "
                                    "or 'best<0.1'");
}

// The text without this start; whether it had it.
bool Strip(const std::string& prefix, std::string& text) {
  if (!absl::StartsWithIgnoreCase(text, prefix)) return false;
  text.erase(0, prefix.size());
  return true;
}

AwaitOutcome Decided(bool met, bool over, std::string state) {
  return {met    ? AwaitResult::kMet
          : over ? AwaitResult::kNever
                 : AwaitResult::kTimedOut,
          std::move(state)};
}

Status CheckMetric(const v1::Experiment& experiment, const AwaitCondition& condition) {
  const auto names = client::MetricNames(experiment);
  const std::string& name = condition.term.field;
  const bool best = condition.kind == Kind::kBest;
  if (best && (name.empty() || name == names[0])) return absl::OkStatus();
  if (!best && std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--for ", condition.text, ": experiment ", experiment.metadata().name(),
                   best ? " has another objective, " : " has no such metric; it has ",
                   best ? names[0] : absl::StrJoin(names, ", ")));
}

bool MetricMatches(const v1::Experiment& experiment, const v1::Trial& trial,
                   const AwaitCondition& condition) {
  const auto shown = client::ShownMetric(experiment, trial, condition.term.field);
  return shown && Holds(FieldValue(shown->value), condition.term);
}

bool BestMatches(const v1::Experiment& experiment, const AwaitCondition& condition) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  return best.has_objective() && Holds(FieldValue(best.objective()), condition.term);
}

StatusOr<bool> AnyTrialMatches(client::Client& client, const v1::Experiment& experiment,
                               const AwaitCondition& condition) {
  bool met = false;
  RETURN_IF_ERROR(EachTrialPage(client, experiment::KeyOf(experiment),
                                [&](const std::vector<v1::Trial>& trials) {
                                  for (const v1::Trial& trial : trials) {
                                    met = met || MetricMatches(experiment, trial, condition);
                                  }
                                  return !met;
                                }));
  return met;
}

StatusOr<AwaitOutcome> CheckExperiment(client::Client& client, const ExperimentKey& key,
                                       const AwaitCondition& condition) {
  const auto found = client.GetExperiment(key);
  if (absl::IsNotFound(found.status()) && condition.kind == Kind::kDeleted) {
    return AwaitOutcome{AwaitResult::kMet, "deleted"};
  }
  RETURN_IF_ERROR(found.status());
  const bool ended = experiment::IsEnded(*found);
  const std::string type = experiment::CurrentCondition(*found).type();
  const std::string state = client::StateWord(*found);
  switch (condition.kind) {
    case Kind::kSucceeded: return Decided(ended && type == "Succeeded", ended, state);
    case Kind::kFailed: return Decided(ended && type == "Failed", ended, state);
    case Kind::kCompleted: return Decided(ended, false, state);
    case Kind::kRunning: return Decided(ended || type == "Running", false, state);
    case Kind::kDeleted: return Decided(false, false, state);
    case Kind::kBest:
      RETURN_IF_ERROR(CheckMetric(*found, condition));
      return Decided(BestMatches(*found, condition), ended, state);
    case Kind::kMetric: break;
  }
  RETURN_IF_ERROR(CheckMetric(*found, condition));
  ASSIGN_OR_RETURN(const bool met, AnyTrialMatches(client, *found, condition));
  return Decided(met, ended, state);
}

StatusOr<AwaitOutcome> CheckTrial(client::Client& client, const TrialKey& key,
                                  const AwaitCondition& condition) {
  const auto found = client.GetTrial(key);
  if (absl::IsNotFound(found.status()) && condition.kind == Kind::kDeleted) {
    return AwaitOutcome{AwaitResult::kMet, "deleted"};
  }
  RETURN_IF_ERROR(found.status());
  const v1::TrialPhase phase = found->phase();
  const bool ended = client::IsTerminal(phase);
  const std::string state = client::PhaseWord(phase);
  const bool succeeded = phase == v1::TRIAL_SUCCEEDED || phase == v1::TRIAL_EARLY_STOPPED;
  switch (condition.kind) {
    case Kind::kSucceeded: return Decided(succeeded, ended, state);
    case Kind::kFailed: return Decided(ended && !succeeded, ended, state);
    case Kind::kCompleted: return Decided(ended, false, state);
    case Kind::kRunning: return Decided(found->has_start_time(), ended, state);
    case Kind::kDeleted: return Decided(false, false, state);
    case Kind::kBest:
      return absl::InvalidArgumentError("--for " + condition.text +
                                        " is of an experiment; of a trial it is metric=NAME<0.1");
    case Kind::kMetric: break;
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key.experiment));
  RETURN_IF_ERROR(CheckMetric(experiment, condition));
  return Decided(MetricMatches(experiment, *found, condition), ended, state);
}

StatusOr<AwaitOutcome> CheckOnce(client::Client& client, const AwaitTarget& target,
                                 const AwaitCondition& condition) {
  return target.trial ? CheckTrial(client, *target.trial, condition)
                      : CheckExperiment(client, target.experiment, condition);
}

}  // namespace

StatusOr<AwaitCondition> ParseAwaitCondition(const std::string& text) {
  AwaitCondition condition;
  condition.text = text;
  for (const auto& [word, kind] : kWords) {
    if (!absl::EqualsIgnoreCase(text, word)) continue;
    condition.kind = kind;
    return condition;
  }
  std::string rest = text;
  condition.kind = Kind::kMetric;
  if (!Strip("metric=", rest)) {
    const bool has_comparison = rest.size() > 4 && std::string("=<>!").find(rest[4]) != rest.npos;
    if (has_comparison && Strip("best", rest)) {
      condition.kind = Kind::kBest;
      // best=loss<0.1 names the objective, best=0.1 a value.
      const bool names =
          rest.find_first_of("<>=!", 1) != std::string::npos && rest[0] == '=' && rest[1] != '=';
      rest = names ? rest.substr(1) : "best" + rest;
    }
  }
  const auto terms = ParseFilter(rest[0] == '<' || rest[0] == '>' ? "best" + rest : rest);
  if (!terms.ok() || terms->size() != 1 || (*terms)[0].text.empty()) return NoCondition(text);
  condition.term = (*terms)[0];
  if (condition.kind == Kind::kBest && condition.term.field == "best") condition.term.field = "";
  return condition;
}

StatusOr<AwaitOutcome> Await(client::Client& client, const AwaitTarget& target,
                             const AwaitCondition& condition, absl::Duration deadline) {
  for (;;) {
    // In this order: what changes in between wakes us at once.
    ASSIGN_OR_RETURN(const int64_t revision, client.Revision());
    ASSIGN_OR_RETURN(AwaitOutcome outcome, CheckOnce(client, target, condition));
    if (outcome.awaited != AwaitResult::kTimedOut) return outcome;
    const absl::Duration left = deadline - RealClock()->Monotonic();
    if (left <= absl::ZeroDuration()) return outcome;
    RETURN_IF_ERROR(client.AwaitChange(revision, std::min(left, kMaxAwaitCall)).status());
  }
}

}  // namespace shirabe::view
