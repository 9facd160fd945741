#include "suggestion/evolution/success_history.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/text/number.h"

namespace shirabe::suggestion {
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
