#include "experiment/attempt_request.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "base/rng.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "experiment/conditions.h"
#include "experiment/plan.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_point.h"
#include "experiment/state/checkpoint_policy.h"
#include "experiment/state/retry_policy.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/inactive_parameters.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_volumes.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

// Programs read seeds into 32-bit integers.
constexpr uint64_t kSeedMask = 0x7FFFFFFF;

std::string ParametersJson(const v1::Trial& trial) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const v1::Assignment& assignment : trial.assignments()) {
    switch (assignment.value_case()) {
      case v1::Assignment::kNumber: json[assignment.name()] = assignment.number(); break;
      case v1::Assignment::kInteger: json[assignment.name()] = assignment.integer(); break;
      default: json[assignment.name()] = assignment.category(); break;
    }
  }
  return JsonText(json) + "\n";
}

std::map<std::string, std::string> Environment(const ExperimentState& state, const v1::Trial& trial,
                                               const v1::Attempt& attempt) {
  const std::string name = TrialName({state.key(), trial.number()});
  std::map<std::string, std::string> environment = {
      {"SHIRABE_TRIAL", name},
      {"SHIRABE_ATTEMPT", std::to_string(attempt.number())},
      {"SHIRABE_SEED", std::to_string(Mix(state.setup().seed, trial.number()) & kSeedMask)},
      {"SHIRABE_RESUME_FROM", ""},
      {"SHIRABE_GRACE_SECONDS", FormatNumber(absl::ToDoubleSeconds(GraceOf(state.experiment())))},
      {"KATIB_TRIAL_NAME", name},
      {"CLOUD_ML_TRIAL_ID", std::to_string(trial.number())},
  };
  // By all of its attempts: which pool this one comes to is not known before it starts.
  const v1::ShirabeStatus& status = state.experiment().status().shirabe();
  const double advised = AdvisedSaveSeconds(status.seconds(), status.preemptions());
  if (advised > 0) environment["SHIRABE_CHECKPOINT_SECONDS"] = FormatNumber(advised);
  for (const v1::Assignment& assignment : trial.assignments()) {
    environment[ParameterVariable(assignment.name())] = trial::FormatAssignment(assignment);
  }
  return environment;
}

// Where the program itself stands, for a path that is relative to it.
std::string WorkingDirOf(const ExperimentState& state, const AttemptRecords& records,
                         const std::string& otherwise) {
  const auto request = RequestFor(state, records, otherwise);
  if (!request.ok()) return otherwise;  // the start will say why
  const auto command =
      trial::ReadCommand(request->trial_spec, request->primary_container, request->environment);
  if (!command.ok()) return otherwise;
  return (std::filesystem::path(otherwise) / command->working_dir).string();
}

// The path of source.fileSystemPath as the program knows it.
std::string CollectedPath(const ExperimentState& state, const trial::AttemptPaths& theirs) {
  // Trials that share a machine need a file each: the path may name the trial's own folder.
  return absl::StrReplaceAll(
      state.experiment().spec().metrics_collector_spec().source().file_system_path().path(),
      {{"$(SHIRABE_OUTPUT_DIR)", theirs.output_dir},
       {"$(SHIRABE_CHECKPOINT_DIR)", theirs.checkpoint_dir},
       {"$(SHIRABE_METRICS_FILE)", theirs.metrics_file}});
}

// Those that its conditions leave out.
std::set<std::string> InactiveParameters(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  std::set<std::string> names = ConditionalParameters(spec);
  for (const v1::Assignment& assignment : trial.assignments()) names.erase(assignment.name());
  return names;
}

}  // namespace

AttemptKey KeyOf(const ExperimentState& state, const v1::Attempt& attempt) {
  return {{state.key(), attempt.trial()}, attempt.number()};
}

StatusOr<trial::AttemptRequest> RequestFor(const ExperimentState& state,
                                           const AttemptRecords& records,
                                           const std::string& working_dir) {
  ASSIGN_OR_RETURN(trial::AttemptRequest request,
                   RequestFrom(state, records, state.experiment().spec().trial_template()));
  request.working_dir = working_dir;
  return request;
}

StatusOr<trial::AttemptRequest> RequestFrom(const ExperimentState& state,
                                            const AttemptRecords& records,
                                            const v1::TrialTemplate& trial_template) {
  const auto& [trial, attempt] = records;
  trial::AttemptRequest request;
  request.key = KeyOf(state, attempt);
  request.token = attempt.token();
  if (!state.experiment().spec().shirabe().ask_and_tell()) {
    const auto inactive = InactiveParameters(state.experiment().spec(), trial);
    ASSIGN_OR_RETURN(const auto own, trial::WithoutInactive(trial_template, inactive));
    ASSIGN_OR_RETURN(request.trial_spec,
                     trial::Render(own, request.key.trial,
                                   {trial.assignments().begin(), trial.assignments().end()}));
  }
  request.primary_container = trial_template.primary_container_name();
  request.environment = Environment(state, trial, attempt);
  for (const v1::Setting& setting : state.experiment().spec().algorithm().algorithm_settings()) {
    if (setting.name() != trial::kKatibFolderSetting) continue;
    request.environment[trial::kKatibFolderVariable] = setting.value();
  }
  request.parameters_json = ParametersJson(trial);
  request.grace = GraceOf(state.experiment());
  request.cluster.trial_template = trial_template;
  request.cluster.trial_template.clear_trial_spec();
  request.cluster.collector = state.experiment().spec().metrics_collector_spec();
  request.cluster.metrics = WantedMetrics(state.experiment().spec().objective());
  request.cluster.volume = trial::VolumeFor(
      state.key(), state.experiment().spec().shirabe().checkpoint().volume(), request.environment);
  request.cluster.artifacts = state.experiment().spec().shirabe().artifacts();
  request.cluster.code = state.experiment().spec().shirabe().code();
  const auto& annotations = state.experiment().metadata().annotations();
  const auto owner = annotations.find(kObjectUid);
  if (owner != annotations.end()) request.cluster.owner = owner->second;
  request.placement_request = {
      .policy = state.experiment().spec().shirabe().capacity(),
      .on_demand = WantsOnDemand(trial, state.experiment().spec().shirabe())};
  return request;
}

metrics::Source SourceFor(const ExperimentState& state, const AttemptRecords& records,
                          const trial::AttemptPaths& paths, const std::string& working_dir) {
  metrics::Source source;
  source.metrics = WantedMetrics(state.experiment().spec().objective());
  source.files = {.log = paths.log,
                  .metrics = paths.metrics_file,
                  .hypertune = paths.hypertune_file,
                  .scrapes = paths.scrapes_file,
                  .copies = !paths.root.empty()};
  const bool copies = source.files.copies;
  const trial::AttemptPaths theirs =
      copies ? trial::PodPaths(KeyOf(state, records.attempt)) : paths;
  const std::string path = CollectedPath(state, theirs);
  if (path == theirs.metrics_file) {
    source.files.path = paths.metrics_file;
  } else if (!path.empty()) {
    const std::string base =
        path.front() == '/' ? "/" : WorkingDirOf(state, records, copies ? "/" : working_dir);
    source.files.path =
        paths.root + (std::filesystem::path(base) / path).lexically_normal().string();
  }
  return source;
}

}  // namespace shirabe::experiment
