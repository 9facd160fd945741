// Rules of spec.algorithm, spec.earlyStopping and spec.shirabe: names and settings as the
// registries know them, points to start from, and what this version does not act on yet.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/printable.h"
#include "base/text/json_text.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/local_support.h"
#include "experiment/spec/trial_point.h"
#include "experiment/spec/trial_result.h"
#include "experiment/spec/validate_rules.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "trial/checkpoint/katib_folder.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::RepeatedPtrField;

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The registered variant; null after saying why there is none.
template <class Info>
const Info* FindVariant(const std::string& name, const std::string& path, Findings& findings) {
  const Registry<Info>& registry = Registry<Info>::Get();
  if (const Info* info = registry.Find(name)) return info;
  std::vector<std::string> known = registry.Names();
  for (const std::string& alias : registry.Aliases()) known.push_back(alias);
  findings.Error(path, "unknown name " + Quoted(name) + DidYouMean(name, known));
  return nullptr;
}

void CheckTwice(const RepeatedPtrField<v1::Setting>& settings, const std::string& path,
                Findings& findings) {
  std::set<std::string> names;
  for (int i = 0; i < settings.size(); ++i) {
    if (settings[i].name().empty() || names.insert(settings[i].name()).second) continue;
    findings.Error(ItemPath(path, i) + ".name",
                   Quoted(settings[i].name()) + " is given twice: remove one");
  }
}

// A message about a setting belongs to that setting's line.
std::string PathFor(const std::string& message, const RepeatedPtrField<v1::Setting>& settings,
                    const std::string& path) {
  for (int i = 0; i < settings.size(); ++i) {
    const std::string& name = settings[i].name();
    if (!name.empty() && message.find(name) != std::string::npos) {
      return ItemPath(ChildPath(path, "algorithmSettings"), i) + ".name";
    }
  }
  return ChildPath(path, "algorithmName");
}

Status CheckAgainst(const suggestion::AlgorithmInfo& info, const suggestion::Settings& settings) {
  return suggestion::ValidateSettings(info.settings, settings);
}

Status CheckAgainst(const suggestion::StopperInfo& info, const suggestion::Settings& settings) {
  return suggestion::ValidateStopperSettings(info.settings, settings);
}

// Each setting alone against the table first, so that several bad ones are all found.
template <class Info>
bool CheckSettings(const Info& info, const RepeatedPtrField<v1::Setting>& settings,
                   const std::string& path, Findings& findings) {
  bool good = true;
  const std::string list = ChildPath(path, "algorithmSettings");
  for (int i = 0; i < settings.size() && !findings.full(); ++i) {
    const Status status = CheckAgainst(info, {{settings[i].name(), settings[i].value()}});
    if (status.ok() || settings[i].name().empty()) continue;
    findings.Error(ItemPath(list, i) + ".name", Message(status));
    good = false;
  }
  return good;
}

// Values that are accepted from Katib's files and mean something else here.
void WarnOfReplaced(const suggestion::AlgorithmInfo& info,
                    const RepeatedPtrField<v1::Setting>& settings, const std::string& path,
                    Findings& findings) {
  const std::string list = ChildPath(path, "algorithmSettings");
  for (const suggestion::SettingInfo& known : info.settings) {
    for (int i = 0; i < settings.size(); ++i) {
      if (settings[i].name() != known.name || !Holds(known.replaced, settings[i].value())) continue;
      findings.Warn(ItemPath(list, i) + ".value", known.name + " " + Quoted(settings[i].value()) +
                                                      " is answered by another: " + known.help);
    }
  }
}

// Whether the algorithm is another process, whose settings are its own to judge; true too after
// saying why it may not be asked.
bool IsRemote(const v1::ExperimentSpec& spec, Findings& findings) {
  const auto endpoint = suggestion::RemoteEndpoint(spec);
  if (endpoint.ok()) return !endpoint->empty();
  findings.Error("spec.shirabe.algorithm.endpoint", Message(endpoint.status()));
  return true;
}

// Where Katib's programs keep their checkpoints: mounted in a pod, and on one machine, where trials
// have the same paths, named in each command by the folder of its own trial.
void CheckKatibFolder(const v1::ExperimentSpec& spec, Findings& findings) {
  const auto& settings = spec.algorithm().algorithm_settings();
  for (int i = 0; i < settings.size(); ++i) {
    if (settings[i].name() != trial::kKatibFolderSetting) continue;
    const std::string path = ItemPath("spec.algorithm.algorithmSettings", i) + ".value";
    const Status status = trial::CheckKatibPath(settings[i].value());
    if (!status.ok()) findings.Error(path, Message(status));
    std::string text;
    const std::string folder =
        trial::KatibPath({{trial::kKatibFolderVariable, settings[i].value()}});
    if (!status.ok() || !spec.trial_template().has_trial_spec()) continue;
    if (auto json = MessageToJson(spec.trial_template().trial_spec()); json.ok()) text = *json;
    if (trial::WithKatibFolder(text, folder, "") != text) continue;
    findings.Warn(path, "no command of the trial names " + folder +
                            ": a process of this machine finds its checkpoint only where its "
                            "command, args or env name that folder, as in --checkpoint=" +
                            folder);
  }
}

