#include "tracking/hparams_events.h"

#include "base/timestamp.h"
#include "client/records/enum_words.h"

namespace shirabe::tracking {
namespace {

constexpr char kPlugin[] = "hparams";

double UnixSeconds(const google::protobuf::Timestamp& time) {
  return absl::ToDoubleSeconds(FromProto(time) - absl::UnixEpoch());
}

// The plugin looks for tags of these names, whose content is in the metadata.
tensorboard::Event PluginEvent(const std::string& tag, const tensorboard::HParamsPluginData& data) {
  tensorboard::Event event;
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  auto& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name(kPlugin);
  plugin.set_content(data.SerializeAsString());
  return event;
}

void DescribeParameter(const v1::ParameterSpec& parameter, tensorboard::HParamInfo& info) {
  const v1::FeasibleSpace& space = parameter.feasible_space();
  info.set_name(parameter.name());
  switch (parameter.parameter_type()) {
    case v1::DOUBLE:
    case v1::INT:
      info.set_type(tensorboard::DATA_TYPE_FLOAT64);
      info.mutable_domain_interval()->set_min_value(space.min());
      info.mutable_domain_interval()->set_max_value(space.max());
      break;
    case v1::DISCRETE:
      info.set_type(tensorboard::DATA_TYPE_FLOAT64);
      for (const double number : space.numbers()) {
        info.mutable_domain_discrete()->add_values()->set_number_value(number);
      }
      break;
    default:
      info.set_type(tensorboard::DATA_TYPE_STRING);
      for (const std::string& word : space.list()) {
        info.mutable_domain_discrete()->add_values()->set_string_value(word);
      }
  }
}

google::protobuf::Value ValueOf(const v1::Assignment& assignment) {
  google::protobuf::Value value;
  switch (assignment.value_case()) {
    case v1::Assignment::kNumber: value.set_number_value(assignment.number()); break;
    case v1::Assignment::kInteger:
      value.set_number_value(static_cast<double>(assignment.integer()));
      break;
    default: value.set_string_value(assignment.category());
  }
  return value;
}

tensorboard::Status StatusOfTrial(v1::TrialPhase phase) {
  const bool good = phase == v1::TRIAL_SUCCEEDED || phase == v1::TRIAL_EARLY_STOPPED;
  return good ? tensorboard::STATUS_SUCCESS : tensorboard::STATUS_FAILURE;
}

}  // namespace

tensorboard::Event ExperimentEvent(const v1::Experiment& experiment) {
  tensorboard::HParamsPluginData data;
  tensorboard::HParamsExperiment& shown = *data.mutable_experiment();
  shown.set_name(experiment.metadata().name());
  shown.set_time_created_secs(UnixSeconds(experiment.metadata().creation_timestamp()));
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    DescribeParameter(parameter, *shown.add_hparam_infos());
  }
  for (const std::string& metric : client::MetricNames(experiment)) {
    shown.add_metric_infos()->mutable_name()->set_tag(metric);
  }
  tensorboard::Event event = PluginEvent("_hparams_/experiment", data);
  event.set_wall_time(shown.time_created_secs());
  return event;
}

tensorboard::Event SessionStartEvent(const TrialKey& key, const v1::Trial& trial) {
  tensorboard::HParamsPluginData data;
  tensorboard::SessionStartInfo& start = *data.mutable_session_start_info();
  for (const v1::Assignment& assignment : trial.assignments()) {
    (*start.mutable_hparams())[assignment.name()] = ValueOf(assignment);
  }
  start.set_group_name(TrialName(key));
  start.set_start_time_secs(UnixSeconds(trial.start_time()));
  tensorboard::Event event = PluginEvent("_hparams_/session_start_info", data);
  event.set_wall_time(start.start_time_secs());
  return event;
}

tensorboard::Event SessionEndEvent(const v1::Trial& trial) {
  tensorboard::HParamsPluginData data;
  tensorboard::SessionEndInfo& end = *data.mutable_session_end_info();
  end.set_status(StatusOfTrial(trial.phase()));
  end.set_end_time_secs(UnixSeconds(trial.completion_time()));
  tensorboard::Event event = PluginEvent("_hparams_/session_end_info", data);
  event.set_wall_time(end.end_time_secs());
  return event;
}

tensorboard::Event ScalarEvent(const db::StoredObservation& row) {
  tensorboard::Event event;
  event.set_wall_time(absl::ToDoubleSeconds(row.time - absl::UnixEpoch()));
  event.set_step(row.step);
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(row.metric);
  value.set_simple_value(static_cast<float>(row.value));
  return event;
}

tensorboard::Event AgainFromTheStartEvent() {
  tensorboard::Event event;
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return event;
}

}  // namespace shirabe::tracking
