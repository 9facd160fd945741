// Independent draws from the distributions of the space. The yardstick for everything else, and a
// good choice when trials are cheap, many, and all run at once.
#include <utility>

#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

class Random : public Algorithm {
 public:
  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem&) {
    return std::make_unique<Random>();
  }

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    UnvisitedPoints unvisited(history);
    std::vector<Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count && !IsCancelled()) {
      Rng rng = root.Fork(history.next_ordinal() + suggestions.size());
      std::optional<Point> point = unvisited.Draw(rng);
      if (!point) break;
      suggestions.push_back(
          {.point = *std::move(point), .explanation = "drawn at random from the search space"});
    }
    return unvisited.Finish(std::move(suggestions));
  }
};

SHIRABE_REGISTER(AlgorithmInfo, {.name = "random",
                                 .help = "Independent random points; a baseline, and for many "
                                         "cheap trials at once.",
                                 .create = &Random::Create,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
