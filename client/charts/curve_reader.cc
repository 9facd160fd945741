#include "client/charts/curve_reader.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sorting.h"
#include "base/text/did_you_mean.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"

namespace shirabe::client {
namespace {

constexpr int kDefaultPixels = 1000;
constexpr int kDefaultTop = 10;

int64_t BytesOf(const CurveSeries& series) {
  return static_cast<int64_t>(series.steps.size() * 3 * sizeof(double) + 256);
}

Status CheckRequest(const v1::CurvesRequest& request) {
  const auto bad = [](const char* field, int64_t value, int64_t most) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " must be from 0 to ", most, ", not ", value));
  };
  constexpr int kMost = CurveReader::kMaxTrials;
  if (request.top() < 0 || request.top() > kMost) return bad("top", request.top(), kMost);
  if (request.trials_size() > kMost) return bad("trials (how many)", request.trials_size(), kMost);
  if (request.pixels() < 0 || request.pixels() > CurveReader::kMaxPixels) {
    return bad("pixels", request.pixels(), CurveReader::kMaxPixels);
  }
  const double from = request.has_from() ? request.from() : 0;
  const double to = request.has_to() ? request.to() : from;
  if (!std::isfinite(from) || !std::isfinite(to) || to < from) {
    return absl::InvalidArgumentError(
        absl::StrCat("from and to must be finite, and from (", from, ") not above to (", to, ")"));
  }
  if (request.logarithmic() && request.has_from() && from <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("from must be above 0 on a logarithmic axis, not ", from));
  }
  return absl::OkStatus();
}

Status CheckMetric(const std::string& metric, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), metric) != names.end()) return absl::OkStatus();
  const auto nearest = Nearest(metric, names);
  return absl::InvalidArgumentError(
      absl::StrCat("must be one of ", absl::StrJoin(names, ", "), ": there is no metric \"", metric,
                   "\"", nearest ? "; did you mean \"" + *nearest + "\"?" : ""));
}

v1::TrialPhase PhaseAt(const ColumnTable& table, size_t row) {
  return static_cast<v1::TrialPhase>(table.Values("state")[row]);
}

// The rows to draw, by number.
std::vector<size_t> ChooseRows(const v1::CurvesRequest& request, const ColumnSnapshot& snapshot) {
  const ColumnTable& table = snapshot.table;
  const std::vector<double>& objective = table.Values("objective");
  const std::vector<double>& feasible = table.Values("feasible");
  const bool maximize = snapshot.experiment.spec().objective().type() == v1::MAXIMIZE;
  const std::set<int64_t> wanted(request.trials().begin(), request.trials().end());
  const bool unsaid = wanted.empty() && request.top() == 0 && !request.running();
  const size_t top = unsaid ? kDefaultTop : request.top();
  std::set<size_t> rows;
  std::vector<size_t> ended;
  for (size_t row = 0; row < table.rows(); ++row) {
    const bool runs = PhaseAt(table, row) == v1::TRIAL_RUNNING;
    if (wanted.contains(table.key(row).trial)) rows.insert(row);
    if (runs && (unsaid || request.running()) && rows.size() < CurveReader::kMaxTrials) {
      rows.insert(row);
    }
    if (!runs && std::isfinite(objective[row]) && feasible[row] == 1) ended.push_back(row);
  }
  const size_t best = std::min(top, ended.size());
  std::partial_sort(ended.begin(), ended.begin() + static_cast<int64_t>(best), ended.end(),
                    [&](size_t a, size_t b) {
                      if (objective[a] == objective[b]) return a < b;
                      return (objective[a] < objective[b]) != maximize;
                    });
  rows.insert(ended.begin(), ended.begin() + static_cast<int64_t>(best));
  return {rows.begin(), rows.end()};
}

// What a curve's x begins with: 0 for steps, the start of the trial for times.
double OriginOf(const CurveSeries& series, v1::CurveAxis axis, double start) {
  if (axis == v1::CURVE_STEP || series.times.empty()) return 0;
  if (!std::isnan(start)) return start;
  return *std::min_element(series.times.begin(), series.times.end());
}

const std::vector<double>& AlongAxis(const CurveSeries& series, v1::CurveAxis axis) {
  return axis == v1::CURVE_TIME ? series.times : series.steps;
}

