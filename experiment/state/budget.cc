#include "experiment/state/budget.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/timestamp.h"
#include "experiment/state/retry_policy.h"

namespace shirabe::experiment {
namespace {

double WallClockSeconds(const v1::Attempt& attempt) {
  if (!attempt.has_start_time() || !attempt.has_end_time()) return 0;
  const absl::Duration ran = FromProto(attempt.end_time()) - FromProto(attempt.start_time());
  return std::max(0.0, absl::ToDoubleSeconds(ran));
}

// What the attempt did after its last checkpoint, or all of it if it left none.
double WastedSeconds(const v1::Attempt& attempt, std::optional<absl::Time> last_save) {
  if (!IsLoss(attempt.cause())) return 0;
  if (!last_save) return attempt.seconds();
  const absl::Duration kept = *last_save - FromProto(attempt.start_time());
  return std::clamp(attempt.seconds() - absl::ToDoubleSeconds(kept), 0.0, attempt.seconds());
}

void CountSteps(v1::Attempt& attempt, const v1::Trial& trial) {
  const int64_t last = std::max(attempt.last_step(), attempt.resumed_from_step());
  const int64_t reached = std::max(trial.reached_step(), attempt.resumed_from_step());
  attempt.set_steps_gained(std::max<int64_t>(0, last - reached));
  attempt.set_steps_redone(std::min(last, reached) - attempt.resumed_from_step());
}

// Of an attempt with several placements each pays its own time; one alone pays all of it.
double PlacementSeconds(const v1::Attempt& attempt, const v1::Placement& placement) {
  if (attempt.placements_size() == 1) return attempt.seconds();
  if (!placement.has_start_time() || !placement.has_end_time()) return 0;
  const absl::Duration ran = FromProto(placement.end_time()) - FromProto(placement.start_time());
  return std::max(0.0, absl::ToDoubleSeconds(ran));
}

double AtPrice(const v1::Attempt& attempt, double (*price)(const v1::Placement&)) {
  double cost = 0;
  for (const v1::Placement& placement : attempt.placements()) {
    cost += PlacementSeconds(attempt, placement) * price(placement) / 3600;
  }
  return cost;
}

double OnDemandPrice(const v1::Placement& placement) {
  const bool known = placement.on_demand_price_per_hour() > 0;
  return known ? placement.on_demand_price_per_hour() : placement.price_per_hour();
}

}  // namespace

void CloseAccounts(v1::Attempt& attempt, const v1::Trial& trial, std::optional<absl::Duration> ran,
                   std::optional<absl::Time> last_save) {
  attempt.set_seconds(ran ? std::max(0.0, absl::ToDoubleSeconds(*ran)) : WallClockSeconds(attempt));
  attempt.set_cost(AtPrice(attempt, [](const v1::Placement& p) { return p.price_per_hour(); }));
  attempt.set_wasted_seconds(WastedSeconds(attempt, last_save));
  CountSteps(attempt, trial);
}

void Charge(const v1::Attempt& attempt, v1::Trial& trial, v1::ShirabeStatus& status) {
  const double part = attempt.seconds() > 0 ? attempt.wasted_seconds() / attempt.seconds() : 0;
  const auto add = [&](auto& sums) {
    sums.set_seconds(sums.seconds() + attempt.seconds());
    sums.set_cost(sums.cost() + attempt.cost());
    sums.set_wasted_seconds(sums.wasted_seconds() + attempt.wasted_seconds());
    sums.set_wasted_cost(sums.wasted_cost() + part * attempt.cost());
    sums.set_on_demand_cost(sums.on_demand_cost() + AtPrice(attempt, OnDemandPrice));
  };
  add(trial);
  add(status);
  if (IsLoss(attempt.cause())) status.set_preemptions(status.preemptions() + 1);
  trial.set_reached_step(
      std::max({trial.reached_step(), attempt.last_step(), attempt.resumed_from_step()}));
}

bool IsPlaced(const v1::Placement& placement) { return !placement.capacity().empty(); }

bool IsPlaced(const v1::Attempt& attempt) {
  return !attempt.placements().empty() && IsPlaced(attempt.placements(0));
}

bool IsOnThisMachine(const v1::Attempt& attempt) {
  return !attempt.placements().empty() && attempt.placements(0).pid() != 0;
}

double CostOf(absl::Duration ran, double price_per_hour) {
  return std::max(0.0, absl::ToDoubleSeconds(ran)) * price_per_hour / 3600;
}

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
