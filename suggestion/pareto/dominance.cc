#include "suggestion/pareto/dominance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/sorting.h"
#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

// Lexicographic, so that the one that dominates comes first.
bool Before(const Individual& a, const Individual& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  return a.losses < b.losses;
}

bool Equal(const Individual& a, const Individual& b) {
  return a.violation == b.violation && a.losses == b.losses;
}

using Front = std::vector<size_t>;  // places in the sorted individuals

bool DominatedBy(const std::vector<Individual>& sorted, const Front& front, size_t candidate) {
  // Of two losses the latest has the least second one.
  if (sorted[candidate].losses.size() <= 2) {
    return Dominates(sorted[front.back()], sorted[candidate]);
  }
  // The latest of a front is the likeliest to dominate (Zhang et al. 2015, §III).
  return std::any_of(front.rbegin(), front.rend(),
                     [&](size_t other) { return Dominates(sorted[other], sorted[candidate]); });
}

// Efficient non-dominated sort with binary search (Zhang et al. 2015). Equals share a front without
// a comparison, so that a hundred thousand equal losses cost nothing.
std::vector<Front> FrontsOf(const std::vector<Individual>& sorted) {
  std::vector<Front> fronts;
  size_t last = 0;  // front of the one before
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || !Equal(sorted[i - 1], sorted[i])) {
      const auto place =
          std::partition_point(fronts.begin(), fronts.end(),
                               [&](const Front& front) { return DominatedBy(sorted, front, i); });
      last = place - fronts.begin();
    }
    if (last == fronts.size()) fronts.emplace_back();
    fronts[last].push_back(i);
  }
  return fronts;
}

// Σ over losses of the distance between the neighbours on both sides, in parts of the range;
// infinite at the ends.
std::vector<double> CrowdingDistances(const std::vector<Individual>& sorted, const Front& front) {
  std::vector<double> distance(front.size(), 0);
  std::vector<size_t> order(front.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t k = 0; k < sorted[front[0]].losses.size(); ++k) {
    const auto loss = [&](size_t place) { return sorted[front[order[place]]].losses[k]; };
    StableSort(order, [&](size_t a, size_t b) {
      return sorted[front[a]].losses[k] < sorted[front[b]].losses[k];
    });
    const size_t last = front.size() - 1;
    const double range = loss(last) / 2 - loss(0) / 2;  // halves: losses may be huge
    if (!(range > 0)) continue;
    distance[order[0]] = distance[order[last]] = kInfinity;
    for (size_t i = 1; i < last; ++i) {
      distance[order[i]] += (loss(i + 1) / 2 - loss(i - 1) / 2) / range;
    }
  }
  return distance;
}

}  // namespace

bool Dominates(const Individual& a, const Individual& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  bool better = false;
  for (size_t k = 0; k < a.losses.size(); ++k) {
    if (a.losses[k] > b.losses[k]) return false;
    better |= a.losses[k] < b.losses[k];
  }
  return better;
}

std::vector<Individual> Survivors(std::vector<Individual> individuals, size_t count) {
  StableSort(individuals, &Before);
  std::vector<Individual> survivors;
  for (const Front& front : FrontsOf(individuals)) {
    if (survivors.size() >= count) break;
    const std::vector<double> distances = CrowdingDistances(individuals, front);
    std::vector<size_t> order =
        SortedPlaces(front.size(), [&](size_t a, size_t b) { return distances[a] > distances[b]; });
    order.resize(std::min(order.size(), count - survivors.size()));
    for (size_t place : order) survivors.push_back(individuals[front[place]]);
  }
  return survivors;
}

void ReplaceByRanks(std::vector<Individual>& individuals) {
  if (individuals.empty()) return;
  std::vector<size_t> order(individuals.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t k = 0; k < individuals[0].losses.size(); ++k) {
    const auto loss = [&](size_t i) { return individuals[i].losses[k]; };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return loss(a) < loss(b); });
    double rank = 0, before = loss(order[0]);
    for (const size_t i : order) {
      rank += loss(i) > before ? 1 : 0;
      before = loss(i);
      individuals[i].losses[k] = rank;
    }
  }
}

FrontPlace PlaceOf(size_t which, const std::vector<Individual>& individuals) {
  const auto before = [&](size_t a, size_t b) { return Before(individuals[a], individuals[b]); };
  std::vector<Individual> sorted;
  size_t mine = 0;
  for (const size_t place : SortedPlaces(individuals.size(), before)) {
    if (place == which) mine = sorted.size();
    sorted.push_back(individuals[place]);
  }
  FrontPlace found;
  for (const Front& front : FrontsOf(sorted)) {
    const auto self = std::find(front.begin(), front.end(), mine);
    if (self == front.end()) {
      ++found.front;
      found.better += front.size();
      continue;
    }
    const std::vector<double> distances = CrowdingDistances(sorted, front);
    const double own = distances[self - front.begin()];
    found.better += std::count_if(distances.begin(), distances.end(),
                                  [own](double distance) { return distance > own; });
    break;
  }
  return found;
}

std::vector<Individual> FirstFront(const std::vector<Individual>& individuals) {
  std::vector<Individual> sorted = individuals;
  StableSort(sorted, &Before);
  std::vector<Individual> first;
  const std::vector<Front> fronts = FrontsOf(sorted);
  if (fronts.empty()) return first;
  for (const size_t place : fronts[0]) first.push_back(std::move(sorted[place]));
  std::sort(first.begin(), first.end(),
            [](const Individual& a, const Individual& b) { return a.trial < b.trial; });
  return first;
}

}  // namespace shirabe::suggestion
