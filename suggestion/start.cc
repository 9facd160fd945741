#include "suggestion/start.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::suggestion {

Start::Start(int axes) {
  if (axes <= SobolSequence::kMaxDimensions) sobol_.emplace(axes);
}

std::optional<Suggestion> Start::Next(const Space& space, uint64_t ordinal, const Rng& root,
                                      Unvisited& unvisited) const {
  if (sobol_) {
    Point point = space.FromUnit(sobol_->At(ordinal, root.seed()));
    if (unvisited.Take(point)) {
      return Suggestion{.point = std::move(point),
                        .explanation = absl::StrCat("one of the first points, spread evenly: ",
                                                    ordinal + 1, " of the Sobol sequence")};
    }
  }
  return Anything(root.Fork(ordinal), unvisited, "one of the first points, at random");
}

std::optional<Suggestion> Start::Anything(Rng rng, Unvisited& unvisited,
                                          const std::string& reason) {
  std::optional<Point> point = unvisited.Draw(rng);
  if (!point) return std::nullopt;
  return Suggestion{.point = *std::move(point), .explanation = reason};
}

}  // namespace shirabe::suggestion
