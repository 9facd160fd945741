#include "client/charts/trial_columns.h"

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "client/records/attempt_spending.h"
#include "client/records/enum_words.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"
#include "google/protobuf/descriptor.h"

namespace shirabe::client {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr v1::ColumnKind kNumber = v1::COLUMN_NUMBER;
constexpr v1::ColumnKind kTime = v1::COLUMN_TIME;
constexpr v1::ColumnKind kCategory = v1::COLUMN_CATEGORY;
constexpr bool kDetail = true;

double SecondsOf(bool set, const google::protobuf::Timestamp& time) {
  return set ? static_cast<double>(time.seconds()) + time.nanos() * 1e-9 : kMissing;
}

// The values of one row, in the order of the columns.
class RowValues {
 public:
  explicit RowValues(ColumnTable& table) : table_(table) {}
  void Add(double value) { values_.push_back(value); }
  void AddCount(int64_t value) { values_.push_back(static_cast<double>(value)); }
  // "" = none.
  void AddWord(const std::string& word) { word.empty() ? Add(kMissing) : AddCategory(word); }
  // "" is one as any other.
  void AddCategory(const std::string& word) { Add(table_.IndexOf(values_.size(), word)); }
  void Put(const RowKey& key, int64_t revision) { table_.Put(key, revision, values_); }

 private:
  ColumnTable& table_;
  std::vector<double> values_;
};

std::vector<std::string> WordsOfEnum(const google::protobuf::EnumDescriptor& type,
                                     std::string (*word)(int)) {
  std::vector<std::string> words;
  for (int i = 0; i < type.value_count(); ++i) {
    if (std::string text = word(type.value(i)->number()); !text.empty()) {
      words.push_back(std::move(text));
    }
  }
  return words;
}

// ---- trials ------------------------------------------------------------------------------------

std::vector<ColumnInfo> CommonInfos() {
  return {{"trial"},
          {"state", kCategory, false,
           WordsOfEnum(*v1::TrialPhase_descriptor(),
                       [](int phase) { return PhaseWord(static_cast<v1::TrialPhase>(phase)); })},
          {"reason", kCategory, kDetail},
          {"objective"},
          {"step"},
          {"created", kTime, kDetail},
          {"start", kTime},
          {"end", kTime},
          {"seconds"},
          {"attemptSeconds", kNumber, kDetail},
          {"cost"},
          {"wastedSeconds", kNumber, kDetail},
          {"wastedCost", kNumber, kDetail},
          {"onDemandCost", kNumber, kDetail},
          {"attempts"},
          {"failures"},
          {"preemptions"},
          {"lastStep", kNumber, kDetail},
          {"infeasible", kNumber, kDetail},
          {"parent", kNumber, kDetail},
          {"feasible", kNumber, kDetail}};
}

// Whether it may be the best: 1 or 0; missing while there is no result.
double FeasibleOf(const v1::Experiment& experiment, const v1::Trial& trial) {
  const auto result = experiment::ResultOf(experiment.spec(), trial);
  if (!result) return kMissing;
  return result->feasible() ? 1 : 0;
}

void AddCommon(const v1::Experiment& experiment, const v1::Trial& trial, RowValues& row) {
  const auto objective = ShownObjective(experiment, trial);
  const double start = SecondsOf(trial.has_start_time(), trial.start_time());
  const double end = SecondsOf(trial.has_completion_time(), trial.completion_time());
  row.AddCount(trial.number());
  row.AddWord(PhaseWord(trial.phase()));
  row.AddWord(trial.reason());
  row.Add(objective ? objective->value : kMissing);
  row.Add(objective ? static_cast<double>(objective->step) : kMissing);
  row.Add(SecondsOf(trial.has_creation_time(), trial.creation_time()));
  row.Add(start);
  row.Add(end);
  row.Add(end - start);
  row.Add(trial.seconds());
  row.Add(trial.cost());
  row.Add(trial.wasted_seconds());
  row.Add(trial.wasted_cost());
  row.Add(trial.on_demand_cost());
  row.AddCount(trial.attempts());
  row.AddCount(trial.failures());
  row.AddCount(trial.preemptions());
  row.AddCount(trial.last_step());
  row.Add(trial.infeasible() ? 1 : 0);
  row.Add(trial.has_parent() ? static_cast<double>(trial.parent().trial()) : kMissing);
  row.Add(FeasibleOf(experiment, trial));
}

constexpr const char* kMetricParts[] = {".min", ".max", ".latest", ".count"};

void AddMetricParts(const v1::Trial& trial, const std::string& name, RowValues& row) {
  const v1::Metric* metric = experiment::FindMetric(trial.observation(), name);
  row.Add(metric != nullptr && metric->has_min() ? metric->min() : kMissing);
  row.Add(metric != nullptr && metric->has_max() ? metric->max() : kMissing);
  row.Add(metric != nullptr && metric->has_latest() ? metric->latest() : kMissing);
  row.Add(metric != nullptr ? static_cast<double>(metric->count()) : 0);
}

void AddParameter(const v1::Trial& trial, const v1::ParameterSpec& parameter, RowValues& row) {
  for (const v1::Assignment& assignment : trial.assignments()) {
    if (assignment.name() != parameter.name()) continue;
    if (parameter.parameter_type() == v1::CATEGORICAL) {
      return assignment.has_category() ? row.AddCategory(assignment.category()) : row.Add(kMissing);
    }
    if (assignment.has_integer()) return row.AddCount(assignment.integer());
    return row.Add(assignment.has_number() ? assignment.number() : kMissing);
  }
  row.Add(kMissing);
}

// Of columns that would have one name, as the maximum of a metric and a metric that is called
// "loss.max", the first has it; the other gets a number.
void MakeUnique(std::vector<ColumnInfo>& infos) {
  std::set<std::string> names;
  for (ColumnInfo& info : infos) {
    const std::string wanted = info.name;
    for (int i = 2; !names.insert(info.name).second; ++i) info.name = absl::StrCat(wanted, "#", i);
  }
}

}  // namespace

