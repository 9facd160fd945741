#include "suggestion/cma_restarts.h"

#include <algorithm>
#include <cmath>

namespace shirabe::suggestion {
namespace {

// A generation beyond this hardly ever ends; doubling must not overflow either.
constexpr int64_t kMostMembers = 1 << 20;

}  // namespace

CmaRunPlan CmaRestarts::Next(int64_t trials, Rng& rng) {
  (small_ ? small_trials_ : large_trials_) += trials;
  if (!small_) latest_large_ = trials;
  const double u_population = rng.Uniform();
  const double u_sigma = rng.Uniform();
  small_ = strategy_ == Strategy::kBipop && small_trials_ < large_trials_ &&
           large_population_ > first_.population;
  if (!small_) {
    large_population_ = std::min(2 * large_population_, kMostMembers);
    return {.population = large_population_, .sigma = first_.sigma};
  }
  const auto base = static_cast<double>(first_.population);
  const double ratio = static_cast<double>(large_population_) / (2 * base);
  const double population = base * std::pow(ratio, u_population * u_population);
  return {.population = std::max(first_.population, static_cast<int64_t>(population)),
          .sigma = first_.sigma * std::pow(10, -2 * u_sigma),
          .limit = std::max(first_.population, latest_large_ / 2)};
}

void CmaRestarts::Fields(CmaRecord& record) {
  record.Integer(large_population_);
  record.Integer(large_trials_);
  record.Integer(small_trials_);
  record.Integer(latest_large_);
  int64_t small = small_ ? 1 : 0;
  record.Integer(small);
  small_ = small == 1;
}

}  // namespace shirabe::suggestion
