#include "experiment/spec/spec_limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/message_check.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::RepeatedPtrField;
using Labels = google::protobuf::Map<std::string, std::string>;

class LimitCheck {
 public:
  explicit LimitCheck(Findings& findings) : findings_(findings) {}

  bool good() const { return good_; }

  void Count(const std::string& path, int64_t count, int64_t most) {
    if (count <= most) return;
    Error(path,
          absl::StrCat("has ", count, " items, and at most ", most, " are taken: give fewer"));
  }
  void Bytes(const std::string& path, const std::string& text, size_t most) {
    if (text.size() <= most) return;
    Error(path, absl::StrCat("has ", text.size(), " bytes, and at most ", most,
                             " are taken: shorten it"));
  }
  void Error(const std::string& path, std::string message) {
    findings_.Error(path, std::move(message));
    good_ = false;
  }

  // A list of names.
  void Names(const std::string& path, const RepeatedPtrField<std::string>& names, int most) {
    Texts(path, names, {most, kMaxNameBytes});
  }
  struct Most {
    int items;
    size_t bytes;
  };
  void Texts(const std::string& path, const RepeatedPtrField<std::string>& texts, Most most) {
    Count(path, texts.size(), most.items);
    for (int i = 0; i < texts.size() && good_; ++i) Bytes(ItemPath(path, i), texts[i], most.bytes);
  }

  void Metadata(const v1::ObjectMeta& metadata) {
    Count("metadata.labels", static_cast<int64_t>(metadata.labels().size()), kMaxLabels);
    Count("metadata.annotations", static_cast<int64_t>(metadata.annotations().size()), kMaxLabels);
  }
  void Parameters(const std::string& path, const RepeatedPtrField<v1::ParameterSpec>& parameters) {
    Count(path, parameters.size(), kMaxParameters);
    for (int i = 0; i < parameters.size() && good_; ++i) {
      const std::string item = ItemPath(path, i);
      Bytes(item + ".name", parameters[i].name(), kMaxNameBytes);
      const v1::FeasibleSpace& space = parameters[i].feasible_space();
      Texts(item + ".feasibleSpace.list", space.list(), {kMaxListValues, kMaxTextBytes});
      Count(item + ".feasibleSpace.numbers", space.numbers_size(), kMaxListValues);
    }
  }
  void Settings(const std::string& path, const RepeatedPtrField<v1::Setting>& settings) {
    Count(path, settings.size(), kMaxSettings);
    for (int i = 0; i < settings.size() && good_; ++i) {
      Bytes(ItemPath(path, i) + ".name", settings[i].name(), kMaxNameBytes);
      Bytes(ItemPath(path, i) + ".value", settings[i].value(), kMaxTextBytes);
    }
  }
  void Objective(const v1::ObjectiveSpec& objective) {
    const std::string path = "spec.objective";
    Bytes(path + ".objectiveMetricName", objective.objective_metric_name(), kMaxNameBytes);
    Names(path + ".additionalMetricNames", objective.additional_metric_names(), kMaxMetrics);
    // The defaults add one for each metric.
    Count(path + ".metricStrategies", objective.metric_strategies_size(), 2 * kMaxMetrics + 1);
    for (const v1::MetricStrategy& strategy : objective.metric_strategies()) {
      if (good_) Bytes(path + ".metricStrategies", strategy.name(), kMaxNameBytes);
    }
  }
  void Template(const v1::TrialTemplate& trial) {
    const std::string path = "spec.trialTemplate";
    Count(path + ".trialParameters", trial.trial_parameters_size(), kMaxTrialParameters);
    for (int i = 0; i < trial.trial_parameters_size() && good_; ++i) {
      const std::string item = ItemPath(path + ".trialParameters", i);
      Bytes(item + ".name", trial.trial_parameters(i).name(), kMaxNameBytes);
      Bytes(item + ".reference", trial.trial_parameters(i).reference(), kMaxNameBytes);
    }
    Count(path + ".primaryPodLabels", static_cast<int64_t>(trial.primary_pod_labels().size()),
          kMaxLabels);
    Bytes(path + ".primaryContainerName", trial.primary_container_name(), kMaxNameBytes);
  }
  void Collector(const v1::SourceSpec& source) {
    const std::string path = "spec.metricsCollectorSpec.source";
    Texts(path + ".filter.metricsFormat", source.filter().metrics_format(),
          {kMaxPatterns, kMaxPatternBytes});
    Bytes(path + ".fileSystemPath.path", source.file_system_path().path(), kMaxTextBytes);
    Bytes(path + ".httpGet.path", source.http_get().path(), kMaxTextBytes);
  }
  void Ours(const v1::ShirabeSpec& shirabe) {
    Count("spec.shirabe.start", shirabe.start_size(), kMaxStartPoints);
    Rules(shirabe.space());
    Results(shirabe);
    Names("spec.shirabe.warmStart.experiments", shirabe.warm_start().experiments(), kMaxNames);
    Names("spec.shirabe.capacity.pools", shirabe.capacity().pools(), kMaxNames);
    Bytes("spec.shirabe.algorithm.endpoint", shirabe.algorithm().endpoint(), kMaxNameBytes);
    Bytes("spec.shirabe.artifacts.store", shirabe.artifacts().store(), kMaxNameBytes);
    Bytes("spec.shirabe.artifacts.prefix", shirabe.artifacts().prefix(), kMaxNameBytes);
    Bytes("spec.shirabe.code.store", shirabe.code().store(), kMaxNameBytes);
    Bytes("spec.shirabe.code.prefix", shirabe.code().prefix(), kMaxNameBytes);
    Bytes("spec.shirabe.code.package", shirabe.code().package(), kMaxNameBytes);
    Bytes("spec.shirabe.onSuccess.primaryContainerName",
          shirabe.on_success().primary_container_name(), kMaxNameBytes);
    Notifications(shirabe.notifications());
  }
  void Notifications(const RepeatedPtrField<v1::Notification>& notifications) {
    const std::string path = "spec.shirabe.notifications";
    Count(path, notifications.size(), kMaxNotifications);
    for (int i = 0; i < notifications.size() && good_; ++i) {
      Count(ItemPath(path, i) + ".events", notifications[i].events_size(), kMaxCauses);
      Bytes(ItemPath(path, i) + ".webhook.endpoint", notifications[i].webhook().endpoint(),
            kMaxNameBytes);
    }
  }
  // What a rule asks about is looked up for every point that is drawn.
  void Rules(const v1::SpaceRules& space) {
    const std::string conditions = "spec.shirabe.space.conditions";
    Count(conditions, space.conditions_size(), kMaxParameters);
    for (int i = 0; i < space.conditions_size() && good_; ++i) {
      const std::string path = ItemPath(conditions, i);
      Bytes(path + ".parameter", space.conditions(i).parameter(), kMaxNameBytes);
      Count(path + ".when", space.conditions(i).when().fields_size(), kMaxRuleParameters);
    }
    const std::string forbidden = "spec.shirabe.space.forbidden";
    Count(forbidden, space.forbidden_size(), kMaxForbidden);
    for (int i = 0; i < space.forbidden_size() && good_; ++i) {
      Count(ItemPath(forbidden, i), space.forbidden(i).fields_size(), kMaxRuleParameters);
    }
    const std::string linear = "spec.shirabe.space.linear";
    Count(linear, space.linear_size(), kMaxForbidden);
    for (int i = 0; i < space.linear_size() && good_; ++i) {
      Count(ItemPath(linear, i) + ".sum", space.linear(i).sum().fields_size(), kMaxRuleParameters);
    }
  }
  void Results(const v1::ShirabeSpec& shirabe) {
    const std::string objectives = "spec.shirabe.additionalObjectives";
    Count(objectives, shirabe.additional_objectives_size(), kMaxAdditionalObjectives);
    for (int i = 0; i < shirabe.additional_objectives_size() && good_; ++i) {
      Bytes(ItemPath(objectives, i) + ".metricName", shirabe.additional_objectives(i).metric_name(),
            kMaxNameBytes);
    }
    const std::string constraints = "spec.shirabe.constraints";
    Count(constraints, shirabe.constraints_size(), kMaxConstraints);
    for (int i = 0; i < shirabe.constraints_size() && good_; ++i) {
      Bytes(ItemPath(constraints, i) + ".metricName", shirabe.constraints(i).metric_name(),
            kMaxNameBytes);
    }
  }
  void Architecture(const v1::NasConfig& nas) {
    const std::string path = "spec.nasConfig.operations";
    Count(path, nas.operations_size(), kMaxOperations);
    int64_t parameters = 0;
    for (int i = 0; i < nas.operations_size() && good_; ++i) {
      Parameters(ItemPath(path, i) + ".parameters", nas.operations(i).parameters());
      parameters += nas.operations(i).parameters_size();
    }
    Count(path + ".parameters", parameters, kMaxParameters);
  }

