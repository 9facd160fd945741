#include "experiment/observation_ingest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "db/commit_rules.h"
#include "experiment/spec/objective_value.h"
#include "metrics/attempt_reader.h"
#include "trial/log_file.h"

namespace shirabe::experiment {
namespace {

using RowKey = std::tuple<int32_t, int64_t, std::string>;  // attempt, step, metric

bool StepsGoBack(const v1::Observation& observation,
                 const std::vector<metrics::Observation>& points) {
  std::map<std::string, int64_t> latest;
  for (const v1::Metric& metric : observation.metrics()) {
    latest[metric.name()] = metric.latest_step();
  }
  for (const metrics::Observation& point : points) {
    const auto [known, fresh] = latest.try_emplace(point.metric, point.step);
    if (!fresh && point.step <= known->second) return true;
    known->second = point.step;
  }
  return false;
}

using Rows = std::map<RowKey, double>;

// The trial's rows that count, those of the batch included.
StatusOr<Rows> CountedRows(State& state, int64_t trial, db::Store& store) {
  ASSIGN_OR_RETURN(auto stored, store.ListObservations({.trial = {state.key(), trial}}));
  Rows rows;
  const auto superseded = [&](const db::StoredObservation& row) {
    return std::any_of(state.batch().supersede.begin(), state.batch().supersede.end(),
                       [&](const auto& s) { return s.trial == trial && db::Supersedes(s, row); });
  };
  for (const db::StoredObservation& row : stored) {
    if (!superseded(row)) rows[{row.attempt, row.step, row.metric}] = row.value;
  }
  for (const db::StoredObservation& row : state.batch().observations) {
    if (row.trial == trial && !superseded(row)) {
      rows[{row.attempt, row.step, row.metric}] = row.value;
    }
  }
  return rows;
}

void Fold(const Rows& rows, v1::Trial& trial) {
  trial.clear_observation();
  for (const auto& [key, value] : rows) {
    AddValue(*trial.mutable_observation(), std::get<2>(key), std::get<1>(key), value);
  }
}

// As the early-stopping rules see the rows: a later attempt's row of a step is the one that counts.
suggestion::Curve CurveFrom(const v1::ObjectiveSpec& objective, const Rows& rows) {
  std::map<int64_t, double> losses;
  for (const auto& [key, value] : rows) {
    if (std::get<2>(key) != objective.objective_metric_name()) continue;
    losses[std::get<1>(key)] = LossOf(objective, value);
  }
  return suggestion::CurveOf(losses);
}

void GrowCurve(State& state, ActiveTrial& live, const std::vector<metrics::Observation>& points) {
  if (state.stopper == nullptr) return;
  const v1::ObjectiveSpec& objective = state.experiment().spec().objective();
  for (const metrics::Observation& point : points) {
    if (point.metric != objective.objective_metric_name()) continue;
    state.MutableCurve(live.trial.record.number())
        .Append(point.step, LossOf(objective, point.value));
    live.judge = true;
  }
}

void RedrawCurve(State& state, ActiveTrial& live, const Rows& rows) {
  if (state.stopper == nullptr) return;
  state.MutableCurve(live.trial.record.number()) =
      CurveFrom(state.experiment().spec().objective(), rows);
  live.judge = true;
}

// A value that replaces another one can take a minimum away: then the rows are folded afresh.
Status Refold(State& state, ActiveTrial& live, const std::vector<metrics::Observation>& points,
              db::Store& store) {
  v1::Trial& trial = live.trial.record;
  ASSIGN_OR_RETURN(Rows rows, CountedRows(state, trial.number(), store));
  for (const metrics::Observation& point : points) {
    rows[{live.open->record.number(), point.step, point.metric}] = point.value;
  }
  Fold(rows, trial);
  RedrawCurve(state, live, rows);
  return absl::OkStatus();
}

void AddRows(State& state, const v1::Attempt& attempt, std::vector<metrics::Observation> points) {
  for (metrics::Observation& point : points) {
    state.batch().observations.push_back({.trial = attempt.trial(),
                                          .attempt = attempt.number(),
                                          .metric = std::move(point.metric),
                                          .step = point.step,
                                          .value = point.value,
                                          .time = point.time,
                                          .implicit_step = point.implicit_step});
  }
}

void RecordBadLines(State& state, v1::Attempt& attempt, const metrics::Collected& collected,
                    absl::Time now) {
  if (collected.bad_lines == 0) return;
  if (attempt.bad_lines() == 0) {
    v1::Event event;
    event.set_trial(attempt.trial());
    event.set_attempt(attempt.number());
    event.set_warning(true);
    event.set_reason("BadMetricLine");
    event.set_message(Printable(collected.bad_sample));
    state.AddEvent(std::move(event), now);
  }
  attempt.set_bad_lines(attempt.bad_lines() + collected.bad_lines);
  v1::ShirabeStatus& status = *state.mutable_status().mutable_shirabe();
  status.set_bad_metric_lines(status.bad_metric_lines() + collected.bad_lines);
}

void UpdateObjective(const State& state, v1::Trial& trial) {
  const auto objective = ObjectiveOf(state.experiment().spec().objective(), trial.observation());
  trial.clear_objective();
  if (!objective) return;
  trial.set_objective(objective->value);
  trial.set_objective_step(objective->step);
}

// The points into the batch, the trial's observation and what the attempt has reached.
Status ApplyObservations(State& state, ActiveTrial& live, std::vector<metrics::Observation> points,
                         db::Store& store) {
  v1::Attempt& attempt = live.open->record;
  v1::Trial& trial = live.trial.record;
  if (StepsGoBack(trial.observation(), points)) {
    RETURN_IF_ERROR(Refold(state, live, points, store));
  } else {
    for (const metrics::Observation& point : points) {
      AddValue(*trial.mutable_observation(), point.metric, point.step, point.value);
    }
    GrowCurve(state, live, points);
  }
  for (const metrics::Observation& point : points) {
    trial.set_last_step(std::max(trial.last_step(), point.step));
    attempt.set_last_step(std::max(attempt.last_step(), point.step));
  }
  UpdateObjective(state, trial);
  attempt.set_rows(attempt.rows() + static_cast<int64_t>(points.size()));
  AddRows(state, attempt, std::move(points));
  live.open_changed = live.trial_changed = true;
  return absl::OkStatus();
}

// The counted points that the attempt has reported, so that one that comes again is known.
Status LoadPushed(State& state, ActiveTrial& live, db::Store& store) {
  if (live.pushed) return absl::OkStatus();
  const v1::Attempt& attempt = live.open->record;
  ASSIGN_OR_RETURN(const auto rows,
                   store.ListObservations({.trial = {state.key(), attempt.trial()}}));
  live.pushed.emplace();
  for (const db::StoredObservation& row : rows) {
    if (row.attempt == attempt.number() && row.implicit_step) {
      live.pushed->insert({row.metric, absl::ToUnixMicros(row.time)});
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status IngestPoints(State& state, ActiveTrial& live, std::vector<metrics::Observation> points,
                    db::Store& store) {
  std::vector<metrics::Observation> fresh;
  auto& counts = *live.open->record.mutable_cursor()->mutable_counts();
  for (metrics::Observation& point : points) {
    if (point.implicit_step) {
      RETURN_IF_ERROR(LoadPushed(state, live, store));
      if (!live.pushed->insert({point.metric, absl::ToUnixMicros(point.time)}).second) continue;
      point.step = ++counts[point.metric];
    }
    fresh.push_back(std::move(point));
  }
  return fresh.empty() ? absl::OkStatus() : ApplyObservations(state, live, std::move(fresh), store);
}

StatusOr<IngestResult> Ingest(State& state, ActiveTrial& live, const metrics::Source& source,
                              db::Store& store) {
  v1::Attempt& attempt = live.open->record;
  auto read = state.collector->Collect(source, attempt.cursor());
  if (!read.ok()) return IngestResult{.unreadable = read.status()};
  metrics::Collected collected = *std::move(read);
  IngestResult result{.has_new = !collected.observations.empty(), .more = collected.more};
  // Kept in memory even where nothing was found, or a chatty program's output would be read again
  // and again; it is written with the next news, and until then an old cursor does no harm.
  *attempt.mutable_cursor() = std::move(collected.cursor);
  if (!result.has_new && !result.more && collected.bad_lines == 0) return result;
  RecordBadLines(state, attempt, collected, source.now);
  RETURN_IF_ERROR(ApplyObservations(state, live, std::move(collected.observations), store));
  return result;
}

Status Supersede(State& state, ActiveTrial& live, const v1::Checkpoint* resumed, db::Store& store) {
  v1::Trial& trial = live.trial.record;
  v1::Attempt& attempt = live.open->record;
  db::Batch::Supersede supersede{
      .trial = trial.number(), .attempt = attempt.number() - 1, .past_step = -1};
  if (resumed != nullptr) {
    supersede.past_step = resumed->step();
    supersede.counts = {resumed->counts().begin(), resumed->counts().end()};
    *attempt.mutable_cursor()->mutable_counts() = resumed->counts();
  }
  state.batch().supersede.push_back(std::move(supersede));
  ASSIGN_OR_RETURN(const Rows rows, CountedRows(state, trial.number(), store));
  Fold(rows, trial);
  RedrawCurve(state, live, rows);
  trial.set_last_step(0);
  for (const auto& [key, value] : rows) {
    trial.set_last_step(std::max(trial.last_step(), std::get<1>(key)));
  }
  UpdateObjective(state, trial);
  live.trial_changed = live.open_changed = true;
  return absl::OkStatus();
}

StatusOr<std::optional<double>> ObjectiveAt(State& state, const ActiveTrial& live, int64_t step,
                                            db::Store& store) {
  const std::string& metric = state.experiment().spec().objective().objective_metric_name();
  const v1::Metric* seen = FindMetric(live.trial.record.observation(), metric);
  if (seen == nullptr) return std::nullopt;
  double value = seen->latest();
  if (seen->latest_step() > step) {
    ASSIGN_OR_RETURN(const Rows rows, CountedRows(state, live.trial.record.number(), store));
    int64_t newest = -1;
    for (const auto& [key, at] : rows) {
      if (std::get<2>(key) != metric || std::get<1>(key) > step) continue;
      if (std::get<1>(key) < newest) continue;
      newest = std::get<1>(key);
      value = at;
    }
    if (newest < 0) return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

namespace {

// How much of a log its collector has read; all of it where none does.
int64_t ReadOf(const v1::Attempt& attempt, const metrics::Source& source) {
  for (const v1::FileCursor& file : attempt.cursor().files()) {
    if (file.path() == source.log) return static_cast<int64_t>(file.offset());
  }
  const bool reads = source.spec.collector().kind() == v1::STD_OUT;
  return reads ? 0 : std::numeric_limits<int64_t>::max();
}

}  // namespace

void LogTrims::Add(ActiveTrial& live, const metrics::Source& source) {
  const trial::LogLimits limits;
  if (source.log.empty()) return;
  if (trial::DiskBytes(source.log) <= limits.head + limits.tail + 2 * limits.step) return;
  const int64_t read = ReadOf(live.open->record, source);
  // An old cursor is no harm as long as what it has still to read is there.
  live.open_changed = true;
  logs_.push_back({source.log, metrics::RootOf(source, source.log), read});
}

void LogTrims::Run() const {
  for (const LongLog& log : logs_) {
    const Status trimmed = trial::TrimLog(log.path, log.read, {}, log.root);
    if (trimmed.ok() || absl::IsUnimplemented(trimmed)) continue;
    Log(LogLevel::kWarning, "failed to shorten a long log", {{"error", Message(trimmed)}});
  }
}

}  // namespace shirabe::experiment
