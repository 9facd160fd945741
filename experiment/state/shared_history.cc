#include "experiment/state/shared_history.h"

#include <utility>

#include "base/status.h"

namespace shirabe::experiment {

SharedHistory::SharedHistory(const suggestion::Space& space, const v1::ExperimentSpec& spec)
    : spec_(ResultSpecOf(spec)),
      history_(std::make_shared<suggestion::History>(space)),  // shared: see the header
      curves_(std::make_shared<suggestion::Curves>()) {}       // shared: see the header

// Numbers are dense from 1, so the history's index is the number less one.
void SharedHistory::Add(const v1::Trial& trial) {
  suggestion::History& history = MutableHistory();
  CHECK(trial.number() == history.size() + 1);
  const auto& x = trial.point().x();
  history.Add(suggestion::Point(x.begin(), x.end()), TrialSummaryOf(spec_, trial));
  history.SetLabels(trial.number() - 1, {trial.labels().begin(), trial.labels().end()});
  AddToFront(trial);
}

bool SharedHistory::Update(const v1::Trial& trial) {
  MutableHistory().Update(trial.number() - 1, TrialSummaryOf(spec_, trial));
  return AddToFront(trial);
}

bool SharedHistory::AddToFront(const v1::Trial& trial) {
  if (!HasSeveralObjectives(spec_) || !IsTerminal(trial.phase())) return false;
  return front_.Add(*history_, trial.number() - 1);
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
