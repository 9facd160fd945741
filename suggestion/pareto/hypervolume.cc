#include "suggestion/pareto/hypervolume.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

bool NoWorse(const Losses& a, const Losses& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return x <= y; });
}

bool Counts(const Losses& point, const Losses& reference) {
  return std::equal(point.begin(), point.end(), reference.begin(),
                    [](double x, double y) { return x < y; });
}

double VolumeBelow(const Losses& point, const Losses& reference) {
  double volume = 1;
  for (size_t k = 0; k < point.size(); ++k) volume *= reference[k] - point[k];
  return volume;
}

// Without the dominated ones, and one of each that are equal.
void KeepFront(std::vector<Losses>& points) {
  std::sort(points.begin(), points.end());
  std::vector<Losses> front;
  for (Losses& point : points) {
    const auto covers = [&point](const Losses& other) { return NoWorse(other, point); };
    if (std::none_of(front.rbegin(), front.rend(), covers)) front.push_back(std::move(point));
  }
  points = std::move(front);
}

// Of two losses; sorted by the first.
double Area(const std::vector<Losses>& front, const Losses& reference) {
  double area = 0, height = reference[1];
  for (const Losses& point : front) {
    if (point[1] >= height) continue;
    area += (reference[0] - point[0]) * (height - point[1]);
    height = point[1];
  }
  return area;
}

double VolumeOf(std::vector<Losses> points, const Losses& reference);

// What `point` dominates and none of the others does: all that it dominates, less what they
// dominate of that.
double Exclusive(const Losses& point, const std::vector<Losses>& others, const Losses& reference) {
  std::vector<Losses> limited;
  for (const Losses& other : others) {
    Losses worse = other;
    for (size_t k = 0; k < worse.size(); ++k) worse[k] = std::max(worse[k], point[k]);
    limited.push_back(std::move(worse));
  }
  return VolumeBelow(point, reference) - VolumeOf(std::move(limited), reference);
}

double VolumeOf(std::vector<Losses> points, const Losses& reference) {
  std::erase_if(points, [&](const Losses& point) { return !Counts(point, reference); });
  if (reference.size() == 2) {
    std::sort(points.begin(), points.end());
    return Area(points, reference);
  }
  KeepFront(points);
  double volume = 0;
  // Sorted by the first loss: the limited others of a late one are few and mostly dominated.
  std::vector<Losses> before;
  for (Losses& point : points) {
    volume += Exclusive(point, before, reference);
    before.push_back(std::move(point));
  }
  return volume;
}

}  // namespace

double Hypervolume(std::vector<Losses> points, const Losses& reference) {
  if (reference.size() != 1) return VolumeOf(std::move(points), reference);
  double least = reference[0];
  for (const Losses& point : points) least = std::min(least, point[0]);
  return reference[0] - least;
}

std::vector<LossBox> NonDominatedBoxes(const std::vector<Losses>& points, const Losses& reference) {
  const size_t last = reference.size() - 1;
  if (last == 0) {
    double least = reference[0];
    for (const Losses& point : points) least = std::min(least, point[0]);
    return {{{-kInfinity}, {least}}};
  }
  std::vector<Losses> sorted;  // by the last loss
  for (const Losses& point : points) {
    if (Counts(point, reference)) sorted.push_back(point);
  }
  std::sort(sorted.begin(), sorted.end(),
            [last](const Losses& a, const Losses& b) { return a[last] < b[last]; });
  // Slab by slab of the last loss: what is free there in the others. A box that is free in the next
  // slab, too, goes on.
  const Losses below(reference.begin(), reference.end() - 1);
  std::map<std::pair<Losses, Losses>, double> open;  // where each began
  std::vector<LossBox> boxes;
  std::vector<Losses> flat;
  double from = -kInfinity;
  for (size_t i = 0; i <= sorted.size();) {
    const double to = i < sorted.size() ? sorted[i][last] : reference[last];
    std::map<std::pair<Losses, Losses>, double> going;
    for (LossBox& box : NonDominatedBoxes(flat, below)) {
      const std::pair key(std::move(box.lower), std::move(box.upper));
      const auto found = open.extract(key);
      going.emplace(key, found ? found.mapped() : from);
    }
    const auto close = [&boxes](const auto& ended, double at) {
      for (const auto& [sides, began] : ended) {
        boxes.push_back({sides.first, sides.second});
        boxes.back().lower.push_back(began);
        boxes.back().upper.push_back(at);
      }
    };
    close(open, from);
    open = std::move(going);
    from = to;
    if (i == sorted.size()) {
      close(open, reference[last]);
      break;
    }
    for (; i < sorted.size() && sorted[i][last] == to; ++i) {
      Losses side(sorted[i].begin(), sorted[i].end() - 1);
      const auto covers = [&side](const Losses& other) { return NoWorse(other, side); };
      if (std::any_of(flat.begin(), flat.end(), covers)) continue;
      std::erase_if(flat, [&side](const Losses& other) { return NoWorse(side, other); });
      flat.push_back(std::move(side));
    }
  }
  return boxes;
}

}  // namespace shirabe::suggestion
