#include "experiment/state/shared_history.h"

#include <utility>

#include "base/status.h"
#include "experiment/spec/objective_value.h"

namespace shirabe::experiment {

bool IsTerminal(v1::TrialPhase phase) {
  return phase != v1::TRIAL_PENDING && phase != v1::TRIAL_RUNNING;
}

suggestion::TrialSummary TrialSummaryOf(const v1::ObjectiveSpec& objective,
                                        const v1::Trial& trial) {
  suggestion::TrialSummary view;
  view.last_step = trial.last_step();
  view.parent = trial.parent().trial();
  view.early_stopped = trial.phase() == v1::TRIAL_EARLY_STOPPED;
  if (!IsTerminal(trial.phase())) return view;
  const bool usable = trial.phase() == v1::TRIAL_SUCCEEDED || view.early_stopped;
  view.state = suggestion::TrialState::kInfeasible;
  if (usable && trial.has_objective()) {
    view.state = suggestion::TrialState::kCompleted;
    view.loss = LossOf(objective, trial.objective());
  }
  return view;
}

SharedHistory::SharedHistory(const suggestion::Space& space, v1::ObjectiveSpec objective)
    : objective_(std::move(objective)),
      history_(std::make_shared<suggestion::History>(space)),  // shared: see the header
      curves_(std::make_shared<suggestion::Curves>()) {}       // shared: see the header

// Numbers are dense from 1, so the history's index is the number less one.
void SharedHistory::Add(const v1::Trial& trial) {
  suggestion::History& history = MutableHistory();
  CHECK(trial.number() == history.size() + 1);
  const auto& x = trial.point().x();
  history.Add(suggestion::Point(x.begin(), x.end()), TrialSummaryOf(objective_, trial));
  history.SetLabels(trial.number() - 1, {trial.labels().begin(), trial.labels().end()});
}

void SharedHistory::Update(const v1::Trial& trial) {
  MutableHistory().Update(trial.number() - 1, TrialSummaryOf(objective_, trial));
}

void SharedHistory::SetMemo(const std::string& memo) {
  if (memo != history_->memo()) MutableHistory().set_memo(memo);
}

void SharedHistory::SetPrior(std::vector<suggestion::PriorTrial> prior) {
  MutableHistory().SetPrior(std::move(prior));
}

suggestion::Curve& SharedHistory::MutableCurve(int64_t trial) {
  if (curves_.use_count() > 1) curves_ = std::make_shared<suggestion::Curves>(*curves_);  // shared
  if (static_cast<int64_t>(curves_->size()) < trial) curves_->resize(trial);
  return (*curves_)[trial - 1];
}

suggestion::History& SharedHistory::MutableHistory() {
  if (history_.use_count() > 1)
    history_ = std::make_shared<suggestion::History>(*history_);  // shared
  return *history_;
}

}  // namespace shirabe::experiment
