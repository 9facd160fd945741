#include "client/charts/capacity_reader.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sorting.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "experiment/state/retry_policy.h"

namespace shirabe::client {
namespace {

constexpr int kDefaultHours = 24;
constexpr double kHour = 3600;
constexpr size_t kMaxKept = 64;
constexpr char kSpot[] = "spot";

double UnixSeconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

google::protobuf::Timestamp TimestampOf(double unix_seconds) {
  return ToProto(absl::UnixEpoch() + absl::Seconds(unix_seconds));
}

// By the word of its cause: the machine was lost, as the ledger counts it.
bool IsLossWord(const std::string& cause) {
  static const std::set<std::string> words = [] {
    std::set<std::string> all;
    const auto& type = *v1::Cause_descriptor();
    for (int i = 0; i < type.value_count(); ++i) {
      const auto one = static_cast<v1::Cause>(type.value(i)->number());
      if (experiment::IsLoss(one)) all.insert(CauseWord(one));
    }
    return all;
  }();
  return words.contains(cause);
}

// What the report is made of, while one table after the other is looked at.
class CapacityCount {
 public:
  CapacityCount(absl::Time now, int hours)
      : now_(UnixSeconds(now)), first_(std::floor(now_ / kHour) * kHour - (hours - 1) * kHour) {
    hours_.resize(hours);
    for (int i = 0; i < hours; ++i) *hours_[i].mutable_start() = TimestampOf(first_ + i * kHour);
  }

  // Seconds since 1970.
  double first() const { return first_; }
  void AddAttempts(const ExperimentKey& key, const ColumnTable& table);
  void AddWaiting(const v1::Summary& summary);
  v1::CapacityReport Report(absl::Time now);

 private:
  struct Pool {
    int64_t running = 0;
    std::set<std::string> nodes = {};
    double cost_per_hour = 0;
  };
  v1::CapacityHour* HourOf(double time) {
    const double place = std::floor((time - first_) / kHour);
    const bool within = place >= 0 && place < static_cast<double>(hours_.size());
    return within ? &hours_[static_cast<size_t>(place)] : nullptr;
  }
  void AddRun(double start, double end, double cost_per_second, bool spot);
  void AddRunning(const ExperimentKey& key, const ColumnTable& table, size_t row);

