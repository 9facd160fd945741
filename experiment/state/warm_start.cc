#include "experiment/state/warm_start.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"
#include "base/timestamp.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"

namespace shirabe::experiment {
namespace {

constexpr int64_t kPage = 1000;  // trials in memory at once

Status Mismatch(const std::string& what) { return absl::InvalidArgumentError(what); }

const v1::ParameterSpec* FindParameter(const v1::ExperimentSpec& spec, const std::string& name) {
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    if (parameter.name() == name) return &parameter;
  }
  return nullptr;
}

bool Categorical(const v1::ParameterSpec& parameter) {
  return parameter.parameter_type() == v1::CATEGORICAL;
}

const char* KindOf(const v1::ParameterSpec& parameter) {
  return Categorical(parameter) ? "categorical" : "numeric";
}

std::vector<std::string> NamesOf(const v1::ExperimentSpec& spec) {
  std::vector<std::string> names;
  for (const v1::ParameterSpec& parameter : spec.parameters()) names.push_back(parameter.name());
  return names;
}

Status CheckObjective(const v1::ObjectiveSpec& old, const v1::ObjectiveSpec& objective) {
  if (old.objective_metric_name() != objective.objective_metric_name()) {
    return Mismatch(absl::StrCat("its objective is \"", old.objective_metric_name(), "\", not \"",
                                 objective.objective_metric_name(),
                                 "\": the same metric is needed"));
  }
  if (old.type() == objective.type()) return absl::OkStatus();
  return Mismatch(absl::StrCat("\"", objective.objective_metric_name(), "\" was to be made as ",
                               old.type() == v1::MAXIMIZE ? "large" : "small",
                               " as possible there: objective.type must be the same"));
}

// What cannot be used at all; every parameter that does not match is listed.
Status CheckMatch(const v1::ExperimentSpec& old, const v1::ExperimentSpec& spec) {
  RETURN_IF_ERROR(CheckObjective(old.objective(), spec.objective()));
  std::vector<std::string> wrong;
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    const v1::ParameterSpec* there = FindParameter(old, parameter.name());
    if (there == nullptr) {
      const auto near = Nearest(parameter.name(), NamesOf(old));
      wrong.push_back(absl::StrCat("it has no parameter \"", parameter.name(), "\"",
                                   near ? ", only \"" + *near + "\"" : ""));
    } else if (Categorical(parameter) != Categorical(*there)) {
      wrong.push_back(absl::StrCat("parameter \"", parameter.name(), "\" is ", KindOf(*there),
                                   " there and ", KindOf(parameter), " here"));
    }
  }
  if (wrong.empty()) return absl::OkStatus();
  return Mismatch(absl::StrJoin(wrong, "; ") + ": search the same parameters, or remove it");
}

// Its values and how they are spread, without what is the default.
std::string RangeOf(const v1::ParameterSpec& parameter) {
  v1::FeasibleSpace range = parameter.feasible_space();
  if (range.distribution() == v1::UNIFORM) range.clear_distribution();
  return range.SerializeAsString();
}

// What differs and does no harm, or only to some of the trials.
std::vector<std::string> Differences(const v1::ExperimentSpec& old,
                                     const v1::ExperimentSpec& spec) {
  std::vector<std::string> notes;
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    const v1::ParameterSpec* there = FindParameter(old, parameter.name());
    const bool same = there->parameter_type() == parameter.parameter_type() &&
                      RangeOf(*there) == RangeOf(parameter);
    if (!same) notes.push_back(absl::StrCat("\"", parameter.name(), "\" had other values"));
  }
  for (const v1::ParameterSpec& parameter : old.parameters()) {
    if (FindParameter(spec, parameter.name()) != nullptr) continue;
    notes.push_back(absl::StrCat("\"", parameter.name(), "\" is not searched here"));
  }
  return notes;
}

StatusOr<v1::Experiment> GetMatching(db::Store& store, const v1::Experiment& experiment,
                                     const std::string& name) {
  const ExperimentKey key{experiment.metadata().namespace_(), name};
  ASSIGN_OR_RETURN(const auto old, store.GetExperiment(key));
  RETURN_IF_ERROR(CheckMatch(old.record.spec(), experiment.spec()));
  return old.record;
}

// The trial's point in the new space; an error if it lies outside.
StatusOr<suggestion::Point> PointIn(const suggestion::Space& space, const v1::Trial& trial) {
  std::vector<v1::Assignment> assignments;
  for (int i = 0; i < space.size(); ++i) {
    for (const v1::Assignment& assignment : trial.assignments()) {
      if (assignment.name() == space.axis(i).name()) assignments.push_back(assignment);
    }
  }
  ASSIGN_OR_RETURN(const suggestion::Point point, space.Encode(assignments));
  return space.Canonical(point);
}

