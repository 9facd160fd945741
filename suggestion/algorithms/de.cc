// Differential evolution with success-history adaptation: Tanabe & Fukunaga, "Success-history based
// parameter adaptation for differential evolution" (SHADE, 2013), one child at a time.
//
//   N   slots of the population     x_i     who holds the slot that is challenged
//   x_p  one of the best            x_r1    another of the population
//   F, CR  see success_history.h    x_r2    another of the population or of the archive
//
//   v   = x_i + F (x_p - x_i) + F (x_r1 - x_r2)             current-to-pbest/1 (eq. 5)
//   v_j outside [0, 1]: half-way between x_i,j and the bound (eq. 6)
//   u_j = v_j with probability CR, and for one j always; else x_i,j                  (eq. 4)
//
// A category has no differences: each of the two terms that is not zero replaces it with
// probability F, by that of x_p or of x_r1; and with probability 1/N it is any, so that none is
// ever lost. A child that has been tried is made again. Pending trials count as challengers of
// their slots, so that any number of them spreads over the population.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/evolution/evolution_operators.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

constexpr double kBest = 0.11;        // of the population that may be x_p (Tanabe & Fukunaga 2014)
constexpr size_t kMinBest = 2;        // but as many at least
constexpr size_t kMinPopulation = 4;  // x_i, x_p, x_r1 and x_r2
constexpr int kMaxDraws = 20;

class De : public Algorithm {
 public:
  De(int slots, int axes) : slots_(slots), initial_design_(axes) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    return std::make_unique<De>(PopulationSize(problem), problem.space.size());
  }

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    SuccessHistory past(history, slots_);
    UnvisitedPoints unvisited(history);
    std::vector<Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count && !IsCancelled() &&
           !unvisited.Exhausted()) {
      const int64_t ordinal = history.next_ordinal() + static_cast<int64_t>(suggestions.size());
      std::optional<Suggestion> next =
          ordinal < slots_ || past.ranked().size() < kMinPopulation
              ? initial_design_.Next(history.space(), ordinal, root, unvisited)
              : Breed(history, past, root.Fork(ordinal), unvisited);
      if (!next) break;
      suggestions.push_back(*std::move(next));
    }
    return unvisited.Finish(std::move(suggestions));
  }

 private:
  // The points that make a child.
  struct Parents {
    Point self, best, first, second;
    size_t population = 0;  // N that are there
  };

  static std::optional<Suggestion> Breed(const History& history, SuccessHistory& past, Rng rng,
                                         UnvisitedPoints& unvisited) {
    const int slot = past.NextSlot();
    past.Challenge(slot);
    // The slot whose first trial still runs has no occupant: any other may be improved instead.
    const int64_t self = past.occupant(slot).value_or(Any(past.ranked(), rng));
    for (int attempt = 0; attempt < kMaxDraws; ++attempt) {
      const ControlParameters control = past.Draw(slot, rng);
      const Parents parents = Choose(history, past, self, rng);
      Point child = history.space().Canonical(Cross(history.space(), parents, control, rng));
      if (!unvisited.Claim(child)) continue;
      return Suggestion{
          .point = std::move(child),
          .labels = {{ControlParameters::kLabel, control.Encode()}},
          .explanation = absl::StrFormat(
              "trial %d moved towards one of the best and by a difference of two others "
              "(F %.2g, CR %.2g)",
              self + 1, control.f, control.cr)};
    }
    return InitialDesign::RandomFallback(rng, unvisited,
                                         "at random: the children of the best have been tried");
  }

  static int64_t Any(const std::vector<int64_t>& trials, Rng& rng) {
    return trials[rng.Below(trials.size())];
  }

  static Parents Choose(const History& history, const SuccessHistory& past, int64_t self,
                        Rng& rng) {
    const std::vector<int64_t>& all = past.ranked();
    const auto best = static_cast<size_t>(std::round(kBest * static_cast<double>(all.size())));
    const int64_t leader = all[rng.Below(std::clamp(best, kMinBest, all.size()))];
    std::vector<int64_t> others;
    for (int64_t trial : all) {
      if (trial != self) others.push_back(trial);
    }
    const int64_t first = Any(others, rng);
    others.insert(others.end(), past.archive().begin(), past.archive().end());
    int64_t second = first;
    while (second == first) second = Any(others, rng);
    return {history.point(self), history.point(leader), history.point(first), history.point(second),
            all.size()};
  }

  static Point Cross(const Space& space, const Parents& parents, const ControlParameters& control,
                     Rng& rng) {
    Point child = parents.self;
    const auto always = static_cast<int>(rng.Below(space.size()));
    for (int j = 0; j < space.size(); ++j) {
      if (j != always && rng.Uniform() >= control.cr) continue;
      child[j] = space.axis(j).categorical()
                     ? MutateCategory(space.axis(j), parents, {j, control.f}, rng)
                     : MutateNumber(parents, j, control.f);
    }
    return child;
  }

  static double MutateNumber(const Parents& parents, int j, double f) {
    const double self = parents.self[j];
    const double mutant =
        self + f * (parents.best[j] - self) + f * (parents.first[j] - parents.second[j]);
    if (mutant < 0) return self / 2;
    if (mutant > 1) return (self + 1) / 2;
    return mutant;
  }

  struct CategoryStep {
    int axis;
    double f;
  };
  static double MutateCategory(const Axis& axis, const Parents& parents, const CategoryStep& step,
                               Rng& rng) {
    const int j = step.axis;
    double mutant = parents.self[j];
    if (rng.Uniform() < step.f) mutant = parents.best[j];
    if (parents.first[j] != parents.second[j] && rng.Uniform() < step.f) mutant = parents.first[j];
    if (rng.Below(parents.population) == 0) mutant = static_cast<double>(rng.Below(axis.levels()));
    return mutant;
  }

  int slots_;
  InitialDesign initial_design_;
};

SHIRABE_REGISTER(AlgorithmInfo,
                 {.name = "de",
                  .help = "Differential evolution that adapts itself (SHADE): for hundreds of "
                          "trials or more over numeric parameters, many of them at once.",
                  .settings = {PopulationSetting(4)},
                  .create = &De::Create});

}  // namespace
}  // namespace shirabe::suggestion
