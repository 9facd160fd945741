// Chooses points where there are several objectives, or constraints on results: a process for each
// objective and each constraint, and the point that is expected to widen the front most. Used by
// bayesianoptimization; one thread, pure but for the cache of surrogates.
//
//   n   results     m   objectives     c   constraints
//
//   m ≤ 3   log expected hypervolume improvement over the front of what keeps the constraints,
//   exact
//           (gp/acquisition.h), Π of the probabilities to keep each constraint; while nothing keeps
//           them, that product alone
//   m > 3   one objective in place of them, drawn for each proposal: max_j w_j f_j + 0.05 Σ w_j f_j
//           of the losses f in parts of their ranges, w uniform on the simplex (J. Knowles,
//           "ParEGO", 2006)
//
// The hypervolume is that of the warped scores (gp/scored_results.h), so that heavy tails of one
// objective do not outweigh the others.
#pragma once

#include <Eigen/Dense>
#include <optional>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/gp/acquisition.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/surrogate.h"

namespace shirabe::suggestion::gp {

// What a history says. Rows in the order of the trials; at most `most` of them: the best half by
// RankTrials, and of the others the latest.
struct FrontResults {
  std::vector<Point> points;
  Eigen::MatrixXd scores;        // n × m, negative losses
  Eigen::MatrixXd margins;       // n × c, ≥ 0 keeps the constraint
  std::vector<int64_t> numbers;  // of the trials
  std::vector<Point> failed;
  std::vector<Point> pending;

  // Some objective has two different scores.
  bool Learnable() const;
  // Whether result i keeps all constraints.
  bool Keeps(Eigen::Index i) const;
};
FrontResults GatherFront(const History& history, int64_t most = Results::kMaxPoints);

// What one proposal leaves for the next, as SurrogateMemo.
struct FrontMemo {
  std::vector<SurrogateMemo> objectives, constraints;

  std::string Serialize() const;
  static FrontMemo Parse(const std::string& text, int theta_size);
};

class FrontSelector {
 public:
  // `rng`: for the weights where there are more than three objectives. All but `memory` outlive it.
  FrontSelector(const Space& space, const FrontResults& data, Rng rng, FrontMemo& memory);

  // nullopt if every point has been tried.
  std::optional<Suggestion> Next(UnvisitedPoints& unvisited, Rng rng);
  // In several scenarios from now on, because the trials at these points are still running.
  void Imagine(const std::vector<Point>& points, Rng rng);

 private:
  Eigen::MatrixXd ScoresToLearn(Rng rng) const;
  std::vector<Chance> AllChances() const;
  // Has all of them scored where they were conditioned.
  void ScoreThere();
  std::vector<ScoreBox> FreeBoxes(Eigen::Index scenario) const;
  std::string Explain(const Point& point, const Chances& chances) const;

  const FrontResults& data_;
  InputLayout layout_;
  std::vector<Surrogate> objectives_;   // those that have two different scores
  std::vector<Posterior> constraints_;  // of margins
  std::optional<Posterior> feasibility_;
  std::vector<EngineKind> engines_;  // of the objectives, then of the constraints
  std::vector<Eigen::Index> front_;  // results that keep the constraints and are not dominated
  // What is imagined, by scenario: the scores of points that are likely to keep the constraints.
  std::vector<std::vector<std::vector<double>>> imagined_;
};

}  // namespace shirabe::suggestion::gp
