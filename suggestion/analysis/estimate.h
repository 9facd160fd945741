// What all analyses work with: bands, the functions they look at, and how many of their points a
// history can afford. Plain data; pure; any thread.
#pragma once

#include <Eigen/Dense>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "suggestion/analyses.h"
#include "suggestion/gp/acquisition_search.h"

namespace shirabe::suggestion::analysis {

// `values`: the first is that of the mean, the others of one draw each; one value at least. Between
// `low` and `high` another draw would lie with 90 %: of m draws in order, the places 0.05 (m + 1)
// and 0.95 (m + 1). A band that is to one side of the value is widened to it.
Estimate EstimateOf(const Eigen::VectorXd& values);

// Functions of points (rows): the first column by the mean, the others by one draw each.
using Functions = std::function<Eigen::MatrixXd(const gp::Inputs& points)>;

// So many points, spread evenly over the space and as the specification distributes them: the
// `block`-th of several samples that are independent of each other, but spread evenly together.
struct SampleSize {
  Eigen::Index points = 0;
  int block = 0, blocks = 1;
};
// Parameters have a coordinate also where they do not exist, so that one of them can be changed.
gp::Inputs Spread(const gp::InputLayout& layout, const SampleSize& size, uint64_t seed);
// The functions there, where what does not exist makes no difference.
Eigen::MatrixXd ValuesAt(const gp::InputLayout& layout, const Functions& functions,
                         gp::Inputs points);

// The largest power of two of points, from `least` to `most`, with which `times` evaluations of
// each of them, at `cost` covariances (PosteriorFunctions::cost), take some tens of milliseconds; a
// guess by counting.
Eigen::Index AffordablePoints(Eigen::Index cost, double times, Eigen::Index least,
                              Eigen::Index most);

// Column `axis` of the space, in points that are otherwise alike.
void CopyAxis(const gp::InputLayout& layout, int axis, const gp::Inputs& from, gp::Inputs& to);
// The same coordinate in all rows.
void SetAxis(const gp::InputLayout& layout, int axis, double coordinate, gp::Inputs& points);

// How evenly trials stand for the space: a search crowds where the objective is best, and its many
// trials there tell of little more than one of them. Pure; any thread.
//
//   w_i   share of the space that is nearer to trial i than to any other
//
// A sample of the space that is replaced by the nearest trials, point by point, weights them by w:
// M. Loog, "Nearest neighbor-based importance weighting", MLSP 2012.
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
