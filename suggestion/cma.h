// The covariance matrix adaptation evolution strategy: a normal distribution over the numeric
// coordinates that moves, widens and turns towards where losses are low. It knows the width
// of the unit cube, but no bounds, no trials and no files. Used by suggestion/cma_search.h. A value
// type; it draws no random numbers.
//
//   d        dimensions                     n        members of a generation
//   m        mean, ℝ^d                      σ        step size, in widths of the unit cube
//   C        covariance of steps, d × d     a        stretch of each axis, 1 but for the margin
//   z        normal vector, N(0, I)         y        step, C^½ z
//   x        point, m + σ a∘y               w_i      weight of member i by its rank
//   p_σ, p_c evolution paths of σ and C     χ        E‖N(0, I)‖
//   t        generations told so far        h_σ    1, or 0 while ‖p_σ‖ is so long that C would
//                                                  learn from a σ that is still far too small
//
// N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016, arXiv 1604.00772), Figure 6; active
// weights and all constants as there. C^-½ is symmetric and C^½ too, so that z is what equation 43
// calls C^-½ y. Points that the distribution did not draw are taken in as in N. Hansen, "Injecting
// External Solutions Into CMA-ES" (2011, arXiv 1110.4181). Learning rates: suggestion/cma_rates.h.
#pragma once

#include <Eigen/Core>
#include <optional>

#include "suggestion/cma_covariance.h"
#include "suggestion/cma_rates.h"
#include "suggestion/cma_weights.h"

namespace shirabe::suggestion {

// Where a distribution begins.
struct CmaStart {
  Eigen::VectorXd mean;
  double sigma = 0;
  Eigen::MatrixXd covariance = {};  // d × d, or d × 1 its diagonal; empty = the identity
};

class Cma {
 public:
  struct Options {
    bool separable = false;    // C is diagonal
    bool adapt_rates = false;  // for noise
  };
  Cma(const CmaStart& start, Options options);

  // The point that the normal vector `z` stands for.
  Eigen::VectorXd At(const Eigen::VectorXd& z) const;
  // The reverse, shortened to a length that z could have: how a point of another origin counts.
  Eigen::VectorXd Injected(const Eigen::VectorXd& x) const;
  // One generation: the z of its members as columns, and their ranks (see AverageRanks). Ranks that
  // are all equal say nothing but that the distribution is too narrow: it widens.
  void Tell(const Eigen::MatrixXd& z, const Eigen::VectorXd& ranks);
  // Moves the mean of one axis and stretches its deviation by a factor > 0.
  void Place(int axis, double mean, double stretch);

  int dimensions() const { return static_cast<int>(mean_.size()); }
  const Eigen::VectorXd& mean() const { return mean_; }
  double sigma() const { return sigma_; }
  // Standard deviation of x in each coordinate.
  Eigen::VectorXd Deviations() const;
  double Condition() const { return covariance_.Condition(); }
  // Whether C ever ceased to be positive definite, as far as doubles go, and was begun anew.
  bool broken() const { return broken_; }
  void Fields(CmaRecord& record);

 private:
  struct Rates {
    CmaRate mean, covariance;
  };
  // Where the update rules lead from here.
  struct Target {
    Eigen::VectorXd mean;
    double sigma = 0;
    Eigen::MatrixXd covariance;
  };

  bool FollowPaths(const CmaWeights& weights, const Eigen::VectorXd& z_mean);
  double PathLength(const CmaWeights& weights) const;
  Eigen::MatrixXd NextCovariance(const CmaWeights& weights, const Eigen::MatrixXd& z,
                                 bool follows) const;
  void Go(Target target, const Eigen::VectorXd& z_mean);
  void StartOver();
  Target Slowed(const Target& target, const Eigen::VectorXd& z_mean);
  void LimitSigma();

  Eigen::VectorXd mean_;
  double sigma_;
  CmaCovariance covariance_;
  Eigen::VectorXd stretch_;          // a
  Eigen::VectorXd path_sigma_;       // p_σ
  Eigen::VectorXd path_covariance_;  // p_c
  int64_t generations_ = 0;          // t
  std::optional<Rates> rates_ = {};  // only with adapt_rates
  bool broken_ = false;
};

}  // namespace shirabe::suggestion
