// The covariance matrix adaptation evolution strategy (Cma), with the weights of a generation's
// members (CmaWeights) and the learning rates that adapt (CmaRate): a normal distribution over the
// numeric coordinates that moves, widens and turns towards where losses are low. It knows the width
// of the unit cube, but no bounds, no trials and no files. Used by suggestion/cmaes/cma_search.h. A
// value type; it draws no random numbers.
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
// External Solutions Into CMA-ES" (2011, arXiv 1110.4181). Learning rates: CmaRate, below.
#pragma once

#include <Eigen/Core>
#include <optional>
#include <vector>

#include "suggestion/cmaes/cma_covariance.h"

namespace shirabe::suggestion {

// Learning rates that follow the signal: under noise, and on functions with many local optima, the
// steps of single generations contradict each other, and smaller steps of the same kind average
// over them. Used by Cma where the setting lr_adapt is true. A value type.
//
//   Δ        natural step of one generation (of m, or of Σ = σ²C), in the coordinates in which the
//            distribution is the standard normal one; any shape
//   E, V     moving averages of Δ and of |Δ|², both with rate β
//   SNR      (|E|² − β/(2−β) V) / (V − |E|²), estimated ratio of signal to noise
//   η        the factor to apply to Δ, in (0, 1]: kept where SNR = α η
//
// M. Nomura, Y. Akimoto, I. Ono, "CMA-ES with Learning Rate Adaptation: Can CMA-ES with Default
// Population Size Solve Multimodal and Noisy Problems?" (GECCO 2023), section 4: α = 1.4, γ = 0.1,
// β = 0.1 for m and 0.03 for Σ.
class CmaRate {
 public:
  // For steps of `rows` × `columns`, averaged with rate `beta`.
  CmaRate(Eigen::Index rows, Eigen::Index columns, double beta)
      : beta_(beta), mean_(Eigen::MatrixXd::Zero(rows, columns)) {}

  // Takes in one step; value() follows.
  void Observe(const Eigen::MatrixXd& step);
  double value() const { return rate_; }
  void Fields(CmaRecord& record);

 private:
  double beta_;
  Eigen::MatrixXd mean_;  // E
  double square_ = 0;     // V
  double rate_ = 1;       // η
};

// What one generation of CMA-ES is worth: the weights of its members by rank, and the learning
// rates that follow from them. Used by Cma. Pure functions.
//
//   n        members of the generation                   d    dimensions
//   r_i      rank of member i, 1 = best; equal losses share the mean of their ranks
//   w_i      weight; those of the better half are positive and add up to 1 (Σ⁺), the others are
//            negative: the "active" update
//   μ_eff    1 / Σ⁺ w_i², how many members the mean is effectively made of
//   c_σ, d_σ rate and damping of the step size           c_c  rate of the path of C
//   c_1, c_μ rates of the rank-one and rank-μ update of C
//
// N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016, arXiv 1604.00772), equations 49–58 and
// Table 1. n is that of the generation at hand, which may have more members than asked for, so
// everything is computed again for each. Separable: c_1 and c_μ times (d + 2) / 3, Ros & Hansen
// 2008.
struct CmaWeights {
  Eigen::VectorXd w;  // by member, not by rank
  double mu_eff = 0;
  double c_sigma = 0, d_sigma = 0;
  double c_c = 0, c_1 = 0, c_mu = 0;
  // Whether the ranks prefer anything: false where all are equal, and then the rest is void.
  bool informative = false;
};

CmaWeights MakeCmaWeights(const Eigen::VectorXd& ranks, int dimensions, bool separable);

// The ranks of `keys`, ascending, 1-based; equal keys get the mean of the ranks that they take up.
Eigen::VectorXd AverageRanks(const std::vector<double>& keys);

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
  // Whether C ever ceased to be positive definite, as far as doubles go, and was reset.
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
