#include "convert/readers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/import_batch.h"
#include "experiment/spec/local_support.h"

namespace shirabe::convert {

void TakeName(Fields& fields, const std::string& key, const Reading& reading) {
  const auto text = fields.Text(key);
  if (!text) return;
  const std::string name = client::ExperimentNameFrom(*text);
  reading.experiment.mutable_metadata()->set_name(name);
  if (name == *text) return reading.report.Taken(fields.At(key), {"metadata.name", name});
  reading.report.Changed(fields.At(key), {"metadata.name", name},
                         "a name has lower-case letters, digits and '-', at most 40");
}

void TakeScale(const Place& place, const std::string& scale, v1::ExperimentSpec& spec,
               Report& report) {
  v1::ParameterSpec& parameter = *spec.mutable_parameters(spec.parameters_size() - 1);
  const bool ranged =
      parameter.parameter_type() == v1::DOUBLE || parameter.parameter_type() == v1::INT;
  const Target target{LastParameterPath(spec) + ".feasibleSpace.distribution", "uniform"};
  const bool log = scale == "UNIT_LOG_SCALE", reverse = scale == "UNIT_REVERSE_LOG_SCALE";
  if (!log && !reverse && scale != "UNIT_LINEAR_SCALE" && scale != "NONE" &&
      scale != "SCALE_TYPE_UNSPECIFIED") {
    return report.Error(place, absl::StrCat("\"", scale, "\" is none of NONE, UNIT_LINEAR_SCALE, ",
                                            "UNIT_LOG_SCALE and UNIT_REVERSE_LOG_SCALE"));
  }
  if (!ranged && (log || reverse)) {
    return report.LeftOut(place, "the values of a list are equally far from one another here");
  }
  if (!ranged) return report.Taken(place, {LastParameterPath(spec) + ".parameterType"});
  if (reverse) {
    return report.Changed(place, target,
                          "values near the maximum are not tried more densely: search max - x on "
                          "a logarithmic scale to have that");
  }
  if (!log) return report.Taken(place, target);
  parameter.mutable_feasible_space()->set_distribution(v1::LOG_UNIFORM);
  report.Taken(place, {target.path, "logUniform"});
}

void TakePackages(Fields& fields, const Reading& reading) {
  constexpr char kKey[] = "packageUris";
  constexpr size_t kMostPackages = 100;
  const std::vector<std::string> uris = fields.Texts(kKey);
  if (uris.empty()) return;
  for (size_t i = 0; i < uris.size(); ++i) {
    const auto parsed = experiment::ParsePackageUri(uris[i]);
    if (parsed.ok()) continue;
    return reading.report.Error(fields.ItemAt(kKey, static_cast<int>(i)), Message(parsed.status()));
  }
  if (uris.size() > kMostPackages) {
    return reading.report.Error(fields.At(kKey),
                                absl::StrCat("has more than ", kMostPackages, " packages"));
  }
  const std::string value = absl::StrJoin(uris, ",");
  (*reading.experiment.mutable_metadata()->mutable_annotations())[experiment::kPackageUris] = value;
  reading.report.Changed(
      fields.At(kKey),
      {absl::StrCat("metadata.annotations[\"", experiment::kPackageUris, "\"]"), value},
      "run, apply, create and ai-platform jobs submit fetch them from the store of type gcs that "
      "--stores FILE names for their bucket, and put them there as spec.shirabe.code; what they "
      "require is not installed");
}

v1::ParameterSpec& AddParameter(const std::string& name, v1::ExperimentSpec& spec) {
  v1::ParameterSpec& parameter = *spec.add_parameters();
  parameter.set_name(name);
  return parameter;
}

std::string LastParameterPath(const v1::ExperimentSpec& spec) {
  return experiment::ItemPath("spec.parameters", spec.parameters_size() - 1);
}

void SetStrategy(v1::MetricStrategyType strategy, v1::ObjectiveSpec& objective) {
  v1::MetricStrategy& made = *objective.add_metric_strategies();
  made.set_name(objective.objective_metric_name());
  made.set_value(strategy);
}

void SetMedianStop(v1::ExperimentSpec& spec) {
  spec.mutable_early_stopping()->set_algorithm_name("medianstop");
}

}  // namespace shirabe::convert
