#include "client/field.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/did_you_mean.h"
#include "base/names.h"
#include "client/objective.h"
#include "client/words.h"

namespace shirabe::client {
namespace {

using TrialGet = std::function<FieldValue(const v1::Trial&)>;
using ExperimentGet = std::function<FieldValue(const v1::Experiment&)>;

constexpr bool kText = false;  // for Field::is_number

FieldValue Shown(const std::optional<ShownValue>& shown) {
  if (!shown) return std::monostate();
  return shown->value;
}

FieldValue Count(int64_t count) { return static_cast<double>(count); }

FieldValue ParameterOf(const v1::Trial& trial, const std::string& name) {
  for (const v1::Assignment& assignment : trial.assignments()) {
    if (assignment.name() != name) continue;
    if (assignment.has_category()) return assignment.category();
    return assignment.has_integer() ? Count(assignment.integer()) : assignment.number();
  }
  return std::monostate();
}

FieldValue Seconds(const v1::Trial& trial) {
  if (!trial.has_start_time() || !trial.has_completion_time()) return std::monostate();
  return absl::ToDoubleSeconds(FromProto(trial.completion_time()) - FromProto(trial.start_time()));
}

Fields<v1::Trial> CommonTrialFields() {
  return {
      {"trial", [](const v1::Trial& t) { return Count(t.number()); }},
      {"name",
       [](const v1::Trial& t) {
         return TrialName({ExperimentKeyOf(t), t.number()});
       },
       kText},
      {"state", [](const v1::Trial& t) { return PhaseWord(t.phase()); }, kText},
      {"reason", [](const v1::Trial& t) { return t.reason(); }, kText},
      {"attempts", [](const v1::Trial& t) { return Count(t.attempts()); }},
      {"failures", [](const v1::Trial& t) { return Count(t.failures()); }},
      {"preemptions", [](const v1::Trial& t) { return Count(t.preemptions()); }},
      {"seconds", Seconds},
      {"cost", [](const v1::Trial& t) { return t.cost(); }},
  };
}

template <class Record>
StatusOr<Field<Record>> Find(const Fields<Record>& fields, const std::string& name) {
  std::vector<std::string> names;
  for (const Field<Record>& field : fields) {
    if (field.name == name) return field;
    names.push_back(field.name);
  }
  for (const char* prefix : {"metric.", "param."}) {
    for (const Field<Record>& field : fields) {
      if (field.name == prefix + name) return field;
    }
  }
  const auto nearest = Nearest(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no field \"", name, "\"", nearest ? "; did you mean \"" + *nearest + "\"?" : "",
      " (fields: ", absl::StrJoin(names, ", "), ")"));
}

}  // namespace

Fields<v1::Trial> TrialFields(const v1::Experiment& experiment) {
  // Shared by the fields, which are copied freely: one copy of the specification for all of them.
  auto spec = std::make_shared<v1::Experiment>();  // shared: see above
  *spec->mutable_spec()->mutable_objective() = experiment.spec().objective();
  Fields<v1::Trial> fields = CommonTrialFields();
  fields.push_back({"objective", [spec](const v1::Trial& t) -> FieldValue {
                      return Shown(ShownObjective(*spec, t));
                    }});
  fields.push_back({"step", [spec](const v1::Trial& t) -> FieldValue {
                      const auto shown = ShownObjective(*spec, t);
                      return shown ? Count(shown->step) : FieldValue();
                    }});
  for (const std::string& metric : MetricNames(experiment)) {
    fields.push_back({"metric." + metric, [spec, metric](const v1::Trial& t) -> FieldValue {
                        return Shown(ShownMetric(*spec, t, metric));
                      }});
  }
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    fields.push_back(
        {"param." + parameter.name(),
         [name = parameter.name()](const v1::Trial& t) { return ParameterOf(t, name); },
         parameter.parameter_type() != v1::CATEGORICAL});
  }
  return fields;
}

Fields<v1::Experiment> ExperimentFields(absl::Time now) {
  using E = v1::Experiment;
  return {
      {"name", [](const E& e) { return e.metadata().name(); }, kText},
      {"namespace", [](const E& e) { return e.metadata().namespace_(); }, kText},
      {"state", [](const E& e) { return StateWord(e); }, kText},
      {"best",
       [](const E& e) -> FieldValue {
         const v1::OptimalTrial& best = e.status().current_optimal_trial();
         if (!best.has_objective()) return std::monostate();
         return best.objective();
       }},
      {"trials", [](const E& e) { return Count(e.status().trials()); }},
      {"running", [](const E& e) { return Count(e.status().trials_running()); }},
      {"failed", [](const E& e) { return Count(e.status().trials_failed()); }},
      {"age",
       [now](const E& e) {
         return absl::ToDoubleSeconds(now - FromProto(e.metadata().creation_timestamp()));
       }},
      {"cost", [](const E& e) { return e.status().shirabe().cost(); }},
      {"preemptions", [](const E& e) { return Count(e.status().shirabe().preemptions()); }},
      {"algorithm", [](const E& e) { return e.spec().algorithm().algorithm_name(); }, kText},
  };
}

StatusOr<Field<v1::Trial>> FindField(const Fields<v1::Trial>& fields, const std::string& name) {
  return Find(fields, name);
}

StatusOr<Field<v1::Experiment>> FindField(const Fields<v1::Experiment>& fields,
                                          const std::string& name) {
  return Find(fields, name);
}

}  // namespace shirabe::client
