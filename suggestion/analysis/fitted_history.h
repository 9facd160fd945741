// The model that a history gives to the analyses: a Gaussian process over its points, the functions
// that the objective may be after it, and how far it is to be trusted. Pure but for a cache of
// fitted parameters, which changes no answer; any thread.
//
// The process is of the objective as it is, where Bayesian optimisation learns from a warp of it
// that serves the better half: shares of a variance are about all of the space. Only where that
// explains little, and a Yeo-Johnson warp more, is the process one of that.
#pragma once

#include <optional>

#include "suggestion/analyses.h"
#include "suggestion/analysis/posterior_functions.h"
#include "suggestion/gp/surrogate.h"
#include "suggestion/history.h"

namespace shirabe::suggestion::analysis {

class FittedHistory {
 public:
  static constexpr int kMinResults = 4;

  // From the memo of the history, where that has fitted parameters: then without another fit.
  explicit FittedHistory(const History& history);

  const Basis& basis() const { return basis_; }
  // Where basis().too_few is "": the rest.
  bool has_model() const { return surrogate_.has_value(); }
  const gp::InputLayout& layout() const { return layout_; }
  const gp::Surrogate& surrogate() const { return *surrogate_; }
  Eigen::Index observed() const { return surrogate_->posterior.size(); }
  // The same draws each time.
  PosteriorFunctions Draw(int draws) const;
  // Of what is asked of the whole space; of thousands of trials in a crowd only some then count.
  PosteriorFunctions DrawOfSpace(int draws) const;

 private:
  Basis basis_;
  gp::InputLayout layout_;
  std::optional<gp::Surrogate> surrogate_;
};

}  // namespace shirabe::suggestion::analysis
