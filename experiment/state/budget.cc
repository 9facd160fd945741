#include "experiment/state/budget.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace shirabe::experiment {
namespace {

// A running attempt is looked at twice a second; the rest is for a machine that is busy.
constexpr absl::Duration kBudgetPollInterval = absl::Seconds(1);

}  // namespace

int64_t BudgetState::Affordable(int64_t wanted) const {
  if (!cap || next <= 0) return wanted;
  const auto fits = [this](int64_t starts) {
    return spent + reserved + next * static_cast<double>(starts) < *cap;
  };
  if (fits(wanted)) return wanted;
  // Rounding may have it one too high or too low.
  const double room = (*cap - spent - reserved) / next;
  auto starts = static_cast<int64_t>(std::clamp(room, 0.0, static_cast<double>(wanted)));
  while (starts > 0 && !fits(starts)) --starts;
  while (starts < wanted && fits(starts + 1)) ++starts;
  return starts;
}

std::optional<std::string> BudgetState::WhyReached(bool running,
                                                   const std::string& currency) const {
  if (!cap) return std::nullopt;
  const bool exhausted = spent + reserved >= *cap;
  const bool stuck = !running && Affordable(1) == 0;
  if (!exhausted && !stuck) return std::nullopt;
  return absl::StrFormat(
      "%.2f of %.2f %s are spent, and %s may cost %.2f until stopped (within "
      "spec.shirabe.attempts.gracePeriodSeconds), which is all of the rest, or more",
      spent, *cap, currency.empty() ? "USD" : currency, running ? "what runs" : "another attempt",
      running ? reserved : next);
}

absl::Duration ReservedTime(absl::Duration grace) { return grace + kBudgetPollInterval; }

}  // namespace shirabe::experiment
