// Makes the draws of a generation orthogonal to each other, d at a time: directions that are tried
// once are not tried again by chance, and the mean moves by a better estimate from as many trials.
// Used by suggestion/cma_search.h. A value type.
//
//   z        normal vector of length ‖z‖ in ℝ^d       q_k    orthonormal directions of the block
//
// z' = ‖z‖ v / ‖v‖ with v = z − Σ_k q_k (q_kᵀ z): the length stays that of a normal vector and the
// direction is uniform among those left, so that each z' alone is N(0, I) as before. H. Wang,
// M. Emmerich, T. Bäck, "Mirrored Orthogonal Sampling with Pairwise Selection in Evolution
// Strategies" (SAC 2014), without the mirrors, which active weights do not bear.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace shirabe::suggestion {

class CmaFrame {
 public:
  // z'.
  Eigen::VectorXd Turned(const Eigen::VectorXd& z) const;
  // Takes in a vector of the generation, turned or of another origin.
  void Add(const Eigen::VectorXd& z);

 private:
  Eigen::VectorXd Rest(const Eigen::VectorXd& z) const;

  std::vector<Eigen::VectorXd> directions_;  // q_k; the block is full with d of them
};

}  // namespace shirabe::suggestion
