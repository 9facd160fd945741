// Quasi-random points: as simple as random search, but without its gaps and clusters, so that fewer
// trials cover the space as well. Suggestion i of an experiment is point i of a scrambled Sobol
// sequence; in a space of few values, where that has been tried, the next of the sequence that has
// not, and in the end whatever is left.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/sobol_sequence.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

class Sobol : public Algorithm {
 public:
  explicit Sobol(int dimensions) : sequence_(dimensions) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    const int dimensions = problem.space.size();
    if (dimensions <= SobolSequence::kMaxDimensions) return std::make_unique<Sobol>(dimensions);
    return absl::InvalidArgumentError(
        absl::StrCat("algorithm sobol: there are ", dimensions, " parameters and at most ",
                     SobolSequence::kMaxDimensions, " are possible; use algorithm random"));
  }

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    UnvisitedPoints unvisited(history);
    std::vector<Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count && !IsCancelled()) {
      const uint64_t ordinal = history.next_ordinal() + suggestions.size();
      std::optional<Suggestion> suggestion = Next(history.space(), unvisited, ordinal, root);
      if (!suggestion) break;
      suggestions.push_back(*std::move(suggestion));
    }
    return unvisited.Finish(std::move(suggestions));
  }

 private:
  std::optional<Suggestion> Next(const Space& space, UnvisitedPoints& unvisited, uint64_t ordinal,
                                 const Rng& root) const {
    constexpr uint64_t kAhead = 64;
    if (unvisited.Exhausted()) return std::nullopt;
    for (uint64_t i = ordinal; i < ordinal + kAhead; ++i) {
      Point point = space.FromUnit(sequence_.At(i, root.seed()));
      if (!unvisited.Claim(point)) continue;
      return Suggestion{.point = std::move(point),
                        .explanation = absl::StrCat("point ", i + 1, " of the Sobol sequence")};
    }
    Rng rng = root.Fork(ordinal);
    std::optional<Point> point = unvisited.Draw(rng);
    if (!point) return std::nullopt;
    return Suggestion{.point = *std::move(point),
                      .explanation =
                          "drawn from the points that are left: those of the Sobol "
                          "sequence have been tried"};
  }

  SobolSequence sequence_;
};

SHIRABE_REGISTER(AlgorithmInfo, {.name = "sobol",
                                 .help = "Quasi-random points that cover the space evenly; for "
                                         "many trials at once.",
                                 .create = &Sobol::Create,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