// Observations as a curve in the order of x.
CurvePoints OnAxis(const CurveSeries& series, v1::CurveAxis axis, double start) {
  const double origin = OriginOf(series, axis, start);
  CurvePoints points{.x = AlongAxis(series, axis), .y = series.values};
  for (double& x : points.x) x -= origin;
  if (std::is_sorted(points.x.begin(), points.x.end())) return points;
  const auto before = [&](size_t a, size_t b) { return points.x[a] < points.x[b]; };
  CurvePoints sorted;
  for (const size_t i : SortedPlaces(points.x.size(), before)) {
    sorted.x.push_back(points.x[i]);
    sorted.y.push_back(points.y[i]);
  }
  return sorted;
}

}  // namespace

struct CurveReader::Plan {
  struct Trial {
    int64_t number = 0;
    v1::TrialPhase phase = v1::TRIAL_PENDING;
    int64_t revision = 0;
    double start = 0;  // seconds since 1970; NaN = it has not started
    double rows = 0;   // of the metric
    SeriesPtr series = nullptr;
  };
  ExperimentKey key;
  std::string version;
  std::string metric;
  int64_t created = 0;
  std::vector<Trial> trials;

  CurveWindow WindowOf(const v1::CurvesRequest& request) const;
};

// The part of the axis that was asked for, or all that the curves cover.
CurveWindow CurveReader::Plan::WindowOf(const v1::CurvesRequest& request) const {
  CurveWindow window{.from = std::numeric_limits<double>::infinity(),
                     .to = -std::numeric_limits<double>::infinity(),
                     .pixels = request.pixels() == 0 ? kDefaultPixels : request.pixels(),
                     .logarithmic = request.logarithmic()};
  for (const Trial& trial : trials) {
    const double origin = OriginOf(*trial.series, request.axis(), trial.start);
    for (const double along : AlongAxis(*trial.series, request.axis())) {
      const double x = along - origin;
      if (!std::isfinite(x) || (window.logarithmic && x <= 0)) continue;
      window.from = std::min(window.from, x);
      window.to = std::max(window.to, x);
    }
  }
  if (request.has_from()) window.from = request.from();
  if (request.has_to()) window.to = request.to();
  const int64_t each = kMaxPoints / std::max<int64_t>(1, trials.size()) / 2;
  window.pixels = static_cast<int>(std::min<int64_t>(window.pixels, std::max<int64_t>(each, 1)));
  return window;
}

StatusOr<CurveReader::Plan> CurveReader::MakePlan(const v1::CurvesRequest& request) {
  Plan plan;
  plan.key = ExperimentKeyOf(request);
  const auto choose = [&](const ColumnSnapshot& snapshot) -> Status {
    const std::vector<std::string> metrics = MetricNames(snapshot.experiment);
    plan.version = snapshot.version;
    plan.metric = request.metric().empty() ? metrics[0] : request.metric();
    plan.created =
        absl::ToUnixMicros(FromProto(snapshot.experiment.metadata().creation_timestamp()));
    RETURN_IF_ERROR(CheckMetric(plan.metric, metrics));
    const ColumnTable& table = snapshot.table;
    for (const size_t row : ChooseRows(request, snapshot)) {
      plan.trials.push_back({.number = table.key(row).trial,
                             .phase = PhaseAt(table, row),
                             .revision = table.revision(row),
                             .start = table.Values("start")[row],
                             .rows = table.Values("metric." + plan.metric + ".count")[row]});
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(columns_->Read(plan.key, ColumnCache::Rows::kTrials, choose));
  return plan;
}

StatusOr<v1::Curves> CurveReader::Read(const v1::CurvesRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  const MutexLock turn(turn_);
  ASSIGN_OR_RETURN(Plan plan, MakePlan(request));
  v1::Curves reply;
  reply.set_version(plan.version);
  if (request.known() == plan.version) return reply;
  reply.set_metric(plan.metric);
  reply.set_trials(static_cast<int64_t>(plan.trials.size()));
  RETURN_IF_ERROR(ReadSeries(plan, reply));
  const CurveWindow window = plan.WindowOf(request);
  for (const Plan::Trial& trial : plan.trials) {
    const CurvePoints points = OnAxis(*trial.series, request.axis(), trial.start);
    const CurvePoints reduced = Reduce(points, window);
    v1::Curve& curve = *reply.add_curves();
    curve.set_trial(trial.number);
    curve.set_phase(trial.phase);
    curve.set_points(std::count_if(points.x.begin(), points.x.end(),
                                   [&](double x) { return IsWithin(window, x); }));
    curve.mutable_x()->Add(reduced.x.begin(), reduced.x.end());
    curve.mutable_y()->Add(reduced.y.begin(), reduced.y.end());
  }
  return reply;
}

// Leaves those trials in the plan that have a curve, and says which have too much of one.
Status CurveReader::ReadSeries(Plan& plan, v1::Curves& reply) {
  double left = kMaxRowsOfAll;
  for (Plan::Trial& trial : plan.trials) {
    if (trial.rows > kMaxRows || trial.rows > left) {
      reply.add_too_long(trial.number);
      continue;
    }
    left -= trial.rows;
    ASSIGN_OR_RETURN(trial.series,
                     SeriesOf({plan.key, plan.created, trial.number, plan.metric}, trial.revision));
  }
  std::erase_if(plan.trials, [](const Plan::Trial& trial) {
    return trial.series == nullptr || trial.series->values.empty();
  });
  return absl::OkStatus();
}

// ---- what is kept ------------------------------------------------------------------------------

StatusOr<CurveReader::SeriesPtr> CurveReader::SeriesOf(const SeriesKey& key, int64_t revision) {
  if (SeriesPtr kept = FindKept(key, revision)) return kept;
  ASSIGN_OR_RETURN(const auto rows, store_->ListObservations({.trial = {key.experiment, key.trial},
                                                              .metric = key.metric}));
  auto series = std::make_shared<CurveSeries>();  // shared: as SeriesPtr
  for (const db::StoredObservation& row : rows) {
    series->steps.push_back(static_cast<double>(row.step));
    series->times.push_back(absl::ToDoubleSeconds(row.time - absl::UnixEpoch()));
    series->values.push_back(row.value);
  }
  Keep({key, revision, series});
  return series;
}

CurveReader::SeriesPtr CurveReader::FindKept(const SeriesKey& key, int64_t revision) {
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found == kept_.end()) return nullptr;
  if (found->revision == revision) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->series;
  }
  bytes_ -= BytesOf(*found->series);
  kept_.erase(found);
  return nullptr;
}

