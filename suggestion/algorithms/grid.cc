// Every point of a finite space once, in order: the last parameter varies fastest.
//
// A proposal is the first `count` points, by index, that history has not visited; so points tried
// out of order (given at the start, tried again) are left out, and nothing else is. The memo
// "grid 1 <n>" says that every point below n has been visited or is in this proposal, which saves
// walking over them again; without it the walk starts at 0 and ends at the same point. Trials that
// exist and are not in history (Katib's wire) were given the first of the points it lacks.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

constexpr char kMemo[] = "grid 1 ";

Status CheckFinite(const Space& space) {
  for (int i = 0; i < space.size(); ++i) {
    if (!space.axis(i).continuous()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "algorithm grid: parameter \"", space.axis(i).name(),
        "\" is continuous, and a grid needs values: give it a feasibleSpace.step, or make it "
        "discrete with a list"));
  }
  if (space.cardinality().finite) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "algorithm grid: the parameters make 2^64 points or more; choose larger steps, or algorithm "
      "random");
}

class Grid : public Algorithm {
 public:
  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem) {
    RETURN_IF_ERROR(CheckFinite(problem.space));
    return std::make_unique<Grid>();
  }

  StatusOr<Proposal> Propose(const History& history, int count, const Rng&) override {
    const Space& space = history.space();
    RETURN_IF_ERROR(CheckFinite(space));
    const uint64_t all = space.cardinality().count;
    UnvisitedPoints unvisited(history);
    std::vector<Suggestion> suggestions;
    uint64_t index = FirstCandidate(history);
    for (int64_t unseen = history.next_ordinal() - history.size();
         unseen > 0 && index < all && !IsCancelled();) {
      if (unvisited.Claim(space.At(index++))) --unseen;
    }
    for (; index < all && !IsCancelled() && static_cast<int>(suggestions.size()) < count; ++index) {
      Point point = space.At(index);
      if (!unvisited.Claim(point)) continue;
      suggestions.push_back(
          {.point = std::move(point),
           .explanation = absl::StrCat("point ", index + 1, " of the ", all, " of the grid")});
    }
    Proposal proposal = unvisited.Finish(std::move(suggestions));
    proposal.memo = absl::StrCat(kMemo, index);
    return proposal;
  }

 private:
  // Where the memo says that the walk goes on; 0 without a memo, or if it cannot be true of this
  // history: below n there are n points, so that as many must have been visited.
  static uint64_t FirstCandidate(const History& history) {
    const size_t skip = sizeof kMemo - 1;
    if (history.memo().compare(0, skip, kMemo) != 0) return 0;
    uint64_t index = 0;
    const char* end = history.memo().data() + history.memo().size();
    const auto parsed = std::from_chars(history.memo().data() + skip, end, index);
    const bool good = parsed.ec == std::errc() && parsed.ptr == end;
    return good && index <= static_cast<uint64_t>(history.distinct()) ? index : 0;
  }
};

SHIRABE_REGISTER(AlgorithmInfo, {.name = "grid",
                                 .help = "Every combination once, in order; for small spaces "
                                         "that are to be covered completely.",
                                 .create = &Grid::Create,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true});

}  // namespace
}  // namespace shirabe::suggestion
