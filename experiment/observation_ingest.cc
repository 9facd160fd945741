#include "experiment/observation_ingest.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "db/commit_rules.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"
#include "metrics/attempt_reader.h"
#include "metrics/trainer_status.h"
#include "proto/shirabe/v1/collector_traits.h"
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

// The trial's rows that count, those that are not committed yet included.
StatusOr<Rows> CountedRows(const TrialEdit& edit) {
  const int64_t trial = edit.trial.trial().number();
  const ExperimentState& state = edit.in.state;
  ASSIGN_OR_RETURN(auto stored,
                   edit.in.options.store->ListObservations({.trial = {state.key(), trial}}));
  const auto& own = edit.trial.supersede();
  const auto counts = [&](const db::StoredObservation& row) {
    if (own && db::Supersedes(*own, row)) return false;
    return std::none_of(state.batch().supersede.begin(), state.batch().supersede.end(),
                        [&](const auto& s) { return s.trial == trial && db::Supersedes(s, row); });
  };
  Rows rows;
  const auto add = [&](const std::vector<db::StoredObservation>& from) {
    for (const db::StoredObservation& row : from) {
      if (row.trial == trial && counts(row)) {
        rows[{row.attempt, row.step, row.metric}] = row.value;
      }
    }
  };
  add(stored);
  add(state.batch().observations);
  add(edit.trial.observations());
  return rows;
}

void Fold(const Rows& rows, v1::Trial& trial) {
  trial.clear_observation();
  for (const auto& [key, value] : rows) {
    AddValue(*trial.mutable_observation(), std::get<2>(key), std::get<1>(key), value);
  }
}

// As the early-stopping rules see the rows: a later attempt's row of a step is the one that counts.
suggestion::Curve CurveFrom(const ObjectiveMetric& objective, const Rows& rows) {
  std::map<int64_t, double> losses;
  for (const auto& [key, value] : rows) {
    if (std::get<2>(key) != objective.metric) continue;
    losses[std::get<1>(key)] = LossOfType(objective.type, value);
  }
  return suggestion::CurveOf(losses);
}

void GrowCurves(const TrialEdit& edit, const std::vector<metrics::Observation>& points) {
  if (edit.in.state.setup().stopper == nullptr) return;
  const auto objectives = ObjectiveMetrics(edit.in.state.experiment().spec());
  for (const metrics::Observation& point : points) {
    for (size_t k = 0; k < objectives.size(); ++k) {
      if (point.metric != objectives[k].metric) continue;
      edit.trial.GrowCurve({.objective = k,
                            .step = point.step,
                            .loss = LossOfType(objectives[k].type, point.value)});
      edit.trial.mutable_memory().judge = true;
    }
  }
}

void RedrawCurves(const TrialEdit& edit, const Rows& rows) {
  if (edit.in.state.setup().stopper == nullptr) return;
  std::vector<suggestion::Curve> curves;
  for (const ObjectiveMetric& objective : ObjectiveMetrics(edit.in.state.experiment().spec())) {
    curves.push_back(CurveFrom(objective, rows));
  }
  edit.trial.RedrawCurves(std::move(curves));
  edit.trial.mutable_memory().judge = true;
}

// A value that replaces another one can take a minimum away: then the rows are folded afresh.
Status Refold(const TrialEdit& edit, const std::vector<metrics::Observation>& points) {
  ASSIGN_OR_RETURN(Rows rows, CountedRows(edit));
  for (const metrics::Observation& point : points) {
    rows[{edit.trial.attempt().number(), point.step, point.metric}] = point.value;
  }
  Fold(rows, edit.trial.mutable_trial());
  RedrawCurves(edit, rows);
  return absl::OkStatus();
}

void AddRows(const TrialEdit& edit, std::vector<metrics::Observation> points) {
  const v1::Attempt& attempt = edit.trial.attempt();
  for (metrics::Observation& point : points) {
    edit.trial.AddObservation({.trial = attempt.trial(),
                               .attempt = attempt.number(),
                               .metric = std::move(point.metric),
                               .step = point.step,
                               .value = point.value,
                               .time = point.time,
                               .implicit_step = point.implicit_step});
  }
}

