// The points of a proposal for one objective, without constraints: what the running trials may give
// is imagined, in scenarios, and the point that promises most is taken. Used by
// bayesianoptimization; one thread, pure but for the cache of surrogates.
#pragma once

#include <Eigen/Dense>
#include <optional>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/gp/acquisition.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/scored_results.h"
#include "suggestion/gp/surrogate.h"

namespace shirabe::suggestion::gp {

struct SelectorOptions {
  Utility utility = Utility::kLogEi;
  bool climb = true;
  bool maximize = false;
};

// Chooses the points of one proposal for one objective, each in the knowledge of those before it.
class CandidateSelector {
 public:
  CandidateSelector(const SelectorOptions& options, const Space& space, const Results& data,
                    SurrogateMemo& memory);

  // nullopt if every point has been tried.
  std::optional<Suggestion> Next(UnvisitedPoints& unvisited, Rng rng);
  // In several scenarios from now on, because the trials at these points are still running.
  void Imagine(const std::vector<Point>& points, Rng rng);

 private:
  void FindIncumbent();
  void LearnFailures();
  Region MakeRegion() const;
  std::vector<Chance> ChancesOfResult() const;
  std::string Explain(const Point& point) const;
  std::string Words(double y) const;

  const SelectorOptions& options_;
  const Results& data_;
  InputLayout layout_;
  Eigen::VectorXd scores_;
  SurrogateCache::Answer learned_;
  Surrogate surrogate_;  // the same, grown by what is imagined
  std::optional<Posterior> feasibility_;
  Eigen::Index best_ = 0;         // the incumbent among data_.points
  Eigen::RowVectorXd incumbent_;  // its y, or what a scenario imagines to be better
};

// Where trials give results, of labels (gp/surrogate.h). A failure among successes was bad luck.
// One among failures is a place where nothing is to be gained: `objective` gets a result in the
// middle of all there, y = 0, whatever the successes beside it promise. `data` has failures;
// `engine`: whose the objective is.
Posterior LearnFailures(const InputLayout& layout, const Results& data, EngineKind engine,
                        Posterior& objective);

}  // namespace shirabe::suggestion::gp
