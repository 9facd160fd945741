// The trials of an experiment as its algorithm and its early-stopping rule see them. Both answer in
// other threads: what a call under way holds stays as it is, and a change then makes a copy first.
// Changed by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiment/spec/trial_result.h"
#include "experiment/state/result_front.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "suggestion/early_stopping.h"
#include "suggestion/history.h"

namespace shirabe::experiment {

class SharedHistory {
 public:
  // Of a specification of which only objectives and constraints are kept. `changes`: how often its
  // ranges have been changed (trial_point.h).
  SharedHistory(const suggestion::Space& space, const v1::ExperimentSpec& spec, int64_t changes);

  const suggestion::History& history() const { return *history_; }
  using HistoryPtr = std::shared_ptr<const suggestion::History>;  // shared with a proposal
  HistoryPtr history_snapshot() const { return history_; }
  // What the trials have reported, by trial; empty without early stopping.
  using CurvesPtr = std::shared_ptr<const suggestion::Curves>;  // shared with a question
  CurvesPtr curves_snapshot() const { return curves_; }

  // Of the trials that have ended; empty where there is one objective.
  const ResultFront& front() const { return front_; }
  // The values of trials that lie outside of the ranges, whose points do not tell them; by index.
  const OutsideTrials& outside() const { return outside_; }

  // The trial with the next number.
  void Add(const v1::Trial& trial);
  // Whether it has come onto the front.
  bool Update(const v1::Trial& trial);
  // The curves of the same trials.
  void AdoptCurves(const SharedHistory& other) { curves_ = other.curves_; }
  void SetMemo(const std::string& memo);
  void SetPrior(std::vector<suggestion::PriorTrial> prior);
  // Of an objective, 0 the first.
  suggestion::Curve& MutableCurve(int64_t trial, size_t objective);

 private:
  suggestion::History& MutableHistory();
  bool AddToFront(const v1::Trial& trial);

  v1::ExperimentSpec spec_;
  int64_t changes_;
  OutsideTrials outside_;
  ResultFront front_;
  std::shared_ptr<suggestion::History> history_;  // shared with a proposal under way
  std::shared_ptr<suggestion::Curves> curves_;    // shared with a question under way
};

}  // namespace shirabe::experiment