 private:
  Findings& findings_;
  bool good_ = true;
};

size_t BytesOf(const v1::Experiment& experiment) {
  return experiment.metadata().ByteSizeLong() + experiment.spec().ByteSizeLong();
}

}  // namespace

bool CheckSpecLimits(const v1::Experiment& experiment, Findings& findings) {
  LimitCheck check(findings);
  const v1::ExperimentSpec& spec = experiment.spec();
  if (const auto problem = FindProblem(experiment)) check.Error(problem->path, problem->message);
  check.Metadata(experiment.metadata());
  check.Parameters("spec.parameters", spec.parameters());
  check.Objective(spec.objective());
  const std::string settings = ".algorithmSettings";
  check.Settings("spec.algorithm" + settings, spec.algorithm().algorithm_settings());
  check.Settings("spec.earlyStopping" + settings, spec.early_stopping().algorithm_settings());
  check.Template(spec.trial_template());
  check.Collector(spec.metrics_collector_spec().source());
  check.Ours(spec.shirabe());
  check.Architecture(spec.nas_config());
  const size_t bytes = BytesOf(experiment);
  if (bytes > kMaxSpecBytes) {
    check.Error("spec", absl::StrCat("has ", bytes, " bytes with metadata, and at most ",
                                     kMaxSpecBytes, " are taken: make it smaller"));
  }
  return check.good();
}

}  // namespace shirabe::experiment
