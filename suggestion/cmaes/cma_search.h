// One search by CMA-ES over a mixed space (CmaSearch), with its margins (CmaMarginal), the tests
// that end a run (CmaProgress), restarts (CmaRestarts) and warm starts (CmaSource): the normal
// distribution of the numeric coordinates, the probabilities of the categories, and the restarts,
// as one state that generations are told to. Used by suggestion/algorithms/cmaes.cc, which knows
// trials; here there are only numbers.
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
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "suggestion/cmaes/cma.h"
#include "suggestion/cmaes/cma_covariance.h"

namespace shirabe::suggestion {

// Keeps the levels of an integer or stepped parameter within reach. Once the deviation of such a
// coordinate is much smaller than a level, every draw decodes to the same value, nothing is learnt
// and nothing can change it; the margin is a probability of leaving the level that never vanishes.
// Used by CmaSearch after every generation. Pure.
//
//   ℓ₋, ℓ₊   lower and upper edge of the level that holds the mean; none at the ends of the list
//   m, s     mean and deviation of the coordinate
//   p₋, p₊   probability of a draw below ℓ₋, above ℓ₊           α   margin, 1 / (d λ)
//   ξ(p)     the normal quantile Φ⁻¹(1 − p)
//
// R. Hamano, S. Saito, M. Nomura, S. Shirakawa, "CMA-ES with Margin: Lower-Bounding Marginal
// Probability for Mixed-Integer Black-Box Optimization" (GECCO 2022), section 4. Edges may lie
// anywhere, so that logarithmic integers work as well. In levels at the ends only m moves.
struct CmaMarginal {
  double mean = 0;
  double deviation = 0;
};

struct CmaEdges {
  std::optional<double> below, above;
};

// `marginal` with at least α/2 on each side of an inner level, or α beyond the only edge of a level
// at an end; the same where that is so already, and where there is no edge at all.
CmaMarginal WithMargin(const CmaMarginal& marginal, const CmaEdges& edges, double alpha);

// Whether a run of CMA-ES has anything left to find. Used by CmaSearch. A value type.
//
//   b_t      best loss of generation t of the run       d    dimensions
//   R        largest spread of the losses of one generation of the run, median less best
//   λ        members of a generation
//
// The tests are those of N. Hansen, "Benchmarking a BI-Population CMA-ES on the BBOB-2009 Function
// Testbed" (2009), Table 1, but in units of the experiment, because losses come in every scale and
// coordinates in one: flat, where b_t of the last 10 + 30 d/λ generations and the losses of the
// latest lie within 1e-11 R (there 1e-12, whatever the losses); narrow, where the deviation
// of every continuous coordinate is below 1e-9 of its range; stagnant, where of the last 120 + 30
// d/λ b_t the median of the latest 30 % is no better than that of the earliest 30 %.
class CmaProgress {
 public:
  CmaProgress(int dimensions, int64_t population);

  // The finite losses of one generation, in any order.
  void Observe(std::vector<double> losses);
  // Flat or stagnant.
  bool Ended() const;
  // Narrow: of the deviations of the continuous coordinates, which may be none.
  static bool Narrow(const Eigen::VectorXd& deviations);
  void Fields(CmaRecord& record);

 private:
  bool Flat() const;
  bool Stagnant() const;

  int64_t flat_after_;  // generations
  int64_t stagnant_after_;
  std::vector<double> bests_;  // b_t, the latest stagnant_after_ of them
  double range_ = 0;           // R
  double latest_ = 0;          // spread of the latest generation, greatest less best
};

// When one run of CMA-ES has ended, the next: larger, or small and elsewhere. Used by CmaSearch. A
// value type.
//
//   λ₀, σ₀   members of a generation and step size of the first run
//   λ_l      members of the latest large run, 2^k λ₀ after k large restarts
//   u        uniform random number
//
// none: there is no next run. ipop: λ doubles with every run; A. Auger, N. Hansen, "A Restart CMA
// Evolution Strategy With Increasing Population Size" (CEC 2005). bipop: beside such large runs
// there are small ones, λ = ⌊λ₀ (λ_l / 2λ₀)^(u²)⌋ and σ = σ₀ 10^(−2u), whenever they have used
// fewer trials than the large ones, each at most half as long as the latest large one; N. Hansen,
// "Benchmarking a BI-Population CMA-ES on the BBOB-2009 Function Testbed" (GECCO 2009).
struct CmaRunPlan {
  int64_t population = 0;  // λ
  double sigma = 0;
  int64_t limit = 0;  // trials after which the run ends anyhow; 0 = none
};

class CmaRestarts {
 public:
  enum class Strategy { kNone, kIpop, kBipop };
  CmaRestarts(Strategy strategy, CmaRunPlan first)
      : strategy_(strategy), first_(first), large_population_(first.population) {}

  bool allowed() const { return strategy_ != Strategy::kNone; }
  // After a run that took `trials`. Draws from `rng` in the same way in every case.
  CmaRunPlan Next(int64_t trials, Rng& rng);
  void Fields(CmaRecord& record);

 private:
  Strategy strategy_;
  CmaRunPlan first_;
  int64_t large_population_;  // λ_l
  int64_t large_trials_ = 0;  // of all large runs
  int64_t small_trials_ = 0;
  int64_t latest_large_ = 0;  // of the latest large run
  bool small_ = false;        // the present run
};

// Where CMA-ES begins: in the middle of the cube, anywhere, or where earlier trials were good, of
// this experiment or of another one over the same space. Called by CmaSearch. Pure.
//
//   x_i      coordinates of trial i in [0, 1]^d           N    trials with a loss
//   γ        0.1, the share of the best taken as a sample of the promising distribution
//   α        0.1, how far around each of them the optimum is thought to be
//   m*, Σ*   mean of the ⌊γN⌋ best, and α² I + their covariance
//
// M. Nomura, S. Watanabe, Y. Akimoto, Y. Ozaki, M. Onishi, "Warm Starting CMA-ES for Hyperparameter
// Optimization" (AAAI 2021), equations 7 and 8: the normal distribution nearest to the promising
// one, in the sense of Kullback and Leibler; m = m*, σ² C = Σ*, det C = 1.

// Trials with finite losses, one column and one number each.
struct CmaSource {
  Eigen::MatrixXd points;  // d × N
  std::vector<double> losses;
};

// The indices of the ⌊γN⌋ best, best first; the one best if there are fewer than 1/γ; none of none.
std::vector<int> Promising(const std::vector<double>& losses);

// m* and Σ*. Fewer than 1/γ trials tell where to begin but not how far to look: their best is the
// mean, and σ is `sigma`. Without any trial the mean is the middle.
CmaStart WarmStart(const CmaSource& source, double sigma);

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
  Eigen::VectorXd z;           // as in suggestion/cmaes/cma.h
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

  // A member of the generation whose members so far `sampler` holds; it is not added to it.
  CmaDraw Draw(Rng& rng, const OrthogonalSampler& sampler) const;
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
