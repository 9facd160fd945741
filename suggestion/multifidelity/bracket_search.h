// Hyperband's brackets, for hyperband and bohb: each begins its own number of configurations on
// its own lowest rung and promotes the best 1/eta of every rung to the next, so that no single
// guess is made of how early a loss can be trusted.
//
// No barrier and no least number of machines: a trial is promoted as soon as no outcome of the
// others could keep it out of the best, brackets overlap, and a trial that failed counts as the
// worst of its rung. Where maxTrialCount is near, brackets are made that still fit, and what is
// left is kept for promotions.
#pragma once

#include <memory>

#include "suggestion/multifidelity/configuration_sampler.h"
#include "suggestion/multifidelity/rung_ledger.h"

namespace shirabe::suggestion {

class BracketSearch : public Algorithm {
 public:
  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem);

  BracketSearch(Rungs rungs, ConfigSource searcher, int64_t max_trials);
  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override;

 private:
  RungBracket Plan(int64_t number, int64_t trials) const;
  int64_t MaxPromotions(const RungBracket& bracket, int rung) const;
  int64_t PromotionsLeft(const RungLedger& book) const;
  std::optional<Suggestion> Promote(RungLedger& book) const;
  std::optional<int> FindOpenBracket(RungLedger& book, int64_t left) const;

  Rungs rungs_;
  ConfigSource source_;
  int64_t max_trials_;
};

}  // namespace shirabe::suggestion
