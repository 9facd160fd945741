#include "experiment/state/shared_history.h"

#include <utility>

#include "base/status.h"
#include "experiment/spec/trial_point.h"

namespace shirabe::experiment {

SharedHistory::SharedHistory(const suggestion::Space& space, const v1::ExperimentSpec& spec,
                             int64_t changes)
    : spec_(ResultSpecOf(spec)),
      changes_(changes),
      history_(std::make_shared<suggestion::History>(space)),  // shared: see the header
      curves_(std::make_shared<suggestion::Curves>()) {}       // shared: see the header

// Numbers are dense from 1, so the history's index is the number less one.
void SharedHistory::Add(const v1::Trial& trial) {
  suggestion::History& history = MutableHistory();
  CHECK(trial.number() == history.size() + 1);
  const TrialPoint at = PointIn(history.space(), changes_, trial);
  suggestion::TrialSummary view = TrialSummaryOf(spec_, trial);
  view.earlier = at.earlier;
  view.outside = at.outside;
  if (at.outside) {
    outside_[trial.number() - 1].assign(trial.assignments().begin(), trial.assignments().end());
  }
  history.Add(at.point, view);
  history.SetLabels(trial.number() - 1, LabelsFor(trial, history.space()));
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

suggestion::Curve& SharedHistory::MutableCurve(int64_t trial, size_t objective) {
  if (curves_.use_count() > 1) curves_ = std::make_shared<suggestion::Curves>(*curves_);  // shared
  curves_->further.resize(spec_.shirabe().additional_objectives_size());
  std::vector<suggestion::Curve>& of =
      objective == 0 ? *curves_ : curves_->further.at(objective - 1);
  if (static_cast<int64_t>(of.size()) < trial) of.resize(trial);
  return of[trial - 1];
}

suggestion::History& SharedHistory::MutableHistory() {
  if (history_.use_count() > 1)
    history_ = std::make_shared<suggestion::History>(*history_);  // shared
  return *history_;
}

}  // namespace shirabe::experiment