void CurveReader::Keep(Kept kept) {
  const MutexLock lock(mutex_);
  bytes_ += BytesOf(*kept.series);
  kept_.push_front(std::move(kept));
  while (bytes_ > max_bytes_) {
    bytes_ -= BytesOf(*kept_.back().series);
    kept_.pop_back();
  }
}

namespace {

double PlaceOnAxis(const CurveWindow& window, double x) {
  return window.logarithmic ? std::log(x) : x;
}

// From 0 to pixels - 1.
int PixelOf(const CurveWindow& window, double x) {
  const double from = PlaceOnAxis(window, window.from);
  const double width = PlaceOnAxis(window, window.to) - from;
  if (!(width > 0)) return 0;
  const double place = (PlaceOnAxis(window, x) - from) / width * window.pixels;
  return std::clamp(static_cast<int>(place), 0, window.pixels - 1);
}

// What has fallen into the pixel so far, as places in the curve.
struct Pixel {
  std::optional<size_t> least;
  std::optional<size_t> greatest;
  std::optional<size_t> odd;  // the first that is not finite
};

void Append(const CurvePoints& points, size_t i, CurvePoints& to) {
  to.x.push_back(points.x[i]);
  to.y.push_back(points.y[i]);
}

void Flush(const CurvePoints& points, const Pixel& pixel, CurvePoints& to) {
  if (!pixel.least) {
    if (pixel.odd) Append(points, *pixel.odd, to);
    return;
  }
  const auto [first, second] = std::minmax(*pixel.least, *pixel.greatest);
  Append(points, first, to);
  if (second != first) Append(points, second, to);
}

void Add(const CurvePoints& points, size_t i, Pixel& pixel) {
  if (!std::isfinite(points.y[i])) {
    if (!pixel.odd) pixel.odd = i;
    return;
  }
  if (!pixel.least || points.y[i] < points.y[*pixel.least]) pixel.least = i;
  if (!pixel.greatest || points.y[i] > points.y[*pixel.greatest]) pixel.greatest = i;
}

}  // namespace

bool IsWithin(const CurveWindow& window, double x) {
  return x >= window.from && x <= window.to && (!window.logarithmic || x > 0);
}

CurvePoints Reduce(const CurvePoints& points, const CurveWindow& window) {
  CurvePoints reduced;
  Pixel pixel;
  int at = -1;
  for (size_t i = 0; i < points.x.size(); ++i) {
    if (!IsWithin(window, points.x[i])) continue;
    const int place = PixelOf(window, points.x[i]);
    if (place != at) {
      Flush(points, pixel, reduced);
      pixel = {};
      at = place;
    }
    Add(points, i, pixel);
  }
  Flush(points, pixel, reduced);
  return reduced;
}

}  // namespace shirabe::client
