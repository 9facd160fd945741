#include "suggestion/remote/katib_trials.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/rng.h"
#include "base/sorting.h"
#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

using WireStatus = katib::TrialStatus;

constexpr char kPrefix[] = "shirabe.io/";
constexpr char kParentLabel[] = "shirabe.io/parent";
constexpr char kParentStepLabel[] = "shirabe.io/parent-step";
constexpr size_t kLabelSize = 63;

// The last value of the objective: of the metric that the experiment names, else the trial, else of
// the first one that there is.
const katib::Metric* MetricOf(const katib::Trial& trial, const v1::ObjectiveSpec& objective) {
  const auto& metrics = trial.status().observation().metrics();
  const std::string& own = trial.spec().objective().objective_metric_name();
  const std::string& name =
      objective.objective_metric_name().empty() ? own : objective.objective_metric_name();
  if (name.empty()) return metrics.empty() ? nullptr : &metrics[0];
  const auto named = [&name](const katib::Metric& metric) { return metric.name() == name; };
  const auto found = std::find_if(metrics.rbegin(), metrics.rend(), named);
  return found == metrics.rend() ? nullptr : &*found;
}

// The value of the objective, if it is a finite number.
std::optional<double> ValueOf(const katib::Trial& trial, const v1::ObjectiveSpec& objective) {
  const katib::Metric* metric = MetricOf(trial, objective);
  if (metric == nullptr) return std::nullopt;
  const auto value = ParseNumber(metric->value());
  return value && std::isfinite(*value) ? value : std::nullopt;
}

TrialSummary ViewOf(const katib::Trial& trial, const v1::ObjectiveSpec& objective) {
  TrialSummary view;
  const auto condition = trial.status().condition();
  const bool unknown = condition == WireStatus::UNKNOWN && trial.status().completion_time().empty();
  if (condition == WireStatus::CREATED || condition == WireStatus::RUNNING || unknown) return view;
  view.state = TrialState::kInfeasible;
  view.early_stopped = condition == WireStatus::EARLYSTOPPED;
  if (condition != WireStatus::SUCCEEDED && !view.early_stopped) return view;
  const auto value = ValueOf(trial, objective);
  if (!value) return view;
  view.state = TrialState::kCompleted;
  view.loss = objective.type() == v1::MAXIMIZE ? -*value : *value;
  return view;
}

absl::Time TimeOf(const std::string& text, absl::Time otherwise) {
  absl::Time time;
  const bool good = absl::ParseTime(absl::RFC3339_full, text, &time, nullptr);
  return good ? time : otherwise;
}

// Katib's controller lists its trials in any order, another one each time, and its clock has whole
// seconds: names part those that started together. Those that have not started yet come last, as
// the request has them.
std::vector<size_t> InOrder(const KatibTrials& trials) {
  std::vector<absl::Time> starts;
  for (const katib::Trial& trial : trials) {
    starts.push_back(TimeOf(trial.status().start_time(), absl::InfiniteFuture()));
  }
  return SortedPlaces(starts.size(), [&](size_t a, size_t b) {
    if (starts[a] != starts[b]) return starts[a] < starts[b];
    return starts[a] != absl::InfiniteFuture() && trials[a].name() < trials[b].name();
  });
}

// Tells the trials of the history which of them ended first. `ends` are the times, by index.
void SetOrderOfEnds(const std::vector<absl::Time>& ends, History& history) {
  const auto before = [&ends](size_t a, size_t b) { return ends[a] < ends[b]; };
  int64_t ended = 0;
  for (const size_t index : SortedPlaces(ends.size(), before)) {
    TrialSummary view = history.trial(index);
    if (view.state == TrialState::kActive) continue;
    view.ended = ++ended;
    history.Update(index, view);
  }
}

std::string LabelOf(const katib::Trial& trial, const std::string& name) {
  const auto found = trial.spec().labels().find(name);
  return found == trial.spec().labels().end() ? "" : found->second;
}

// A name as a label's value; one that is too long stands there as its hash.
std::string NameLabel(const std::string& name) {
  std::string label = EscapeLabel(name);
  if (label.size() > kLabelSize) label = absl::StrFormat("hash-%016x", Fingerprint(name));
  return label;
}

// The labels of our algorithms, as they gave them.
std::vector<std::pair<std::string, std::string>> OurLabels(const katib::Trial& trial) {
  std::vector<std::pair<std::string, std::string>> labels;
  for (const auto& [name, value] : trial.spec().labels()) {
    if (!absl::StartsWith(name, kPrefix) || name == kParentLabel || name == kParentStepLabel)
      continue;
    labels.emplace_back(name.substr(sizeof kPrefix - 1), UnescapeLabel(value));
  }
  StableSort(labels);  // a map has no order of its own
  return labels;
}

