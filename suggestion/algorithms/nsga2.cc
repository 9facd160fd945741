// NSGA-II as a steady state: Deb, Pratap, Agarwal & Meyarivan, "A fast and elitist multiobjective
// genetic algorithm: NSGA-II" (2002), with one child at a time (Durillo et al. 2009).
//
//   μ   population: the best trials that have ended     p   probability of a mutation, per axis
//   a, b   parents, points                              c   child, a point
//
//   a, b  by binary tournaments: the better of two drawn from the population
//   c_j   numeric: simulated binary crossover, η = 20, with probability 0.9, each axis in turn with
//         probability ½, else a_j; category: a_j or b_j
//   c_j   with probability p = 1/d: numeric: polynomial mutation, η = 20; category: any
//
// The population is a function of the history alone, so that any number of trials may run, results
// may come in any order, and trials of other origin take part.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/evolution/evolution_operators.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

constexpr double kCrossover = 0.9;
// A child that has been tried is made again, each time with more mutation.
constexpr int kMaxMutations = 20;

class Nsga2 : public Algorithm {
 public:
  Nsga2(int64_t population, int axes) : population_(population), initial_design_(axes) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    return std::make_unique<Nsga2>(PopulationSize(problem), problem.space.size());
  }

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    const std::vector<Individual> parents = Survivors(EndedIndividuals(history), population_);
    UnvisitedPoints unvisited(history);
    std::vector<Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count && !IsCancelled() &&
           !unvisited.Exhausted()) {
      const int64_t ordinal = history.next_ordinal() + static_cast<int64_t>(suggestions.size());
      std::optional<Suggestion> next =
          ordinal < population_ || parents.size() < 2
              ? initial_design_.Next(history.space(), ordinal, root, unvisited)
              : Breed(history, parents, root.Fork(ordinal), unvisited);
      if (!next) break;
      suggestions.push_back(*std::move(next));
    }
    return unvisited.Finish(std::move(suggestions));
  }

 private:
  static std::optional<Suggestion> Breed(const History& history,
                                         const std::vector<Individual>& parents, Rng rng,
                                         UnvisitedPoints& unvisited) {
    const Space& space = history.space();
    for (int attempt = 1; attempt <= kMaxMutations; ++attempt) {
      const int64_t a = Tournament(parents, rng), b = Tournament(parents, rng);
      Point child = Cross(space, history.point(a), history.point(b), rng);
      Mutate(space, static_cast<double>(attempt) / space.size(), rng, child);
      child = space.Canonical(child);
      if (!unvisited.Claim(child)) continue;
      return Suggestion{.point = std::move(child),
                        .explanation = absl::StrCat("a child of trials ", a + 1, " and ", b + 1,
                                                    ", of the best ", parents.size())};
    }
    return InitialDesign::RandomFallback(rng, unvisited,
                                         "at random: the children of the best have been tried");
  }

  // Survivors are ordered, best first, so that the better of two is the former.
  static int64_t Tournament(const std::vector<Individual>& parents, Rng& rng) {
    const uint64_t first = rng.Below(parents.size()), second = rng.Below(parents.size());
    return parents[std::min(first, second)].trial;
  }

  static Point Cross(const Space& space, const Point& a, const Point& b, Rng& rng) {
    Point child = a;
    const bool crossed = rng.Uniform() < kCrossover;
    for (int j = 0; j < space.size(); ++j) {
      if (space.axis(j).categorical()) {
        child[j] = rng.Uniform() < 0.5 ? a[j] : b[j];
      } else if (crossed && rng.Uniform() < 0.5) {
        const auto [low, high] = SimulatedBinary(a[j], b[j], rng);
        child[j] = rng.Uniform() < 0.5 ? low : high;
      }
    }
    return child;
  }

  static void Mutate(const Space& space, double probability, Rng& rng, Point& child) {
    for (int j = 0; j < space.size(); ++j) {
      if (rng.Uniform() >= probability) continue;
      const Axis& axis = space.axis(j);
      child[j] = axis.categorical() ? static_cast<double>(rng.Below(axis.levels()))
                                    : PolynomialMutation(child[j], rng);
    }
  }

  int64_t population_;
  InitialDesign initial_design_;
};

SHIRABE_REGISTER(AlgorithmInfo,
                 {.name = "nsga2",
                  .help = "NSGA-II, a genetic algorithm: for hundreds of trials or more, many of "
                          "them at once, and categories that do not suit a model.",
                  .settings = {PopulationSetting(2)},
                  .create = &Nsga2::Create,
                  .several_objectives = true,
                  .constraints = true,
                  .space_rules = true,
                  .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
