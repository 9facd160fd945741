// From observations to a fitted process: which warp of the objective, which parameters, and what is
// kept of that for the next time. Pure; any thread.
//
// Every warp has its own parameters, fitted from those of the last time. The one whose process
// orders the better half of the points best, each predicted by all others, is used; the last one
// keeps its place unless another is better by more than chance.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "suggestion/gp/model.h"
#include "suggestion/gp/warp.h"

namespace shirabe::suggestion::gp {

// What one suggestion leaves for the next (the algorithm's memo). Without it the answer is as good,
// and slower.
struct Memory {
  int64_t fitted_at = 0;  // points at the last fit; 0 = never
  WarpKind warp = WarpKind::kNone;
  std::array<Theta, 3> thetas;  // by WarpKind; empty = not known

  // Binary, with a checksum. Parse gives an empty memory for what is not its own, or of another
  // space.
  std::string Serialize() const;
  static Memory Parse(const std::string& text, int theta_size);
};

struct Surrogate {
  Warp warp;
  Posterior posterior;
};

// `scores` as for Warp. Fits again if enough points have come since the last fit.
Surrogate Learn(const Inputs& inputs, const Eigen::VectorXd& scores, Memory& memory);

// Of labels that are 1 where a trial gave a result and -1 where it did not. Its parameters are not
// fitted: labels are a step, and the steeper the step, the more would lengths collapse to fit it,
// until every failure speaks for itself alone.
Posterior LearnFeasibility(const Inputs& inputs, const Eigen::VectorXd& labels);

}  // namespace shirabe::suggestion::gp
