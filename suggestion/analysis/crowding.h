// How evenly trials stand for the space: a search crowds where the objective is best, and its many
// trials there tell of little more than one of them. Pure; any thread.
//
//   w_i   share of the space that is nearer to trial i than to any other
//
// A sample of the space that is replaced by the nearest trials, point by point, weights them by w:
// M. Loog, "Nearest neighbor-based importance weighting", MLSP 2012.
#pragma once

#include <vector>

#include "suggestion/analysis/estimate.h"

namespace shirabe::suggestion::analysis {

class Crowding {
 public:
  // `inputs`: one at least.
  Crowding(const gp::InputLayout& layout, const gp::Inputs& inputs);

  // So many trials, spread evenly, would stand for the space as well as these: (Σ w²)⁻¹, over that
  // of as many points of a Sobol sequence as there are trials, times their count; 1 to n.
  Eigen::Index even() const { return even_; }
  // So many points of the space by chance, as the trials nearest to them: each once, ascending.
  std::vector<Eigen::Index> Sample(Eigen::Index count, Rng& rng) const;
  // Those that stand for most of the space, at most `count`, ascending.
  std::vector<Eigen::Index> Largest(Eigen::Index count) const;

 private:
  Eigen::VectorXd shares_;  // w
  Eigen::Index even_;
};

}  // namespace shirabe::suggestion::analysis
