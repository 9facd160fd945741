// An algorithm for simulations only: some of its trials go on from a step of another one, whether
// that has ended or still runs, and whether it has saved that step or not.
#include <utility>

#include "suggestion/algorithm.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::simulation {
namespace {

constexpr uint64_t kLongest = 20;  // steps that a trial makes

class Forking : public suggestion::Algorithm {
 public:
  static StatusOr<std::unique_ptr<suggestion::Algorithm>> Create(const suggestion::Problem&) {
    return std::make_unique<Forking>();
  }

  StatusOr<suggestion::Proposal> Propose(const suggestion::History& history, int count,
                                         const Rng& root) override {
    suggestion::UnvisitedPoints unvisited(history);
    std::vector<suggestion::Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count) {
      Rng rng = root.Fork(history.next_ordinal() + suggestions.size());
      if (history.size() > 0 && rng.Below(2) == 0) {
        suggestions.push_back(Fork(history, rng));
        continue;
      }
      auto point = unvisited.Draw(rng);
      if (!point) break;
      suggestions.push_back({.point = *std::move(point)});
    }
    return unvisited.Finish(std::move(suggestions));
  }

 private:
  static suggestion::Suggestion Fork(const suggestion::History& history, Rng& rng) {
    const auto index = static_cast<int64_t>(rng.Below(static_cast<uint64_t>(history.size())));
    const int64_t known = history.trial(index).last_step;
    const uint64_t steps = known > 0 ? static_cast<uint64_t>(known) : kLongest;
    suggestion::Suggestion fork{.point = history.point(index), .parent = v1::Parent()};
    fork.parent->set_trial(index + 1);
    fork.parent->set_step(1 + static_cast<int64_t>(rng.Below(steps)));
    return fork;
  }
};

SHIRABE_REGISTER(suggestion::AlgorithmInfo, {.name = "forking",
                                             .help = "Goes on from any step of any trial",
                                             .create = &Forking::Create});

}  // namespace
}  // namespace shirabe::simulation
