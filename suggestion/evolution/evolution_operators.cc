#include "suggestion/evolution/evolution_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

constexpr char kPopulation[] = "population_size";
// The spread factor β of a child on the side of a bound that is `room` away, in units of the
// parents' distance; u in [0, 1). α is what is left of the distribution within the bound.
double SpreadFactor(double room, double u) {
  const double power = kDistributionIndex + 1;
  const double alpha = 2 - std::pow(1 + 2 * room, -power);
  const double t = u * alpha;
  return t <= 1 ? std::pow(t, 1 / power) : std::pow(1 / (2 - t), 1 / power);
}

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
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
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

SettingInfo PopulationSetting(int least) {
  return {.name = kPopulation,
          .type = SettingInfo::Type::kInt,
          .min = static_cast<double>(least),
          .max = 1000,
          .help =
              "how many points evolve, after as many first ones that are spread evenly; the "
              "square root of maxTrialCount, at least 8, if not given (20 without a limit)"};
}

int PopulationSize(const Problem& problem) {
  constexpr int kMinSize = 8, kMaxSize = 1000, kUnlimited = 20;
  if (const std::string* given = FindSetting(problem.settings, kPopulation)) {
    return static_cast<int>(*ParseNumber(*given));
  }
  if (problem.max_trials <= 0) return kUnlimited;
  const double root = std::sqrt(static_cast<double>(problem.max_trials));
  return static_cast<int>(std::clamp<double>(std::round(root), kMinSize, kMaxSize));
}

std::pair<double, double> SimulatedBinary(double a, double b, Rng& rng) {
  const double u = rng.Uniform();
  const double low = std::min(a, b), high = std::max(a, b), distance = high - low;
  if (distance < 1e-12) return {a, b};
  const double middle = (low + high) / 2, half = distance / 2;
  const double first = middle - SpreadFactor(low / distance, u) * half;
  const double second = middle + SpreadFactor((1 - high) / distance, u) * half;
  return {std::clamp(first, 0.0, 1.0), std::clamp(second, 0.0, 1.0)};
}

double PolynomialMutation(double x, Rng& rng) {
  const double power = kDistributionIndex + 1;
  const double u = rng.Uniform();
  const double delta =
      u < 0.5 ? std::pow(2 * u + (1 - 2 * u) * std::pow(1 - x, power), 1 / power) - 1
              : 1 - std::pow(2 * (1 - u) + 2 * (u - 0.5) * std::pow(x, power), 1 / power);
  return std::clamp(x + delta, 0.0, 1.0);
}

std::vector<Individual> EndedIndividuals(const History& history) {
  int64_t furthest = 0;
  for (int64_t i = 0; i < history.size(); ++i) {
    furthest = std::max(furthest, history.trial(i).last_step);
  }
  const double steps = static_cast<double>(furthest) + 2;
  std::vector<Individual> individuals;
  individuals.reserve(history.size());
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.state == TrialState::kActive) continue;
    Individual individual{.trial = i, .losses = {trial.loss}};
    if (trial.state == TrialState::kInfeasible || !std::isfinite(trial.loss)) {
      individual.losses = {0};
      individual.violation = 1;
    } else if (trial.early_stopped) {
      const double reached = std::max(0.0, static_cast<double>(trial.last_step));
      individual.violation = 1 - (reached + 1) / steps;
    }
    individuals.push_back(std::move(individual));
  }
  return individuals;
}

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
  std::stable_sort(individuals.begin(), individuals.end(), &Before);
  std::vector<Individual> survivors;
  for (const Front& front : FrontsOf(individuals)) {
    if (survivors.size() >= count) break;
    const std::vector<double> distances = CrowdingDistances(individuals, front);
    std::vector<size_t> order(front.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return distances[a] > distances[b]; });
    order.resize(std::min(order.size(), count - survivors.size()));
    for (size_t place : order) survivors.push_back(individuals[front[place]]);
  }
  return survivors;
}

}  // namespace shirabe::suggestion
