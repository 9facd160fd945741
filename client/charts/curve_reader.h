// Learning curves of the trials that a picture is to show, reduced to its pixels. Which trials are
// the best is read from the columns; the observations of a trial are kept, within a bound, until
// the trial changes, so that an ended trial's are read once for all who watch. Made by the client
// over a store; thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "client/charts/column_cache.h"
#include "db/store.h"
#include "proto/shirabe/v1/charts.pb.h"

namespace shirabe::client {

// A curve with any number of points as one with at most two for each pixel of a picture: the least
// and the greatest value that fall into it, so that no spike is lost.
struct CurvePoints {
  std::vector<double> x;
  std::vector<double> y;
};

// The part of the axis that a picture shows, and how many pixels it has.
struct CurveWindow {
  double from = 0;
  double to = 0;
  int pixels = 1;
  bool logarithmic = false;  // the pixels are even on a logarithmic axis: x above 0 only
};

// Whether a point is in it; with a logarithmic axis none that is not above 0.
bool IsWithin(const CurveWindow& window, double x);

// Of points in the order of x. Within a pixel the two keep their order. Values that are not finite
// are never the least or the greatest; a pixel that has only such ones shows the first of them.
CurvePoints Reduce(const CurvePoints& points, const CurveWindow& window);

// All finite and other values of one metric of one trial, by step.
struct CurveSeries {
  std::vector<double> steps;
  std::vector<double> times;  // seconds since 1970
  std::vector<double> values;
};

class CurveReader {
 public:
  static constexpr int kMaxTrials = 1000;              // of one request
  static constexpr int kMaxPixels = 10'000;            // of one curve
  static constexpr int64_t kMaxPoints = 500'000;       // of one reply
  static constexpr int64_t kMaxRows = 1'000'000;       // of one trial; more are not read
  static constexpr int64_t kMaxRowsOfAll = 4'000'000;  // of one request

  // Both outlive it. Keeps at most so many bytes.
  CurveReader(db::Store* store, ColumnCache* columns, int64_t max_bytes = 64 << 20)
      : store_(store), columns_(columns), max_bytes_(max_bytes) {}

  // kInvalidArgument, naming the field, for what is out of range; kNotFound. Callers take turns, so
  // that no more than one request's observations are in memory beside those that are kept.
  StatusOr<v1::Curves> Read(const v1::CurvesRequest& request);

 private:
  using SeriesPtr = std::shared_ptr<const CurveSeries>;  // shared: dropped while it is being drawn
  // Of a trial, as it is since a revision.
  struct SeriesKey {
    ExperimentKey experiment;
    int64_t created = 0;  // of the experiment
    int64_t trial = 0;
    std::string metric;
    auto operator<=>(const SeriesKey&) const = default;
  };
  struct Kept {
    SeriesKey key;
    int64_t revision = 0;
    SeriesPtr series;
  };
  struct Plan;  // what a request means

  StatusOr<Plan> MakePlan(const v1::CurvesRequest& request);
  Status ReadSeries(Plan& plan, v1::Curves& reply);
  StatusOr<SeriesPtr> SeriesOf(const SeriesKey& key, int64_t revision);
  SeriesPtr FindKept(const SeriesKey& key, int64_t revision);
  void Keep(Kept kept);

  db::Store* const store_;
  ColumnCache* const columns_;
  const int64_t max_bytes_;
  Mutex turn_;  // serialises Read
  Mutex mutex_;
  std::list<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // the last used first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace shirabe::client
