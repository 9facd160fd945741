// Functions that the objective may be, after what a history says of it: the mean of a Gaussian
// process and functions drawn from its posterior, as losses, in the objective's own unit. What is
// computed of each of them alike (an index of importance, an average, a gain) has a spread, which
// is how well it can be known, as far as draws of a process tell: they differ in what the trials
// leave open, and in θ. Immutable once made; any thread.
//
//   f, f_s   the posterior's mean; draw s of S              n    observed points
//   g_s      draw s of the prior, by M random features      ω    frequencies, b phases
//   ε_s      noise of the draw, N(0, σ²) each               K, k, β  as in gaussian_process.h
//
//   f_s(x) = g_s(x) + β + k(x,X) K⁻¹ (y - β - g_s(X) - ε_s)    by pathwise conditioning (Matheron's
//     rule): J. Wilson et al., "Efficiently sampling functions from Gaussian process posteriors",
//     ICML 2020, (12), (13)
//   g_s(x) = √(2/M) Σ_m w_ms cos(ω_mᵀx + b_m), w ~ N(0, 1): A. Rahimi, B. Recht, "Random features
//     for large-scale kernel machines", NeurIPS 2007. Of a Matérn-5/2, ω ℓ is a multivariate t
//     with 5 degrees of freedom. Of categories, exp(-Σ [u ≠ u'] / ℓ) is the expectation of a
//     product over the coordinates of signs, which with probability exp(-1/ℓ) are the same for all
//     categories, and else one for each.
//
// Where no trial is repeated nothing says how much of σ² is noise, and how much the objective's
// own, on a scale finer than the trials: N. Cressie, "Statistics for spatial data" (1993), 3.2.1.
// What is asked of the whole space (of_space) is asked of functions that have some of it.
#pragma once

#include <Eigen/Dense>
#include <vector>

#include "base/rng.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/surrogate.h"

namespace shirabe::suggestion::analysis {

// What scores of a warp are as losses: its Unwarp from a table, since it is asked for millions of
// values, and beyond the best and the worst that was seen with no steeper slope than between them.
class LossTable {
 public:
  explicit LossTable(const gp::Warp& warp);
  double At(double y) const;

 private:
  double low_, high_;  // of the warped scores
  double below_ = 0, above_ = 0;
  std::vector<double> losses_;  // at equal distances from low_ to high_
};

class PosteriorFunctions {
 public:
  struct Draws {
    int count = 0;
    // Up to so many observed points they differ in θ, too.
    Eigen::Index most_for_theta = 128;
    // More of them, where they crowd: by 128 that stand for most of the space. And each draw
    // varies between trials by a share of σ² of its own, from none to all of it.
    bool of_space = false;
  };
  // `layout`: of the surrogate's inputs.
  PosteriorFunctions(const gp::InputLayout& layout, const gp::Surrogate& surrogate,
                     const Draws& draws, const Rng& rng);

  // The mean and the draws.
  Eigen::Index count() const { return draws_ + 1; }
  // What a point costs, in covariances with an observed one.
  Eigen::Index cost() const;
  // The losses of each point (rows): column 0 by the mean, the others by one draw each.
  Eigen::MatrixXd Losses(const gp::Inputs& points) const;

 private:
  // Features that share what they look at: numbers, categories, or both.
  struct Block {
    float amplitude;                     // of a feature
    Eigen::MatrixXf frequencies;         // M × p; empty without numbers
    Eigen::ArrayXf phases;               // M
    std::vector<Eigen::ArrayXXf> signs;  // of each categorical coordinate, M × categories
  };
  // The prior of some draws. Draws of different sets share no error of their features.
  struct FeatureSet {
    std::vector<Block> blocks;
    Eigen::MatrixXf weights;  // features of all blocks × draws

    Eigen::MatrixXd At(const gp::Inputs& points) const;
  };
  // A posterior with the targets of some draws: y, and y - g_s(X) - ε_s for each.
  struct Model {
    gp::Covariances covariances;
    Eigen::MatrixXd weights;  // K⁻¹ (y - β) and those of the draws, a row each; zeros below
    double mean;              // β
    std::vector<FeatureSet> sets;  // of the draws, in their order
    Eigen::Index draws;
  };

  // How many of the draws, by how many sets.
  struct Share {
    int draws = 0, sets = 0;
  };

  static std::vector<Block> MakeBlocks(const gp::InputLayout& layout, const gp::Theta& theta,
                                       Rng& rng);
  static void FillNumeric(Block& block, const gp::InputLayout& layout, const gp::Theta& theta,
                          Rng& rng);
  static void FillCategorical(Block& block, const gp::InputLayout& layout, const gp::Theta& theta,
                              Rng& rng);
  void AddModel(const gp::InputLayout& layout, const gp::Posterior& posterior,
                const Eigen::VectorXd& y, Share share);
  // With a θ for each of some sets.
  void AddModels(const gp::InputLayout& layout, const gp::Posterior& posterior,
                 const Eigen::VectorXd& y, int draws);

  void AddRoughness(const gp::Inputs& points, Eigen::Ref<Eigen::MatrixXd> values) const;

  LossTable table_;
  Rng rng_;
  bool of_space_;
  std::vector<double> rough_;  // √(share of σ²) of each draw; empty unless of the space
  Eigen::Index draws_ = 0;
  std::vector<Model> models_;  // the mean is that of the first
};

}  // namespace shirabe::suggestion::analysis
