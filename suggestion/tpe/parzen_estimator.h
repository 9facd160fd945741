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
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

class ParzenEstimator {
 public:
  // How wide the kernels are.
  enum class Bandwidth {
    kGaps,   // σ_ij = the wider gap to the next centre that differs, divided by how many have this
             // value where values are levels; for one axis alone
    kScott,  // σ_ij = s_j n^(-1/(a+4)), s_j a deviation on axis j (Scott 1992, eq. 6.42)
  };
  struct Options {
    Bandwidth bandwidth = Bandwidth::kScott;
    double prior_weight = 1;   // w_0, in kernels of mean weight; > 0
    double min_bandwidth = 0;  // of numeric axes; none is narrower than 10^-6 or wider than 1
    double scale = 1;          // multiplies the rule of kScott
  };
  struct Kernels {
    Eigen::ArrayXXd centres;  // n×a, columns in the order of `axes`; canonical
    Eigen::ArrayXd weights;   // n; empty: all equal
  };

  // Over `axes` of the space, which need not be all. n = 0 leaves the prior alone.
  ParzenEstimator(const Space& space, const std::vector<int>& axes, Kernels kernels,
                  const Options& options);

  // Draws the coordinates of its axes into `point`, which has one for every axis of the space;
  // those of continuous axes are not canonical yet.
  void Sample(Rng& rng, Point& point) const;

  // log f for each point, within 10^-6; only the coordinates of its axes are read. Finite: the
  // prior is everywhere.
  Eigen::ArrayXd LogDensity(const std::vector<Point>& points) const;

  // σ_ij, j counting its axes; 0 where that is categorical.
  double bandwidth(Eigen::Index i, int j) const;

 private:
  // One axis. What depends on a kernel's coordinate alone is kept and computed once for each place
  // where kernels are: that is one a kernel where the axis is continuous, else one a value.
  struct Column {
    enum class Kind { kReal, kLevels, kCategories };
    Kind kind = Kind::kReal;
    int axis = 0;
    std::vector<Eigen::Index> place;     // n, of each kernel; empty where kReal: the kernel's own
    Eigen::ArrayXd centre;               // of each place, as the rest
    Eigen::ArrayXd sigma;                // empty where kCategories
    Eigen::ArrayXd root_precision;       // 1 / (σ √2)
    Eigen::ArrayXd log_inside;           // log Z
    double log_same = 0, log_other = 0;  // log k(μ), log k(x ≠ μ); kCategories

    Eigen::Index PlaceOf(Eigen::Index kernel) const {
      return place.empty() ? kernel : place[kernel];
    }
  };
  class Tables;
  // The kernels of a single continuous axis, so that only those near a point are looked at: first
  // the wide ones, then the others by centre. Empty where there is not one such axis alone.
  struct Nearby {
    Eigen::ArrayXd centre, root_precision, bias;
    Eigen::Index wide = 0;
    double reach = 0;  // beyond it, all that are not wide add less than 10^-7 of the prior
  };

  void Locate(Column& column, const Eigen::ArrayXd& x) const;
  void Smooth(Column& column) const;
  void Widen(Column& column, const Eigen::ArrayXd& x, const Options& options);
  void Arrange(const Column& column, std::vector<Eigen::Index> order, double least);
  double SamplePrior(const Column& column, Rng& rng) const;
  double SampleAxis(const Column& column, Eigen::Index kernel, Rng& rng) const;
  double Logarithm(const Point& point, const Tables& tables, Eigen::ArrayXd& terms) const;
  double LogarithmNear(double x, Eigen::ArrayXd& terms) const;

  Space space_;
  std::vector<Column> columns_;
  Eigen::ArrayXd shares_;     // w_i / Σ w; what is missing to 1 is the prior's
  Eigen::ArrayXd cumulated_;  // of shares_, to draw a kernel
  Eigen::ArrayXd bias_;       // log shares_ - Σ_j log(σ_ij Z_ij √2π) over kReal axes
  double prior_ = 1;          // w_0 / Σ w
  Nearby nearby_;
};

}  // namespace shirabe::suggestion
