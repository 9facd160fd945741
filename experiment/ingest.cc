#include "experiment/ingest.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/printable.h"
#include "experiment/objective.h"

namespace shirabe::experiment {
namespace {

using RowKey = std::tuple<int32_t, int64_t, std::string>;  // attempt, step, metric

bool StepsGoBack(const v1::Observation& observation, const std::vector<metrics::Point>& points) {
  std::map<std::string, int64_t> latest;
  for (const v1::Metric& metric : observation.metrics()) {
    latest[metric.name()] = metric.latest_step();
  }
  for (const metrics::Point& point : points) {
    const auto [known, fresh] = latest.try_emplace(point.metric, point.step);
    if (!fresh && point.step <= known->second) return true;
    known->second = point.step;
  }
  return false;
}

// A value that replaces another one can take a minimum away: then the rows are folded afresh.
Status Refold(State& state, Live& live, const std::vector<metrics::Point>& points,
              db::Store& store) {
  v1::Trial& trial = live.trial.record;
  ASSIGN_OR_RETURN(auto stored, store.ListObservations({.trial = {state.key(), trial.number()}}));
  std::map<RowKey, double> rows;
  for (const db::ObservationRow& row : stored)
    rows[{row.attempt, row.step, row.metric}] = row.value;
  for (const db::ObservationRow& row : state.batch().observations) {
    if (row.trial == trial.number()) rows[{row.attempt, row.step, row.metric}] = row.value;
  }
  for (const metrics::Point& point : points) {
    rows[{live.open->record.number(), point.step, point.metric}] = point.value;
  }
  trial.clear_observation();
  for (const auto& [key, value] : rows) {
    AddValue(*trial.mutable_observation(), std::get<2>(key), std::get<1>(key), value);
  }
  return absl::OkStatus();
}

void AddRows(State& state, const v1::Attempt& attempt, std::vector<metrics::Point> points) {
  for (metrics::Point& point : points) {
    state.batch().observations.push_back({.trial = attempt.trial(),
                                          .attempt = attempt.number(),
                                          .metric = std::move(point.metric),
                                          .step = point.step,
                                          .value = point.value,
                                          .time = point.time,
                                          .implicit_step = point.implicit_step});
  }
}

void NoteBadLines(State& state, v1::Attempt& attempt, const metrics::Collected& collected,
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

}  // namespace

StatusOr<Ingested> Ingest(State& state, Live& live, const metrics::Source& source,
                          db::Store& store) {
  v1::Attempt& attempt = live.open->record;
  v1::Trial& trial = live.trial.record;
  ASSIGN_OR_RETURN(metrics::Collected collected,
                   state.collector->Collect(source, attempt.cursor()));
  Ingested result{.news = !collected.points.empty(), .more = collected.more};
  // Kept in memory even where nothing was found, or a chatty program's output would be read again
  // and again; it is written with the next news, and until then an old cursor does no harm.
  *attempt.mutable_cursor() = std::move(collected.cursor);
  if (!result.news && !result.more && collected.bad_lines == 0) return result;
  if (StepsGoBack(trial.observation(), collected.points)) {
    RETURN_IF_ERROR(Refold(state, live, collected.points, store));
  } else {
    for (const metrics::Point& point : collected.points) {
      AddValue(*trial.mutable_observation(), point.metric, point.step, point.value);
    }
  }
  for (const metrics::Point& point : collected.points) {
    trial.set_last_step(std::max(trial.last_step(), point.step));
  }
  UpdateObjective(state, trial);
  NoteBadLines(state, attempt, collected, source.now);
  attempt.set_rows(attempt.rows() + static_cast<int64_t>(collected.points.size()));
  AddRows(state, attempt, std::move(collected.points));
  live.open_changed = live.trial_changed = true;
  return result;
}

}  // namespace shirabe::experiment
