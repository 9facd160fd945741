#include "suggestion/configurations.h"

namespace shirabe::suggestion {

Configurations::Configurations(const History& history, std::optional<int> axis)
    : axis_(axis),
      tried_(axis ? history.space().Without(*axis) : history.space()),
      unvisited_(tried_) {
  for (int64_t i = 0; i < history.size(); ++i) {
    Point point = history.point(i);
    if (axis_) point.erase(point.begin() + *axis_);
    tried_.Add(point, {});
  }
}

Point Configurations::With(Point configuration, double resource) const {
  if (axis_) configuration.insert(configuration.begin() + *axis_, resource);
  return configuration;
}

}  // namespace shirabe::suggestion
