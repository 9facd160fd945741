#include "view/spending.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/timestamp.h"
#include "experiment/state/checkpoint_policy.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

constexpr double kFewSeconds = 100;  // up to here tenths of a second are of interest

std::string Currency(const v1::Experiment& experiment) {
  const std::string& named = experiment.spec().shirabe().budget().currency();
  return named.empty() ? "USD" : named;
}

std::string Percent(double part, double whole) {
  return whole > 0 ? absl::StrFormat("%.1f %%", 100 * part / whole) : "0 %";
}

std::string CostLine(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  const v1::Budget& budget = experiment.spec().shirabe().budget();
  if (status.cost() <= 0 && !budget.has_max_cost()) return "";
  std::string text = absl::StrCat(AmountText(status.cost()), " ", Currency(experiment));
  if (budget.has_max_cost()) {
    absl::StrAppend(&text, " of a budget of ", MoneyText(experiment, budget.max_cost()), " (",
                    Percent(status.cost(), budget.max_cost()), ")");
  }
  return absl::StrCat(text, ", for ", SecondsText(status.seconds()), " of machines");
}

std::string OnDemandLine(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (status.cost() <= 0 || status.on_demand_cost() <= status.cost()) return "";
  const double saved = status.on_demand_cost() - status.cost();
  return absl::StrCat(MoneyText(experiment, status.on_demand_cost()),
                      " for the same time: ", MoneyText(experiment, saved), " (",
                      Percent(saved, status.on_demand_cost()), ") saved");
}

std::string WasteLine(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (status.preemptions() == 0 && status.wasted_seconds() <= 0) return "";
  std::string text = absl::StrCat(SecondsText(status.wasted_seconds()), " (",
                                  Percent(status.wasted_seconds(), status.seconds()), ")");
  if (status.cost() > 0)
    absl::StrAppend(&text, ", ", AmountText(status.wasted_cost()), " ", Currency(experiment));
  return text + ", after the last checkpoints of lost attempts";
}

std::string CountLine(int64_t count, const char* one, const char* many) {
  return count > 0 ? absl::StrCat(count, " ", count == 1 ? one : many) : "";
}

bool IsPreemption(v1::Cause cause) {
  switch (cause) {
    case v1::PREEMPTED_SCHEDULER:
    case v1::PREEMPTED_EVICTION:
    case v1::PREEMPTED_NODE:
    case v1::PREEMPTED_SPOT: return true;
    default: return false;
  }
}

struct PoolRecord {
  double seconds = 0;  // of attempts
  int64_t preempted = 0;
};

std::string PoolOf(const v1::Placement& placement) {
  if (!placement.pool().empty()) return placement.pool();
  return placement.capacity().empty() ? "(none)" : absl::StrCat("(", placement.capacity(), ")");
}

std::map<std::string, PoolRecord> RecordsOf(const std::vector<v1::Attempt>& attempts,
                                            absl::Time now) {
  std::map<std::string, PoolRecord> pools;
  for (const v1::Attempt& attempt : attempts) {
    const v1::Placement last = client::PlacementOf(attempt);
    if (!last.has_start_time()) continue;
    PoolRecord& pool = pools[PoolOf(last)];
    pool.seconds += SpendingOf(attempt, now).seconds;
    pool.preempted += IsPreemption(attempt.cause()) ? 1 : 0;
  }
  return pools;
}

}  // namespace

void AddRunning(const std::vector<v1::Attempt>& open, absl::Time now, v1::Experiment& experiment) {
  for (const v1::Attempt& attempt : open) {
    v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
    const Spending spent = SpendingOf(attempt, now);
    status.set_seconds(status.seconds() + spent.seconds);
    status.set_cost(status.cost() + spent.cost);
    status.set_on_demand_cost(status.on_demand_cost() + spent.on_demand_cost);
  }
}

std::string AmountText(double amount) {
  const double size = std::abs(amount);
  if (size == 0) return "0";
  if (size >= 1) return absl::StrFormat("%.2f", amount);
  if (size >= 0.01) return absl::StrFormat("%.4f", amount);
  return absl::StrFormat("%.3g", amount);
}

std::string MoneyText(const v1::Experiment& experiment, double amount) {
  return amount == 0 ? "" : absl::StrCat(AmountText(amount), " ", Currency(experiment));
}

std::string SecondsText(double seconds) {
  return seconds < kFewSeconds ? absl::StrFormat("%.1fs", seconds)
                               : FormatAge(absl::Seconds(seconds));
}

std::vector<std::pair<std::string, std::string>> SpendingLines(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  return {
      {"Cost", CostLine(experiment)},
      {"On demand", OnDemandLine(experiment)},
      {"Preempted", CountLine(status.preemptions(), "attempt", "attempts")},
      {"Wasted", WasteLine(experiment)},
      {"Refused",
       CountLine(status.refused_writes(), "write of an attempt that was no longer current",
                 "writes of attempts that were no longer current")},
  };
}

std::string PreemptionTable(const std::vector<v1::Attempt>& attempts, double interval_seconds,
                            absl::Time now) {
  Table table({"POOL", "RAN", "PREEMPTED", "ONCE IN", "SAVE EVERY"});
  bool any = false;
  for (const auto& [name, pool] : RecordsOf(attempts, now)) {
    if (pool.preempted == 0) continue;
    any = true;
    const double between = pool.seconds / static_cast<double>(pool.preempted);
    const double advice = experiment::AdvisedSaveSeconds(pool.seconds, pool.preempted);
    const bool rarely = interval_seconds > advice;
    table.Add({name, SecondsText(pool.seconds), absl::StrCat(pool.preempted), SecondsText(between),
               absl::StrCat(SecondsText(advice), rarely ? " (intervalSeconds is " : "",
                            rarely ? SecondsText(interval_seconds) + ")" : "")});
  }
  return any ? table.Render() : "";
}

}  // namespace shirabe::view