void RecordBadLines(const TrialEdit& edit, const metrics::Collected& collected) {
  if (collected.bad_lines == 0) return;
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  if (attempt.bad_lines() == 0) {
    edit.delta.AddEvent(edit.trial.trial(), true, "BadMetricLine", Printable(collected.bad_sample));
  }
  attempt.set_bad_lines(attempt.bad_lines() + collected.bad_lines);
  v1::ShirabeStatus& status = edit.delta.mutable_shirabe();
  status.set_bad_metric_lines(status.bad_metric_lines() + collected.bad_lines);
}

void UpdateObjective(const v1::ObjectiveSpec& spec, v1::Trial& trial) {
  const auto objective = ObjectiveOf(spec, trial.observation());
  trial.clear_objective();
  if (!objective) return;
  trial.set_objective(objective->value);
  trial.set_objective_step(objective->step);
}

// The points into the rows, the trial's observation and what the attempt has reached.
Status ApplyObservations(const TrialEdit& edit, std::vector<metrics::Observation> points) {
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  v1::Trial& trial = edit.trial.mutable_trial();
  if (StepsGoBack(trial.observation(), points)) {
    RETURN_IF_ERROR(Refold(edit, points));
  } else {
    for (const metrics::Observation& point : points) {
      AddValue(*trial.mutable_observation(), point.metric, point.step, point.value);
    }
    GrowCurves(edit, points);
  }
  for (const metrics::Observation& point : points) {
    trial.set_last_step(std::max(trial.last_step(), point.step));
    attempt.set_last_step(std::max(attempt.last_step(), point.step));
  }
  UpdateObjective(edit.in.state.experiment().spec().objective(), trial);
  attempt.set_rows(attempt.rows() + static_cast<int64_t>(points.size()));
  AddRows(edit, std::move(points));
  return absl::OkStatus();
}

// The counted points that the attempt has reported, so that one that comes again is known; loaded
// into the delta if they are not known yet.
StatusOr<const ReportedPoints*> KnownPoints(const TrialEdit& edit) {
  const auto& known = edit.trial.base().reported_points;
  if (known) return &*known;
  const v1::Attempt& attempt = edit.trial.attempt();
  ASSIGN_OR_RETURN(const auto rows, edit.in.options.store->ListObservations(
                                        {.trial = {edit.in.state.key(), attempt.trial()}}));
  ReportedPoints points;
  for (const db::StoredObservation& row : rows) {
    if (row.attempt == attempt.number() && row.implicit_step) {
      points.insert({row.metric, absl::ToUnixMicros(row.time)});
    }
  }
  return &edit.trial.LoadReportedPoints(std::move(points));
}

// How much of a log its collector has read; all of it where none does.
int64_t ReadOf(const TrialEdit& edit, const std::string& log) {
  for (const v1::FileCursor& file : edit.trial.attempt().cursor().files()) {
    if (file.path() == log) return static_cast<int64_t>(file.offset());
  }
  const v1::ExperimentSpec& spec = edit.in.state.experiment().spec();
  const bool reads = v1::TraitsOf(spec.metrics_collector_spec()).log();
  return reads ? 0 : std::numeric_limits<int64_t>::max();
}

}  // namespace

Status IngestPoints(const TrialEdit& edit, std::vector<metrics::Observation> points) {
  const bool counted = std::any_of(points.begin(), points.end(),
                                   [](const auto& point) { return point.implicit_step; });
  const ReportedPoints* known = nullptr;
  if (counted) {
    ASSIGN_OR_RETURN(known, KnownPoints(edit));
  }
  std::vector<metrics::Observation> fresh;
  ReportedPoints added;
  v1::CollectorCursor cursor = edit.trial.attempt().cursor();
  for (metrics::Observation& point : points) {
    if (point.implicit_step) {
      const ReportedPoints::value_type key{point.metric, absl::ToUnixMicros(point.time)};
      if (known->contains(key) || !added.insert(key).second) continue;
      point.step = ++(*cursor.mutable_counts())[point.metric];
    }
    fresh.push_back(std::move(point));
  }
  edit.trial.AddReportedPoints(std::move(added));
  if (fresh.empty()) return absl::OkStatus();
  edit.trial.KeepCursor(std::move(cursor));
  return ApplyObservations(edit, std::move(fresh));
}