void SetOutcome(const v1::ObjectiveSpec& objective, const TrialSummary& view, WireStatus& status) {
  switch (view.state) {
    case TrialState::kActive: return status.set_condition(WireStatus::RUNNING);
    case TrialState::kInfeasible: return status.set_condition(WireStatus::FAILED);
    case TrialState::kCompleted: break;
  }
  status.set_condition(view.early_stopped ? WireStatus::EARLYSTOPPED : WireStatus::SUCCEEDED);
  katib::Metric& metric = *status.mutable_observation()->add_metrics();
  metric.set_name(objective.objective_metric_name());
  metric.set_value(FormatNumber(objective.type() == v1::MAXIMIZE ? -view.loss : view.loss));
}

bool IsPlain(char c) { return c == '-' || c == '.'; }

}  // namespace

std::string EscapeLabel(const std::string& text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool inside = i > 0 && i + 1 < text.size();
    const bool letter = absl::ascii_isalnum(text[i]) && (i > 0 || text[i] != 'x');
    if (letter || (inside && IsPlain(text[i]))) {
      value += text[i];
    } else {
      // A label begins with a letter or a digit, so an "x" stands before the mark there.
      absl::StrAppendFormat(&value, "%s_%02x", i == 0 ? "x" : "", static_cast<uint8_t>(text[i]));
    }
  }
  return value;
}

std::string UnescapeLabel(const std::string& value) {
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    const size_t at = i == 0 && absl::StartsWith(value, "x_") ? 1 : i;
    int code = 0;
    if (value[at] == '_' && at + 2 < value.size() && absl::ascii_isxdigit(value[at + 1]) &&
        absl::ascii_isxdigit(value[at + 2])) {
      for (const char c : value.substr(at + 1, 2)) {
        code = code * 16 + (absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10);
      }
      text += static_cast<char>(code);
      i = at + 2;
    } else {
      text += value[i];
    }
  }
  return text;
}

KatibHistory ReadTrials(const Space& space, const v1::ObjectiveSpec& objective,
                        const KatibTrials& trials) {
  KatibHistory known{.history = History(space)};
  absl::flat_hash_map<std::string, int64_t> by_name;  // as in labels
  std::vector<absl::Time> ends;
  for (const size_t i : InOrder(trials)) {
    const katib::Trial& trial = trials[i];
    const auto point = ParsePoint(space, trial.spec().parameter_assignments().assignments());
    if (!point.ok()) {
      if (known.left_out++ == 0)
        known.why = "trial " + trial.name() + ": " + Message(point.status());
      continue;
    }
    TrialSummary view = ViewOf(trial, objective);
    const auto parent = by_name.find(LabelOf(trial, kParentLabel));
    if (parent != by_name.end()) view.parent = parent->second + 1;
    by_name.emplace(NameLabel(trial.name()), known.history.size());
    known.names.push_back(trial.name());
    known.history.Add(*point, view);
    known.history.SetLabels(known.history.size() - 1, OurLabels(trial));
    ends.push_back(TimeOf(trial.status().completion_time(), absl::InfinitePast()));
  }
  SetOrderOfEnds(ends, known.history);
  return known;
}

katib::GetSuggestionsReply::ParameterAssignments FormatSuggestion(const v1::ExperimentSpec& spec,
                                                                  const KatibHistory& known,
                                                                  const Suggestion& suggestion) {
  katib::GetSuggestionsReply::ParameterAssignments to;
  *to.mutable_assignments() = FormatPoint(spec, known.history.space(), suggestion.point);
  for (const auto& [name, value] : suggestion.labels) {
    // The number of a trial means nothing to who keeps them by name.
    if (name == "promoted-from" && suggestion.parent) continue;
    (*to.mutable_labels())[kPrefix + name] = EscapeLabel(value);
  }
  if (!suggestion.parent) return to;
  (*to.mutable_labels())[kParentLabel] = NameLabel(known.names.at(suggestion.parent->trial() - 1));
  if (suggestion.parent->step() > 0) {
    (*to.mutable_labels())[kParentStepLabel] = std::to_string(suggestion.parent->step());
  }
  return to;
}

std::string KatibName(const ExperimentKey& experiment, const History& history, int64_t index) {
  return history.label(index, kKatibName).value_or(TrialName({experiment, index + 1}));
}

KatibTrials FormatTrials(const v1::Experiment& experiment, const History& history) {
  const ExperimentKey key{experiment.metadata().namespace_(), experiment.metadata().name()};
  const v1::ExperimentSpec& spec = experiment.spec();
  const katib::ObjectiveSpec objective = ToKatib(experiment).spec().objective();
  KatibTrials trials;
  trials.Reserve(static_cast<int>(history.size()));
  for (int64_t i = 0; i < history.size(); ++i) {
    katib::Trial& trial = *trials.Add();
    trial.set_name(KatibName(key, history, i));
    *trial.mutable_spec()->mutable_objective() = objective;
    *trial.mutable_spec()->mutable_parameter_assignments()->mutable_assignments() =
        FormatPoint(spec, history.space(), history.point(i));
    for (const auto& [name, value] : history.labels(i)) {
      if (name != kKatibName) (*trial.mutable_spec()->mutable_labels())[name] = value;
    }
    SetOutcome(spec.objective(), history.trial(i), *trial.mutable_status());
  }
  return trials;
}

}  // namespace shirabe::suggestion
