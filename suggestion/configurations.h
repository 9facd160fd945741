// What has been tried apart from how long it was trained: the history's points without their
// resource. Serves one proposal. Used by the algorithms that decide for how long a trial trains.
#pragma once

#include <optional>

#include "suggestion/history.h"
#include "suggestion/unvisited.h"

namespace shirabe::suggestion {

class Configurations {
 public:
  // `axis` is the resource; nullopt where there is none, and then every point is a configuration.
  Configurations(const History& history, std::optional<int> axis);
  Configurations(const Configurations&) = delete;

  const Space& space() const { return tried_.space(); }
  // Of trial `index`.
  Point at(int64_t index) const { return tried_.point(index); }
  // False if the configuration has been tried or taken.
  bool Take(const Point& configuration) { return unvisited_.Take(configuration); }
  // Takes a random one; nullopt if there is none left.
  std::optional<Point> Draw(Rng& rng) { return unvisited_.Draw(rng); }
  // The whole point, with this coordinate of the resource.
  Point With(Point configuration, double resource) const;

 private:
  std::optional<int> axis_;
  History tried_;
  Unvisited unvisited_;
};

}  // namespace shirabe::suggestion
