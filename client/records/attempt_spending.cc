#include "client/records/attempt_spending.h"

#include <algorithm>

#include "base/timestamp.h"

namespace shirabe::client {
namespace {

constexpr double kSecondsPerHour = 3600;

double SecondsAt(const v1::Placement& placement, absl::Time now) {
  if (!placement.has_start_time()) return 0;
  const absl::Time end = placement.has_end_time() ? FromProto(placement.end_time()) : now;
  return std::max(0.0, absl::ToDoubleSeconds(end - FromProto(placement.start_time())));
}

double OnDemandPrice(const v1::Placement& placement) {
  const double price = placement.on_demand_price_per_hour();
  return price > 0 ? price : placement.price_per_hour();
}

}  // namespace

Spending SpendingOf(const v1::Attempt& attempt, absl::Time now) {
  Spending spent;
  double open_seconds = 0;
  double open_cost = 0;
  for (const v1::Placement& placement : attempt.placements()) {
    const double seconds = SecondsAt(placement, now);
    open_seconds += seconds;
    open_cost += seconds * placement.price_per_hour() / kSecondsPerHour;
    spent.on_demand_cost += seconds * OnDemandPrice(placement) / kSecondsPerHour;
  }
  const bool closed = attempt.state() == v1::ATTEMPT_CLOSED;
  spent.seconds = closed ? attempt.seconds() : open_seconds;
  spent.cost = closed ? attempt.cost() : open_cost;
  return spent;
}

v1::Placement PlacementOf(const v1::Attempt& attempt) {
  const int count = attempt.placements_size();
  return count > 0 ? attempt.placements(count - 1) : v1::Placement();
}

}  // namespace shirabe::client
