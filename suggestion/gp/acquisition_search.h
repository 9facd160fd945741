// Finds the points where an acquisition function is largest: Search, over the inputs that
// InputLayout makes of a space, within a Region. One AcquisitionSearch serves one suggestion.
//
//   1. a pool: half a Sobol sequence over the region, half the incumbent with a few coordinates
//      changed (random axis-aligned subspace perturbations: R. Regis, C. Shoemaker, "Combining
//      radial basis function surrogates and dynamic coordinate search", 2013)
//   2. the best of it, some by lot, and the incumbent climb in lock-step, each by L-BFGS in x / ℓ
//   3. in discrete spaces: ordered coordinates are rounded, then each point moves to its best
//      neighbour that differs in one coordinate, and climbs again, while that helps
//
// A space of few points is enumerated instead.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "suggestion/gp/acquisition.h"
#include "suggestion/gp/kernel.h"
#include "suggestion/space/search_space.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion::gp {

// Between the points of a search space and the inputs of a Gaussian process: which coordinates are
// numbers, which are categories. Immutable, any thread; holds a copy of the space (cheap).
class InputLayout {
 public:
  explicit InputLayout(const Space& space);

  const Space& space() const { return space_; }
  // Axes of the space, in the order of the columns of Inputs.
  const std::vector<int>& numeric() const { return numeric_; }
  const std::vector<int>& categorical() const { return categorical_; }
  const Axis& numeric_axis(int column) const { return space_.axis(numeric_[column]); }
  const Axis& categorical_axis(int column) const { return space_.axis(categorical_[column]); }
  // Some coordinate takes only certain values.
  bool discrete() const { return discrete_; }

  // `rows` rows to be filled.
  Inputs Empty(Eigen::Index rows) const;
  void Set(Inputs& inputs, Eigen::Index row, const Point& point) const;
  Inputs From(const std::vector<Point>& points) const;
  // Not canonical in its continuous coordinates.
  Point ToPoint(const Inputs& inputs, Eigen::Index row) const;
  // Moves the ordered coordinates to the values that would be tried, and neutralizes.
  void Round(Inputs& inputs) const;
  // Moves those of parameters that do not exist there to the one that stands for none.
  void Neutralize(Inputs& inputs) const;
  // Moves a row that is not allowed towards `from`, a single one, as far as to where the line
  // between their numeric coordinates enters what is.
  void PullBack(const Inputs& from, Inputs& inputs, Eigen::Index row) const;
  // Gives points that are not allowed the least of all values.
  void Exclude(const Inputs& inputs, Eigen::VectorXd& values) const;

 private:
  Space space_;
  std::vector<int> numeric_, categorical_;
  bool discrete_ = false;
};

// Where to look: a box over the numeric coordinates, around a point to start from.
struct Region {
  Box box;
  Inputs incumbent;  // one row
};

struct Ranked {
  Point point;  // not canonical in its continuous coordinates
  double value;
};

class AcquisitionSearch {
 public:
  static constexpr uint64_t kEnumerable = 4096;

  AcquisitionSearch(const InputLayout& layout, const Acquisition& acquisition, const Region& region,
                    Rng rng);

  // Best first; never empty. Without `climb` only the pool is looked at.
  std::vector<Ranked> Run(bool climb);

 private:
  Inputs All() const;
  Inputs Pool();
  void Spread(Inputs& pool, Eigen::Index begin, Eigen::Index count);
  void Perturb(Inputs& pool, Eigen::Index row);
  Inputs ChooseStarts(const Inputs& pool, const Eigen::VectorXd& values);
  void Climb(Inputs& points) const;
  bool StepToNeighbours(Inputs& points, Eigen::VectorXd& values);
  Inputs Neighbours(const Inputs& point);
  void Append(const Inputs& points, const Eigen::VectorXd& values,
              std::vector<Ranked>& ranked) const;

  const InputLayout& layout_;
  const Acquisition& acquisition_;
  const Region& region_;
  Rng rng_;
  Eigen::VectorXd lengths_;  // by which numeric coordinates are divided while climbing
};

// What a process has learned from, and imagines.
struct Seen {
  const InputLayout& layout;
  const Inputs& inputs;
};
// The first of `ranked` that has not been tried, moved a little where the process has seen the very
// place; else any point that has not; nullopt if every point has been tried.
std::optional<Point> FirstUntried(const std::vector<Ranked>& ranked, const Seen& seen,
                                  UnvisitedPoints& unvisited, Rng& rng);

// What a point promises, weighed by where the user expects the best (πBO, suggestion/space/
// space_priors.h): the logarithm of a utility, plus w log π(x).
//
// Immutable, any thread; what it weighs and the layout must outlive it.
class PriorAcquisition : public Acquisition {
 public:
  // Without priors in the layout's space it is what is promised. `results`: how many trials the
  // model has learned from.
  PriorAcquisition(const Acquisition& promised, const InputLayout& layout, Eigen::Index results)
      : promised_(promised),
        layout_(layout),
        weight_(SpacePriors::LogWeight(static_cast<int64_t>(results))) {}

  Eigen::ArrayXd Lengths() const override { return promised_.Lengths(); }
  Eigen::Index size() const override { return promised_.size(); }
  bool ScoredElsewhere() const override { return promised_.ScoredElsewhere(); }

 private:
  Eigen::VectorXd Compute(const Inputs& points, Eigen::MatrixXd* gradient) const override;

  const Acquisition& promised_;
  const InputLayout& layout_;
  double weight_;
};

}  // namespace shirabe::suggestion::gp
