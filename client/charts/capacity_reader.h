// What runs where, what it costs, and how often machines were taken away: over the experiments of a
// namespace, or all. Made from their summaries and from the columns of their attempts. Made by the
// client over a store; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "client/charts/column_cache.h"
#include "client/charts/summary_board.h"
#include "proto/shirabe/v1/charts.pb.h"

namespace shirabe::client {

class CapacityReader {
 public:
  static constexpr int kMaxHours = 24 * 31;
  static constexpr int kMaxItems = 1000;  // of a list of the report
  // A report is made at most so often: it looks at all attempts of the hours.
  static constexpr absl::Duration kKept = absl::Seconds(1);

  // All of them outlive it.
  CapacityReader(Clock* clock, SummaryBoard* summaries, ColumnCache* columns)
      : clock_(clock), summaries_(summaries), columns_(columns) {}

  // kInvalidArgument, naming the field, for what is out of range.
  StatusOr<v1::CapacityReport> Read(const v1::CapacityRequest& request);

 private:
  struct Kept {
    absl::Duration made = -absl::InfiniteDuration();
    v1::CapacityReport report;
  };
  StatusOr<v1::CapacityReport> Make(const std::string& ns, int hours);

  Clock* const clock_;
  SummaryBoard* const summaries_;
  ColumnCache* const columns_;
  Mutex mutex_;
  // By namespace and hours: the last few that were asked for.
  std::map<std::pair<std::string, int>, Kept> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::client