  const double now_;
  const double first_;
  std::vector<v1::CapacityHour> hours_;
  std::map<std::pair<std::string, std::string>, Pool> pools_;
  std::vector<v1::RunningAttempt> attempts_;
  std::vector<v1::WaitingExperiment> queue_;
  int64_t pending_ = 0;
};

void CapacityCount::AddAttempts(const ExperimentKey& key, const ColumnTable& table) {
  const std::vector<double>& starts = table.Values("start");
  const std::vector<double>& ends = table.Values("end");
  const std::vector<double>& costs = table.Values("cost");
  const std::vector<double>& wasted = table.Values("wastedSeconds");
  const std::vector<double>& prices = table.Values("pricePerHour");
  for (size_t row = 0; row < table.rows(); ++row) {
    const bool open = std::isnan(ends[row]) && table.WordAt("state", row) != "closed";
    if (open) AddRunning(key, table, row);
    if (!open && !(ends[row] >= first_)) continue;
    if (std::isnan(starts[row])) continue;
    if (v1::CapacityHour* hour = HourOf(starts[row])) hour->set_started(hour->started() + 1);
    const double end = open ? now_ : ends[row];
    const double seconds = std::max(end - starts[row], 0.0);
    const double price = std::isnan(prices[row]) ? 0 : prices[row];
    const double cost = open || std::isnan(costs[row]) ? price * seconds / kHour : costs[row];
    const bool spot = table.WordAt("capacity", row) == kSpot;
    if (seconds > 0) AddRun(starts[row], end, cost / seconds, spot);
    v1::CapacityHour* hour = open ? nullptr : HourOf(end);
    if (hour == nullptr || !IsLossWord(table.WordAt("cause", row))) continue;
    hour->set_preemptions(hour->preemptions() + 1);
    // As the ledger has it: the attempt's cost, by the share of its seconds that were lost.
    if (seconds > 0 && wasted[row] > 0) {
      hour->set_wasted_cost(hour->wasted_cost() + cost * std::min(wasted[row] / seconds, 1.0));
    }
  }
}

void CapacityCount::AddRun(double start, double end, double cost_per_second, bool spot) {
  for (double at = std::max(start, first_); at < end;) {
    v1::CapacityHour* hour = HourOf(at);
    if (hour == nullptr) return;
    const double next = (std::floor(at / kHour) + 1) * kHour;
    const double seconds = std::min(end, next) - at;
    hour->set_seconds(hour->seconds() + seconds);
    hour->set_cost(hour->cost() + seconds * cost_per_second);
    if (spot) hour->set_spot_seconds(hour->spot_seconds() + seconds);
    if (spot) hour->set_spot_cost(hour->spot_cost() + seconds * cost_per_second);
    at = next;
  }
}

void CapacityCount::AddRunning(const ExperimentKey& key, const ColumnTable& table, size_t row) {
  const double price = table.Values("pricePerHour")[row];
  const double start = table.Values("start")[row];
  v1::RunningAttempt& attempt = attempts_.emplace_back();
  attempt.set_namespace_(key.ns);
  attempt.set_experiment(key.name);
  attempt.set_trial(table.key(row).trial);
  attempt.set_attempt(table.key(row).attempt);
  attempt.set_node(table.WordAt("node", row));
  attempt.set_pool(table.WordAt("pool", row));
  attempt.set_capacity(table.WordAt("capacity", row));
  attempt.set_price_per_hour(std::isnan(price) ? 0 : price);
  if (!std::isnan(start)) *attempt.mutable_start_time() = TimestampOf(start);
  Pool& pool = pools_[{attempt.pool(), attempt.capacity()}];
  ++pool.running;
  pool.cost_per_hour += attempt.price_per_hour();
  if (!attempt.node().empty()) pool.nodes.insert(attempt.node());
}

void CapacityCount::AddWaiting(const v1::Summary& summary) {
  if (summary.has_ended() || summary.trials_pending() == 0) return;
  pending_ += summary.trials_pending();
  v1::WaitingExperiment& waiting = queue_.emplace_back();
  waiting.set_namespace_(summary.namespace_());
  waiting.set_experiment(summary.name());
  waiting.set_pending(summary.trials_pending());
  waiting.set_waiting(summary.waiting());
}

v1::CapacityReport CapacityCount::Report(absl::Time now) {
  v1::CapacityReport report;
  *report.mutable_as_of() = ToProto(now);
  report.set_running(static_cast<int64_t>(attempts_.size()));
  report.set_pending(pending_);
  for (const auto& [name, pool] : pools_) {
    v1::PoolUse& use = *report.add_pools();
    use.set_pool(name.first);
    use.set_capacity(name.second);
    use.set_running(pool.running);
    use.set_nodes(static_cast<int64_t>(pool.nodes.size()));
    use.set_cost_per_hour(pool.cost_per_hour);
    report.set_cost_per_hour(report.cost_per_hour() + pool.cost_per_hour);
    if (name.second == kSpot) report.set_running_spot(report.running_spot() + pool.running);
  }
  StableSort(attempts_, [](const auto& a, const auto& b) {
    if (a.has_start_time() != b.has_start_time()) return a.has_start_time();
    return FromProto(a.start_time()) < FromProto(b.start_time());
  });
  if (attempts_.size() > CapacityReader::kMaxItems) attempts_.resize(CapacityReader::kMaxItems);
  if (queue_.size() > CapacityReader::kMaxItems) queue_.resize(CapacityReader::kMaxItems);
  report.mutable_attempts()->Assign(attempts_.begin(), attempts_.end());
  report.mutable_queue()->Assign(queue_.begin(), queue_.end());
  report.mutable_hours()->Assign(hours_.begin(), hours_.end());
  return report;
}

}  // namespace

StatusOr<v1::CapacityReport> CapacityReader::Read(const v1::CapacityRequest& request) {
  if (request.hours() < 0 || request.hours() > kMaxHours) {
    return absl::InvalidArgumentError(
        absl::StrCat("hours must be from 1 to ", kMaxHours, ", not ", request.hours()));
  }
  const int hours = request.hours() == 0 ? kDefaultHours : request.hours();
  const MutexLock lock(mutex_);
  const absl::Duration now = clock_->Monotonic();
  Kept& kept = kept_[{request.namespace_(), hours}];
  if (now - kept.made >= kKept) {
    auto made = Make(request.namespace_(), hours);
    if (!made.ok()) kept_.erase({request.namespace_(), hours});
    RETURN_IF_ERROR(made.status());
    kept = {.made = now, .report = *std::move(made)};
  }
  v1::CapacityReport report = kept.report;
  if (kept_.size() > kMaxKept) kept_.clear();
  if (request.known() != report.version()) return report;
  v1::CapacityReport unchanged;
  unchanged.set_version(report.version());
  return unchanged;
}

StatusOr<v1::CapacityReport> CapacityReader::Make(const std::string& ns, int hours) {
  const absl::Time now = clock_->Now();
  CapacityCount count(now, hours);
  ASSIGN_OR_RETURN(const auto summaries, summaries_->List(ns));
  for (const v1::Summary& summary : summaries) {
    const bool over =
        summary.has_ended() && UnixSeconds(FromProto(summary.ended())) < count.first();
    if (over) continue;
    count.AddWaiting(summary);
    const ExperimentKey key{summary.namespace_(), summary.name()};
    const Status read =
        columns_->Read(key, ColumnCache::Rows::kAttempts, [&](const auto& snapshot) {
          count.AddAttempts(key, snapshot.table);
          return absl::OkStatus();
        });
    if (!read.ok() && !absl::IsNotFound(read)) return read;  // deleted meanwhile
  }
  v1::CapacityReport report = count.Report(now);
  report.set_version(absl::StrCat(absl::ToUnixMillis(now)));
  return report;
}

}  // namespace shirabe::client
