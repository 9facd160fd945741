// One search by CMA-ES over a mixed space: the normal distribution of the numeric coordinates, the
// probabilities of the categories, and the restarts, as one state that generations are told to.
// Used by suggestion/algorithms/cmaes.cc, which knows trials; here there are only numbers.
//
//   d, λ     numeric coordinates, members of a generation         n    members told
//   x        draw of the numeric coordinates, anywhere in ℝ^d     u    x, clipped to [0, 1]^d
//   s_j      deviation of coordinate j                            r    rank by loss of u
//
// Bounds: what is tried is u, what is learnt from is x, and its key is r + (n/d) Σ_j
// ((x_j−u_j)/s_j)², the penalty of N. Hansen et al., "A Method for Handling Uncertainty in
// Evolutionary Optimization" (2009), section IV-B, in ranks instead of losses: their δ_fit, the
// quartile distance of the losses, is n/2 in ranks. So only the order of losses matters here as
// everywhere in CMA-ES. An optimum on a bound is met exactly, since draws beyond it are tried on
// it.
//
// A value type. A function of what it was made from and told; random numbers come from outside.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "suggestion/cma.h"
#include "suggestion/cma_categories.h"
#include "suggestion/cma_frame.h"
#include "suggestion/cma_margin.h"
#include "suggestion/cma_progress.h"
#include "suggestion/cma_restarts.h"
#include "suggestion/cma_start.h"

namespace shirabe::suggestion {

struct CmaShape {
  std::vector<bool> continuous;  // of each numeric coordinate; d ≥ 1
  std::vector<int> categories;   // how many each categorical parameter has
};

struct CmaOptions {
  double sigma = 0;        // σ of the first run
  int64_t population = 0;  // λ of the first run
  CmaRestarts::Strategy restarts = CmaRestarts::Strategy::kNone;
  bool adapt_rates = false;
};

struct CmaDraw {
  Eigen::VectorXd z;           // as in suggestion/cma.h
  Eigen::VectorXd x;           // not clipped
  Eigen::VectorXi categories;  // indices
};

// A trial with a result.
struct CmaMember {
  enum class Tier { kCompleted, kStopped, kInfeasible };  // the earlier is better than the later
  CmaDraw draw;
  Tier tier = Tier::kInfeasible;
  double loss = 0;  // finite unless infeasible
};

class CmaSearch {
 public:
  // The edges of the level of numeric coordinate `axis` that a mean lies in.
  using EdgesOf = std::function<CmaEdges(int axis, double mean)>;
  // From this many dimensions on, C is diagonal: it would have more than 2,000 numbers to learn,
  // each generation tells a handful, and experiments have at most some thousand trials.
  static constexpr int kSeparableFrom = 64;

  CmaSearch(CmaShape shape, const CmaOptions& options);
  // Begins from the earlier trials `source`, with their categories, a column each.
  void WarmStartFrom(const CmaSource& source, const Eigen::MatrixXi& categories);

  // A member of the generation whose members so far `frame` holds; it is not added to it.
  CmaDraw Draw(Rng& rng, const CmaFrame& frame) const;
  // What a point that was not drawn from this state counts as.
  CmaDraw Injected(const Eigen::VectorXd& x, const Eigen::VectorXi& categories) const;
  // Ends a generation, in which `trials` were started and these have ended.
  void Tell(const std::vector<CmaMember>& members, int64_t trials, const EdgesOf& edges);
  // Whether the run is to be ended; never without a restart strategy.
  bool RunEnded() const;
  // Begins the next run somewhere else.
  void Restart(Rng& rng);

  int64_t population() const { return plan_.population; }
  const Cma& distribution() const { return cma_; }
  const CmaCategories& categories() const { return categories_; }
  void Fields(CmaRecord& record);

 private:
  void Begin(const CmaStart& start);
  Eigen::VectorXd Keys(const std::vector<CmaMember>& members) const;
  void TellCategories(const std::vector<CmaMember>& members, const Eigen::VectorXd& ranks);
  void ApplyMargin(const EdgesOf& edges);

  CmaShape shape_;
  CmaOptions options_;
  CmaRunPlan plan_;
  CmaRestarts restarts_;
  Cma cma_;
  CmaCategories categories_;
  CmaProgress progress_;
  int64_t trials_ = 0;  // of the run, in the generations told
};

// How many members a generation has by default: 4 + ⌊3 ln p⌋ for p parameters.
int64_t DefaultPopulation(int parameters);

}  // namespace shirabe::suggestion
