// A Parzen estimator: a density over the points of a space, one kernel around each point given and
// one prior kernel, which is the distribution that the user gave. TPE and BOHB hold two of them, of
// the good and of the bad trials. Immutable once made; any thread; it copies what it needs.
//
//   n     kernels, without the prior               a    axes that it is over
//   μ_ij  centre of kernel i on axis j             n×a  unit cube; an index where categorical
//   σ_ij  bandwidth                                n×a  unit cube
//   w_i   weight, w_0 that of the prior            n+1  ≥ 0, the density divides by their sum
//   Z_ij  Φ((1-μ_ij)/σ_ij) - Φ(-μ_ij/σ_ij)         n×a  what lies within the cube
//   C     categories of an axis, λ their smoothing
//
//   f(x) = ( w_0 Π_j u_j(x_j) + Σ_i w_i Π_j k_ij(x_j) ) / Σ_i w_i             a product kernel
//     continuous    k(x) = φ((x-μ)/σ) / (σ Z)                                 u = 1
//     n levels      k(x) = (Φ((b-μ)/σ) - Φ((a-μ)/σ)) / Z, level = [a, b)      u = b - a
//     categories    k(x) = (1-λ)·[x = μ] + λ/C  (Aitchison & Aitken 1976)     u = 1/C
//   An axis of more than 10^6 levels counts as continuous.
//
// Bergstra et al., "Algorithms for hyper-parameter optimization" (2011), §4; the joint kernels are
// those of Falkner et al., "BOHB" (2018), §3.2, cut off at the faces of the cube.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "suggestion/space.h"

namespace shirabe::suggestion {

class Parzen {
 public:
  // How wide the kernels are.
  enum class Bandwidth {
    kGaps,   // σ_ij = the wider gap to a neighbouring centre; for one axis alone
    kScott,  // σ_ij = s_j n^(-1/(a+4)), s_j the deviation of the centres (Scott 1992, eq. 6.42)
  };
  struct Options {
    Bandwidth bandwidth = Bandwidth::kScott;
    double prior_weight = 1;   // w_0, in kernels of mean weight; > 0
    double min_bandwidth = 0;  // of numeric axes; none is narrower than 10^-6 or wider than 1
  };
  struct Kernels {
    Eigen::ArrayXXd centres;  // n×a, columns in the order of `axes`; canonical
    Eigen::ArrayXd weights;   // n; empty: all equal
  };

  // Over `axes` of the space, which need not be all. n = 0 leaves the prior alone.
  Parzen(const Space& space, std::vector<int> axes, Kernels kernels, const Options& options);

  // Draws the coordinates of its axes into `point`, which has one for every axis of the space;
  // those of continuous axes are not canonical yet.
  void Sample(Rng& rng, Point& point) const;

  // log f for each point; only the coordinates of its axes are read. Finite: the prior is
  // everywhere.
  Eigen::ArrayXd LogDensity(const std::vector<Point>& points) const;

  // σ of axis `axes[j]`, n numbers; for tests and explanations.
  const Eigen::ArrayXd& bandwidths(int j) const { return columns_[j].sigma; }

 private:
  // One axis. Categorical: only the centres and the two logarithms.
  struct Column {
    int axis = 0;
    Eigen::ArrayXd centre, sigma;
    Eigen::ArrayXd root_precision;       // 1 / (σ √2)
    double log_same = 0, log_other = 0;  // log k(μ), log k(x ≠ μ)
    double log_uniform = 0;              // log u where it is the same for all
  };
  class Tables;

  void Smooth(Column& column, double prior);
  void Widen(Column& column, const Eigen::ArrayXd& weights, const Options& options);
  double SamplePrior(const Column& column, Rng& rng) const;
  double SampleAxis(const Column& column, Eigen::Index kernel, Rng& rng) const;
  double Logarithm(const Point& point, const Tables& tables, Eigen::ArrayXd& terms) const;

  Space space_;
  std::vector<Column> columns_;
  Eigen::ArrayXd cumulated_;  // of w_i / Σ w, for drawing a kernel; the rest is the prior
  Eigen::ArrayXd bias_;       // log(w_i / Σ w) - Σ_j log(σ_ij Z_ij √2π) over continuous axes
  double log_prior_ = 0;      // log(w_0 / Σ w)
};

}  // namespace shirabe::suggestion