void CheckAlgorithm(const v1::ExperimentSpec& spec, const std::optional<suggestion::Space>& space,
                    Findings& findings) {
  const std::string path = "spec.algorithm";
  if (findings.IsUnreadable(ChildPath(path, "algorithmName"))) return;
  const v1::AlgorithmSpec& algorithm = spec.algorithm();
  const std::string& name = algorithm.algorithm_name();
  CheckTwice(algorithm.algorithm_settings(), ChildPath(path, "algorithmSettings"), findings);
  CheckKatibFolder(spec, findings);
  if (IsRemote(spec, findings)) return;
  const std::string name_path = ChildPath(path, "algorithmName");
  // No typing mistake: the file is good, and runs where an administrator names a service for it.
  if (const std::string why = WhyNoArchitectures(spec); !why.empty()) {
    return findings.Warn(name_path, why);
  }
  const auto* info = FindVariant<suggestion::AlgorithmInfo>(name, name_path, findings);
  if (info == nullptr) return;
  if (spec.has_nas_config()) {
    findings.Error("spec.nasConfig", "the algorithm " + Quoted(name) +
                                         " does not search architectures: give parameters instead");
  }
  const int errors = findings.errors();
  if (!CheckSettings(*info, algorithm.algorithm_settings(), path, findings)) return;
  WarnOfReplaced(*info, algorithm.algorithm_settings(), path, findings);
  if (!space || findings.errors() > errors || findings.IsUnreadable(path)) return;
  const auto created = suggestion::CreateAlgorithm(name, MakeProblem(spec, *space));
  if (created.ok()) return;
  const std::string message = Message(created.status());
  findings.Error(PathFor(message, algorithm.algorithm_settings(), path), message);
}

void CheckStopper(const v1::ExperimentSpec& spec, Findings& findings) {
  const std::string path = "spec.earlyStopping";
  const v1::EarlyStoppingSpec& stopping = spec.early_stopping();
  if (stopping.algorithm_name().empty()) return;  // the table has said so
  const int errors = findings.errors();
  CheckTwice(stopping.algorithm_settings(), ChildPath(path, "algorithmSettings"), findings);
  const auto* info = FindVariant<suggestion::StopperInfo>(
      stopping.algorithm_name(), ChildPath(path, "algorithmName"), findings);
  if (info == nullptr) return;
  if (!CheckSettings(*info, stopping.algorithm_settings(), path, findings)) return;
  if (findings.errors() > errors) return;
  const auto created = suggestion::CreateStopper(info->name, StopProblemOf(spec));
  if (created.ok()) return;
  const std::string message = Message(created.status());
  findings.Error(PathFor(message, stopping.algorithm_settings(), path), message);
}

void CheckStart(const v1::ExperimentSpec& spec, std::optional<suggestion::Space> space,
                Findings& findings) {
  if (!space) return;
  const auto searched = SearchSpaceOf(spec);  // a rung may lie where no feasibleSpace does
  if (searched.ok()) space = *searched;
  const StartPoints starts(spec);
  for (int i = 0; i < spec.shirabe().start_size() && !findings.full(); ++i) {
    const std::string path = ItemPath("spec.shirabe.start", i);
    const auto values = starts.Read(i);
    const Status status = values.ok() ? space->Encode(*values).status() : values.status();
    if (!status.ok()) findings.Error(path, Message(status));
  }
}

void CheckWarmStartNames(const v1::ShirabeSpec& shirabe, Findings& findings) {
  const auto& experiments = shirabe.warm_start().experiments();
  std::set<std::string> names;
  for (int i = 0; i < experiments.size(); ++i) {
    if (names.insert(experiments[i]).second) continue;
    findings.Error(ItemPath("spec.shirabe.warmStart.experiments", i),
                   Quoted(experiments[i]) + " is given twice: remove one");
  }
}

