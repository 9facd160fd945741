#include "suggestion/evolution/evolution_operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

namespace {

// Few, as in L-SHADE (Tanabe & Fukunaga 2014): a search of some hundred trials has few generations.
constexpr size_t kMemory = 6;
constexpr double kSpread = 0.1;  // of the distributions around the means

std::optional<double> Within(const std::string& text, double max) {
  const std::optional<double> number = ParseNumber(text);
  if (!number || !(*number >= 0 && *number <= max)) return std::nullopt;
  return number;
}

}  // namespace

std::string ControlParameters::Encode() const {
  return absl::StrCat(slot, " ", FormatNumber(f), " ", FormatNumber(cr));
}

std::optional<ControlParameters> ControlParameters::Decode(const std::string& text, int slots) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  if (parts.size() != 3) return std::nullopt;
  const auto slot = Within(parts[0], slots - 1), f = Within(parts[1], 1), cr = Within(parts[2], 1);
  if (!slot || !f || !cr || *slot != std::floor(*slot)) return std::nullopt;
  return ControlParameters{.slot = static_cast<int>(*slot), .f = *f, .cr = *cr};
}

SuccessHistory::SuccessHistory(const History& history, int slots)
    : slots_(slots), challenges_(slots, 0), memory_(kMemory) {
  std::vector<Individual> individuals = EndedIndividuals(history);
  auto next = individuals.begin();
  for (int64_t i = 0; i < history.size(); ++i) {
    std::optional<ControlParameters> control;
    if (const auto label = history.label(i, ControlParameters::kLabel)) {
      control = ControlParameters::Decode(*label, slots);
    }
    if (control) ++challenges_[control->slot];
    if (next == individuals.end() || next->trial != i) continue;
    Play(*next, control);
    ++next;
  }
  std::vector<Individual> population;
  for (const auto& slot : slots_) {
    if (slot) population.push_back(*slot);
  }
  const size_t size = population.size();
  for (const Individual& individual : Survivors(std::move(population), size)) {
    ranked_.push_back(individual.trial);
  }
}

size_t SuccessHistory::PlaceFor(const std::optional<ControlParameters>& control) const {
  if (control) return control->slot;
  size_t worst = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i]) return i;
    if (Dominates(*slots_[worst], *slots_[i])) worst = i;
  }
  return worst;
}

void SuccessHistory::Play(const Individual& individual,
                          const std::optional<ControlParameters>& control) {
  std::optional<Individual>& place = slots_[PlaceFor(control)];
  const bool taken =
      !place || (control ? !Dominates(*place, individual) : Dominates(individual, *place));
  if (taken) {
    if (place && control && Dominates(individual, *place)) successes_.push_back(*control);
    if (place) archive_.push_back(place->trial);
    if (archive_.size() > slots_.size()) archive_.erase(archive_.begin());
    place = individual;
  }
  if (++judged_ % static_cast<int64_t>(slots_.size()) == 0) Remember();
}

void SuccessHistory::Remember() {
  if (successes_.empty()) return;
  double f = 0, squares = 0, cr = 0;
  for (const ControlParameters& control : successes_) {
    f += control.f;
    squares += control.f * control.f;
    cr += control.cr;
  }
  memory_[next_] = {.f = f > 0 ? squares / f : 0,
                    .cr = cr / static_cast<double>(successes_.size())};
  next_ = (next_ + 1) % memory_.size();
  successes_.clear();
}

std::optional<int64_t> SuccessHistory::occupant(int slot) const {
  if (!slots_[slot]) return std::nullopt;
  return slots_[slot]->trial;
}

int SuccessHistory::NextSlot() const {
  return static_cast<int>(std::min_element(challenges_.begin(), challenges_.end()) -
                          challenges_.begin());
}

// F from a Cauchy distribution, whose tails try large steps at any time; what is not positive is
// drawn again, what is above 1 is 1. CR from a normal one.
ControlParameters SuccessHistory::Draw(int slot, Rng& rng) const {
  const Means& means = memory_[rng.Below(memory_.size())];
  ControlParameters control{.slot = slot, .f = 0, .cr = means.cr + kSpread * rng.Normal()};
  while (!(control.f > 0)) {
    control.f = means.f + kSpread * std::tan(std::numbers::pi * (rng.Uniform() - 0.5));
  }
  control.f = std::min(control.f, 1.0);
  control.cr = std::clamp(control.cr, 0.0, 1.0);
  return control;
}

}  // namespace shirabe::suggestion