StatusOr<IngestResult> Ingest(const TrialEdit& edit, const metrics::Source& source) {
  auto read = edit.in.state.setup().collector->Collect(source, edit.trial.attempt().cursor());
  if (!read.ok()) return IngestResult{.unreadable = read.status()};
  metrics::Collected collected = *std::move(read);
  IngestResult result{.has_new = !collected.observations.empty(), .more = collected.more};
  // Kept in memory even where nothing was found, or a chatty program's output would be read again
  // and again; it is written with the next news, and until then an old cursor does no harm.
  edit.trial.KeepCursor(std::move(collected.cursor));
  if (!result.has_new && !result.more && collected.bad_lines == 0) return result;
  RecordBadLines(edit, collected);
  RETURN_IF_ERROR(ApplyObservations(edit, std::move(collected.observations)));
  return result;
}

Status Supersede(const TrialEdit& edit, const v1::Checkpoint* resumed) {
  v1::Trial& trial = edit.trial.mutable_trial();
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  db::Batch::Supersede supersede{
      .trial = trial.number(), .attempt = attempt.number() - 1, .past_step = -1};
  if (resumed != nullptr) {
    supersede.past_step = resumed->step();
    supersede.counts = {resumed->counts().begin(), resumed->counts().end()};
    *attempt.mutable_cursor()->mutable_counts() = resumed->counts();
  }
  edit.trial.Supersede(std::move(supersede));
  ASSIGN_OR_RETURN(const Rows rows, CountedRows(edit));
  Fold(rows, trial);
  RedrawCurves(edit, rows);
  trial.set_last_step(0);
  for (const auto& [key, value] : rows) {
    trial.set_last_step(std::max(trial.last_step(), std::get<1>(key)));
  }
  UpdateObjective(edit.in.state.experiment().spec().objective(), trial);
  return absl::OkStatus();
}

StatusOr<std::optional<double>> ObjectiveAt(const TrialEdit& edit, int64_t step) {
  const std::string& metric = edit.in.state.experiment().spec().objective().objective_metric_name();
  const v1::Metric* seen = FindMetric(edit.trial.trial().observation(), metric);
  if (seen == nullptr) return std::nullopt;
  double value = seen->latest();
  if (seen->latest_step() > step) {
    ASSIGN_OR_RETURN(const Rows rows, CountedRows(edit));
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

bool IsLongLog(const std::string& log) {
  const trial::LogLimits limits;
  return !log.empty() && trial::DiskBytes(log) > limits.head + limits.tail + 2 * limits.step;
}

}  // namespace

std::optional<LongLog> FindLongLog(const TrialEdit& edit, const metrics::Source& source) {
  const std::string& log = source.files.log;
  if (!IsLongLog(log)) return std::nullopt;
  return LongLog{log, metrics::RootOf(source, log), ReadOf(edit, log)};
}

std::optional<LongLog> LongLogOf(const trial::AttemptPaths& paths) {
  if (!IsLongLog(paths.log)) return std::nullopt;
  metrics::Source source;
  source.files.log = paths.log;
  std::error_code error;
  const auto size = std::filesystem::file_size(paths.log, error);
  if (error) return std::nullopt;
  return LongLog{paths.log, metrics::RootOf(source, paths.log), static_cast<int64_t>(size)};
}

void TrimLogs(const std::vector<LongLog>& logs) {
  for (const LongLog& log : logs) {
    const Status trimmed = trial::TrimLog(log.path, log.read, {}, log.root);
    if (trimmed.ok() || absl::IsUnimplemented(trimmed)) continue;
    Log(LogLevel::kWarning, "failed to shorten a long log", {{"error", Message(trimmed)}});
  }
}

trial::StatusHandlers TrainerStatusHandlers() {
  const auto make = [](const std::string& metrics_file) {
    using metrics::TrainerStatusWriter;
    auto writer = std::make_shared<TrainerStatusWriter>(metrics_file, 0600);  // shared by copies
    return [writer](const std::string& body) { return writer->Write(body).status(); };
  };
  return {.max_body = metrics::kMaxTrainerStatusBytes, .make = make};
}

}  // namespace shirabe::experiment