std::vector<ColumnInfo> TrialColumnInfos(const v1::Experiment& experiment) {
  std::vector<ColumnInfo> infos = CommonInfos();
  const std::vector<std::string> metrics = MetricNames(experiment);
  for (size_t i = 0; i < metrics.size(); ++i) {
    // Of the objective's metric, `objective` says it.
    infos.push_back({absl::StrCat("metric.", metrics[i]), kNumber, i == 0});
  }
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    const bool category = parameter.parameter_type() == v1::CATEGORICAL;
    ColumnInfo info{absl::StrCat("param.", parameter.name()), category ? kCategory : kNumber};
    if (category) {
      const auto& list = parameter.feasible_space().list();
      info.words.assign(list.begin(), list.end());
    }
    infos.push_back(std::move(info));
  }
  for (const std::string& metric : metrics) {
    for (const char* part : kMetricParts) {
      infos.push_back({absl::StrCat("metric.", metric, part), kNumber, kDetail});
    }
  }
  MakeUnique(infos);
  return infos;
}

void PutTrial(const v1::Experiment& experiment, const v1::Trial& trial, int64_t revision,
              ColumnTable& table) {
  RowValues row(table);
  AddCommon(experiment, trial, row);
  const std::vector<std::string> metrics = MetricNames(experiment);
  for (const std::string& metric : metrics) {
    const auto shown = ShownMetric(experiment, trial, metric);
    row.Add(shown ? shown->value : kMissing);
  }
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    AddParameter(trial, parameter, row);
  }
  for (const std::string& metric : metrics) AddMetricParts(trial, metric, row);
  row.Put({trial.number(), 0}, revision);
}

// ---- attempts ----------------------------------------------------------------------------------

std::vector<ColumnInfo> AttemptColumnInfos() {
  return {{"trial"},
          {"attempt"},
          {"state", kCategory, false,
           WordsOfEnum(
               *v1::AttemptState_descriptor(),
               [](int state) { return AttemptStateWord(static_cast<v1::AttemptState>(state)); })},
          {"cause", kCategory, false,
           WordsOfEnum(*v1::Cause_descriptor(),
                       [](int cause) { return CauseWord(static_cast<v1::Cause>(cause)); })},
          {"created", kTime},
          {"start", kTime},
          {"end", kTime},
          {"node", kCategory},
          {"pool", kCategory},
          {"capacity", kCategory, false, {"spot", "on-demand"}},
          {"pricePerHour"},
          {"seconds"},
          {"cost"},
          {"wastedSeconds"},
          {"resumedFromStep"},
          {"lastStep"},
          {"onDemandPricePerHour", kNumber, kDetail},
          {"stepsGained", kNumber, kDetail},
          {"stepsRedone", kNumber, kDetail},
          {"resumedFromTrial", kNumber, kDetail},
          {"resumedFromAttempt", kNumber, kDetail},
          {"exitCode", kNumber, kDetail},
          {"signal", kNumber, kDetail},
          {"stopRequested", kTime, kDetail},
          {"placements", kNumber, kDetail},
          {"devices", kCategory, kDetail}};
}

void PutAttempt(const v1::Attempt& attempt, int64_t revision, ColumnTable& table) {
  const v1::Placement placement = PlacementOf(attempt);
  const bool placed = attempt.placements_size() > 0;
  const bool closed = attempt.state() == v1::ATTEMPT_CLOSED;
  RowValues row(table);
  row.AddCount(attempt.trial());
  row.AddCount(attempt.number());
  row.AddWord(AttemptStateWord(attempt.state()));
  row.AddWord(CauseWord(attempt.cause()));
  row.Add(SecondsOf(attempt.has_creation_time(), attempt.creation_time()));
  row.Add(SecondsOf(attempt.has_start_time(), attempt.start_time()));
  row.Add(SecondsOf(attempt.has_end_time(), attempt.end_time()));
  row.AddWord(placement.node());
  row.AddWord(placement.pool());
  row.AddWord(placement.capacity());
  row.Add(placed ? placement.price_per_hour() : kMissing);
  // Of an open one they grow: by the time since its start, and its price.
  row.Add(closed ? attempt.seconds() : kMissing);
  row.Add(closed ? attempt.cost() : kMissing);
  row.Add(closed ? attempt.wasted_seconds() : kMissing);
  row.AddCount(attempt.resumed_from_step());
  row.AddCount(attempt.last_step());
  row.Add(placed ? placement.on_demand_price_per_hour() : kMissing);
  row.AddCount(attempt.steps_gained());
  row.AddCount(attempt.steps_redone());
  row.AddCount(attempt.resumed_from_trial());
  row.AddCount(attempt.resumed_from_attempt());
  row.Add(attempt.has_exit_code() ? attempt.exit_code() : kMissing);
  row.AddCount(attempt.signal());
  row.Add(SecondsOf(attempt.has_stop(), attempt.stop().requested()));
  row.AddCount(attempt.placements_size());
  row.AddWord(placement.devices());
  row.Put({attempt.trial(), attempt.number()}, revision);
}

}  // namespace shirabe::client
