#include "suggestion/unvisited_points.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::suggestion {
namespace {

constexpr int kDraws = 100;        // by the distributions, before anything else is tried
constexpr int kEvenDraws = 10000;  // where the points cannot be counted
constexpr uint64_t kCenterTries = 64;

// Adds `step` to `index`, both less than `count`, modulo `count`, without overflow.
uint64_t AddModulo(uint64_t index, uint64_t step, uint64_t count) {
  return index >= count - step ? index - (count - step) : index + step;
}

// A step that has no factor in common with `count` and leads far away, so that the cycle visits
// every point and neighbours in time are none in space.
uint64_t CoprimeStep(uint64_t count) {
  auto step = static_cast<uint64_t>(static_cast<double>(count) * 0.6180339887498949);
  step = std::clamp<uint64_t>(step, 1, count);
  while (std::gcd(step, count) != 1) --step;  // ends at 1
  return count == 1 ? 0 : step;
}

// The point with every prior's center instead of its own coordinate.
Point AtCenters(const Space& space, Point point) {
  for (int i = 0; i < space.size(); ++i) {
    if (space.priors()->Has(i)) point[i] = space.priors()->center(i);
  }
  return space.Canonical(point);
}

}  // namespace

bool UnvisitedPoints::Claim(const Point& point) {
  if (history_.Visited(point) || !history_.space().Allows(point)) return false;
  return taken_.insert(history_.space().Key(point)).second;
}

bool UnvisitedPoints::Exhausted() const {
  const Cardinality all = history_.space().cardinality();
  return all.finite && Taken() >= all.count;
}

std::optional<Point> UnvisitedPoints::Draw(Rng& rng) {
  if (Exhausted()) return std::nullopt;
  for (int i = 0; i < kDraws; ++i) {
    Point point = history_.space().Sample(rng);
    if (Claim(point)) return point;
  }
  return history_.space().cardinality().finite ? Walk(rng) : DrawEvenly(rng);
}

std::optional<Point> UnvisitedPoints::Walk(Rng& rng) {
  const uint64_t count = history_.space().cardinality().count;
  const uint64_t step = CoprimeStep(count);
  uint64_t index = rng.Below(count);
  // One more than the taken ones: not even two points with the same key could make it endless.
  for (uint64_t left = Taken() + 1; left > 0; --left) {
    Point point = history_.space().At(index);
    if (Claim(point)) return point;
    index = AddModulo(index, step, count);
  }
  return std::nullopt;
}

// Every level equally likely, so that a distribution that hardly ever leaves its middle cannot
// hide the rest.
std::optional<Point> UnvisitedPoints::DrawEvenly(Rng& rng) {
  const Space& space = history_.space();
  for (int i = 0; i < kEvenDraws; ++i) {
    Point point(space.size());
    for (int axis = 0; axis < space.size(); ++axis) {
      const uint64_t levels = space.axis(axis).levels();
      point[axis] = levels == 0 ? space.axis(axis).Canonical(rng.Uniform())
                                : space.axis(axis).Coordinate(rng.Below(levels));
    }
    point = space.Canonical(point);
    if (Claim(point)) return point;
  }
  return std::nullopt;
}

Proposal UnvisitedPoints::Finish(std::vector<Suggestion> suggestions) const {
  Proposal proposal;
  proposal.suggestions = std::move(suggestions);
  if (!proposal.suggestions.empty()) return proposal;
  proposal.outcome = Proposal::Outcome::kExhausted;
  const Cardinality all = history_.space().cardinality();
  if (!all.finite) {
    proposal.reason = absl::StrCat(kDraws + kEvenDraws, " random draws gave no untried point");
  } else if (all.count == 1) {
    proposal.reason = "the only point has been tried";
  } else {
    proposal.reason = absl::StrCat("all ", all.count, " points have been tried");
  }
  return proposal;
}

InitialDesign::InitialDesign(int axes) {
  if (axes <= SobolSequence::kMaxDimensions) sobol_.emplace(axes);
}

std::optional<Suggestion> InitialDesign::Next(const Space& space, uint64_t ordinal, const Rng& root,
                                              UnvisitedPoints& unvisited) const {
  if (sobol_) {
    Point point = space.FromUnit(sobol_->At(ordinal, root.seed()));
    // With other parameters such that it is allowed.
    for (uint64_t i = 0; ordinal == 0 && i < kCenterTries && space.priors() != nullptr; ++i) {
      Point expected = AtCenters(space, space.FromUnit(sobol_->At(i, root.seed())));
      if (!unvisited.Claim(expected)) continue;
      return Suggestion{.point = std::move(expected),
                        .explanation = "where the priors expect the best"};
    }
    if (unvisited.Claim(point)) {
      return Suggestion{.point = std::move(point),
                        .explanation = absl::StrCat("one of the first points, spread evenly: ",
                                                    ordinal + 1, " of the Sobol sequence")};
    }
  }
  return RandomFallback(root.Fork(ordinal), unvisited, "one of the first points, at random");
}

std::optional<Suggestion> InitialDesign::RandomFallback(Rng rng, UnvisitedPoints& unvisited,
                                                        const std::string& reason) {
  std::optional<Point> point = unvisited.Draw(rng);
  if (!point) return std::nullopt;
  return Suggestion{.point = *std::move(point), .explanation = reason};
}

}  // namespace shirabe::suggestion