// Reads one earlier experiment into the whole.
class Source {
 public:
  Source(const v1::Experiment& experiment, const suggestion::Space& space, WarmStart* whole)
      : space_(space), spec_(ResultSpecOf(experiment.spec())), whole_(whole) {
    if (!experiment.metadata().has_creation_timestamp()) return;
    created_ = FromProto(experiment.metadata().creation_timestamp());
  }

  Status Read(db::Store& store, const v1::Experiment& old, int index) {
    db::TrialQuery query{.experiment = {old.metadata().namespace_(), old.metadata().name()},
                         .limit = kPage};
    for (;;) {
      ASSIGN_OR_RETURN(const auto page, store.ListTrials(query));
      for (const auto& [trial, revision] : page) {
        query.after_number = trial.number();
        if (Usable(old.spec(), trial)) Add(old.spec().objective(), trial, index);
      }
      if (static_cast<int64_t>(page.size()) < kPage) return absl::OkStatus();
    }
  }

 private:
  bool Usable(const v1::ExperimentSpec& spec, const v1::Trial& trial) const {
    const bool ended =
        trial.phase() == v1::TRIAL_SUCCEEDED || trial.phase() == v1::TRIAL_EARLY_STOPPED;
    const bool whole = StoppedValueOf(spec, trial) == suggestion::StoppedValue::kResult;
    return ended && whole && trial.has_objective() &&
           FromProto(trial.completion_time()) <= created_;
  }

  bool KeepsConstraints(const v1::Trial& trial) const {
    const auto& constraints = spec_.shirabe().constraints();
    return std::all_of(constraints.begin(), constraints.end(), [&](const auto& constraint) {
      const auto value = CountedValue(spec_, trial.observation(), constraint.metric_name());
      return value && BrokenBy(constraint, *value) == 0;
    });
  }

  void Add(const v1::ObjectiveSpec& objective, const v1::Trial& trial, int index) {
    if (!KeepsConstraints(trial)) {
      ++whole_->breaking;
      return;
    }
    auto point = PointIn(space_, trial);
    if (!point.ok()) {
      ++whole_->left_out;
      return;
    }
    whole_->trials.push_back({.point = *std::move(point),
                              .loss = LossOf(objective, trial.objective()),
                              .source = index});
  }

  const suggestion::Space& space_;
  const v1::ExperimentSpec spec_;  // of the experiment that learns
  WarmStart* whole_;
  absl::Time created_ = absl::InfiniteFuture();
};

}  // namespace

std::string ToString(const WarmStart& warm_start) {
  std::string text =
      absl::StrCat(warm_start.trials.size(), " trials of earlier experiments are known");
  if (warm_start.left_out > 0) {
    absl::StrAppend(&text, ", ", warm_start.left_out,
                    " lie outside of this space and are left out");
  }
  if (warm_start.breaking > 0) {
    absl::StrAppend(&text, ", ", warm_start.breaking,
                    " break spec.shirabe.constraints, or do not say, and are left out");
  }
  if (warm_start.notes.empty()) return text;
  return absl::StrCat(text, "; ", absl::StrJoin(warm_start.notes, "; "));
}

StatusOr<WarmStart> ReadWarmStart(db::Store& store, const v1::Experiment& experiment,
                                  const suggestion::Space& space) {
  WarmStart whole;
  Source source(experiment, space, &whole);
  int index = 0;
  for (const std::string& name : experiment.spec().shirabe().warm_start().experiments()) {
    const auto old = GetMatching(store, experiment, name);
    if (absl::IsNotFound(old.status()) || absl::IsInvalidArgument(old.status())) {
      whole.notes.push_back(absl::StrCat(name, ": ", Message(old.status())));
    } else {
      RETURN_IF_ERROR(old.status());
      RETURN_IF_ERROR(source.Read(store, *old, index));
      for (const std::string& note : Differences(old->spec(), experiment.spec())) {
        whole.notes.push_back(absl::StrCat(name, ": ", note));
      }
    }
    ++index;
  }
  return whole;
}

Status CheckWarmStart(db::Store& store, const v1::Experiment& experiment) {
  const auto& names = experiment.spec().shirabe().warm_start().experiments();
  for (int i = 0; i < names.size(); ++i) {
    const Status status = GetMatching(store, experiment, names[i]).status();
    const std::string path =
        absl::StrCat("spec.shirabe.warmStart.experiments[", i, "]: experiment \"", names[i], "\"");
    if (absl::IsNotFound(status)) {
      return Mismatch(path + " does not exist: see `shirabe get exp`");
    }
    RETURN_IF_ERROR(Prefix(path, status));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