// Where checkpoints lie in a cluster; on a laptop it makes no difference.
void CheckVolume(const v1::CheckpointPolicy& policy, Findings& findings) {
  if (!policy.has_volume()) return;
  const std::string path = "spec.shirabe.checkpoint.volume";
  const v1::CheckpointVolume& volume = policy.volume();
  const int given = !volume.claim().empty() + !volume.host_path().empty() + !volume.size().empty();
  if (given != 1) {
    findings.Error(path,
                   "give one of claim (all trials share it), size (a claim for each trial) "
                   "and hostPath");
  }
  if (!volume.host_path().empty() && volume.host_path().front() != '/') {
    findings.Error(path + ".hostPath", Quoted(volume.host_path()) + " is not an absolute path");
  }
  if (!volume.storage_class_name().empty() && volume.size().empty()) {
    findings.Error(path + ".storageClassName", "is of claims that are made: give size as well");
  }
}

void CheckPositive(bool given, double value, const std::string& path, Findings& findings) {
  if (given && value == 0) findings.Error(path, "must be greater than 0: leave it out for none");
}

// Whether the algorithm has a model that can say how far the best value may be from the optimum.
void CheckRegret(const v1::ExperimentSpec& spec, const std::optional<suggestion::Space>& space,
                 Findings& findings) {
  const std::string path = "spec.shirabe.stopWhen.regretBelow";
  const std::string instead =
      "use spec.algorithm.algorithmName bayesianoptimization, or stopWhen.noImprovementTrials";
  if (spec.shirabe().has_algorithm()) {
    return findings.Error(path, "a remote algorithm does not say what is left to gain: " + instead);
  }
  const std::string& name = spec.algorithm().algorithm_name();
  const auto* info = Registry<suggestion::AlgorithmInfo>::Get().Find(name);
  if (info == nullptr || !space) return;  // which has been said
  const suggestion::Problem problem = MakeProblem(spec, *space);
  if (info->bounds_regret != nullptr && info->bounds_regret(problem)) return;
  findings.Error(path, "the algorithm " + Quoted(name) +
                           " has no model here that says what is left to gain: " + instead);
}

// Rules that could never end it, or have no effect alone.
void WarnOfStopWhen(const v1::ExperimentSpec& spec, Findings& findings) {
  const v1::StopWhen& stop = spec.shirabe().stop_when();
  const std::string path = "spec.shirabe.stopWhen";
  const bool rules = stop.has_no_improvement_trials() || stop.has_regret_below();
  if (stop.has_min_improvement() && !stop.has_no_improvement_trials()) {
    findings.Warn(path + ".minImprovement", "has no effect without noImprovementTrials");
  }
  if (stop.has_min_trials() && !rules) {
    findings.Warn(path + ".minTrials", "has no effect without noImprovementTrials or regretBelow");
  }
  const auto too_many = [&](const char* field, int32_t trials) {
    if (!spec.has_max_trial_count() || trials < std::max(1, spec.max_trial_count())) return;
    findings.Warn(ChildPath(path, field), std::to_string(trials) +
                                              " is not less than maxTrialCount " +
                                              std::to_string(spec.max_trial_count()) +
                                              ": it will end the experiment first");
  };
  if (rules) too_many("minTrials", stop.min_trials());
  too_many("noImprovementTrials", stop.no_improvement_trials());
}

void CheckStopping(const v1::ExperimentSpec& spec, const std::optional<suggestion::Space>& space,
                   Findings& findings) {
  const v1::SearchLimits& limits = spec.shirabe().limits();
  const v1::StopWhen& stop = spec.shirabe().stop_when();
  CheckPositive(limits.has_experiment_seconds(), limits.experiment_seconds(),
                "spec.shirabe.limits.experimentSeconds", findings);
  CheckPositive(limits.has_trial_seconds(), limits.trial_seconds(),
                "spec.shirabe.limits.trialSeconds", findings);
  CheckPositive(stop.has_regret_below(), stop.regret_below(), "spec.shirabe.stopWhen.regretBelow",
                findings);
  if (stop.has_expected_gain()) {
    findings.Error("spec.shirabe.stopWhen.expectedGain",
                   "this version does not stop by cost yet: use regretBelow or "
                   "noImprovementTrials, and spec.shirabe.budget.maxCost");
  }
  if (stop.has_regret_below()) CheckRegret(spec, space, findings);
  WarnOfStopWhen(spec, findings);
}

}  // namespace

void CheckSearch(const v1::ExperimentSpec& spec, const std::optional<suggestion::Space>& space,
                 Findings& findings) {
  CheckAlgorithm(spec, space, findings);
  if (spec.has_early_stopping()) CheckStopper(spec, findings);
  CheckStart(spec, space, findings);
  CheckWarmStartNames(spec.shirabe(), findings);
  CheckVolume(spec.shirabe().checkpoint(), findings);
  CheckStopping(spec, space, findings);
  CheckArtifacts(spec, findings);
  CheckCode(spec, findings);
}

}  // namespace shirabe::experiment
