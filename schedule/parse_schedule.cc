#include "schedule/parse_schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/yaml_tree.h"
#include "base/timestamp.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"

namespace shirabe::schedule {
namespace {

using experiment::Findings;

constexpr char kApiVersion[] = "kubeflow.org/v1beta1";
constexpr int kDefaultSuccessful = 3;
constexpr int kDefaultFailed = 1;
constexpr int kMaxHistory = 100;
constexpr char kTemplate[] = "spec.experimentTemplate";

bool SaysKind(const YamlNode& root) {
  const YamlNode* kind = root.Find("kind");
  return kind != nullptr && kind->kind == YamlNode::Kind::kString && kind->text == kKind;
}

void CheckHead(const v1::ScheduledExperiment& schedule, Findings& findings) {
  if (!schedule.api_version().empty() && schedule.api_version() != kApiVersion) {
    findings.Error("apiVersion", absl::StrCat("must be ", kApiVersion));
  }
  if (!schedule.kind().empty() && schedule.kind() != kKind) {
    findings.Error("kind", absl::StrCat("must be ", kKind));
  }
  const v1::ObjectMeta& metadata = schedule.metadata();
  const Status ns = ValidateNamespace(metadata.namespace_());
  if (!ns.ok()) findings.Error("metadata.namespace", Message(ns));
  if (metadata.name().empty()) return;  // said already
  if (metadata.name().size() > kMaxScheduleName) {
    findings.Error(
        "metadata.name",
        absl::StrCat("has ", metadata.name().size(), " characters, and at most ", kMaxScheduleName,
                     " are taken: experiments are named after it and ", "their time: shorten it"));
    return;
  }
  const Status name = ValidateExperimentName(metadata.name());
  if (!name.ok()) findings.Error("metadata.name", Message(name));
}

void CheckHistory(const v1::ScheduledExperimentSpec& spec, Findings& findings) {
  const auto most = [&](const char* field, int32_t limit) {
    if (limit <= kMaxHistory) return;
    findings.Error(absl::StrCat("spec.", field),
                   absl::StrCat("must be at most ", kMaxHistory, ", not ", limit, ": lower it"));
  };
  most("successfulExperimentsHistoryLimit", spec.successful_experiments_history_limit());
  most("failedExperimentsHistoryLimit", spec.failed_experiments_history_limit());
  if (spec.warm_start_from_last() && spec.successful_experiments_history_limit() == 0) {
    findings.Error("spec.successfulExperimentsHistoryLimit",
                   "must be at least 1 with warmStartFromLast: the last one that has succeeded is "
                   "learnt from");
  }
}

void CheckTimes(const v1::ScheduledExperimentSpec& spec, Findings& findings) {
  if (spec.schedule().empty()) return;  // said already
  const Status cron = CronSchedule::Parse(spec.schedule(), "").status();
  if (!cron.ok()) return findings.Error("spec.schedule", Message(cron));
  const auto zoned = CronSchedule::Parse(spec.schedule(), spec.time_zone());
  if (!zoned.ok()) return findings.Error("spec.timeZone", Message(zoned.status()));
  if (zoned->NextAfter(absl::FromCivil(absl::CivilYear(2025), absl::UTCTimeZone())) ==
      absl::InfiniteFuture()) {
    findings.Error("spec.schedule", absl::StrCat("\"", spec.schedule(),
                                                 "\" is never due: no such day comes: change its "
                                                 "day of the month or its month"));
  }
}

// By the rules of an experiment, which has a name and a namespace of its own.
void CheckTemplate(const v1::ScheduledExperiment& schedule, Findings& findings) {
  if (!schedule.spec().has_experiment_template() ||
      !schedule.spec().experiment_template().has_spec()) {
    return;  // said already
  }
  v1::Experiment made = ExperimentOf(schedule, "template", absl::UnixEpoch(), "");
  made.mutable_metadata()->set_namespace_("default");  // looked at above
  for (const experiment::Finding& finding : experiment::Validate(made)) {
    std::string path = finding.path;
    if (absl::StartsWith(path, "spec") || absl::StartsWith(path, "metadata")) {
      path = absl::StrCat(kTemplate, ".", path);
    }
    finding.warning ? findings.Warn(path, finding.message) : findings.Error(path, finding.message);
  }
}

// What the table says of all but the template.
void CheckOuterTable(const v1::ScheduledExperiment& schedule, Findings& findings) {
  v1::ScheduledExperiment outer = schedule;
  const bool given = outer.spec().experiment_template().has_spec();
  if (given) outer.mutable_spec()->clear_experiment_template();
  Findings table;
  experiment::CheckTable(outer, "", table);
  for (const experiment::Finding& finding : table.Sorted()) {
    if (given && finding.path == kTemplate) continue;
    findings.Error(finding.path, finding.message);
  }
}

void CheckAll(const v1::ScheduledExperiment& schedule, Findings& findings) {
  v1::Experiment head;  // the texts of its metadata have the bounds of an experiment's
  *head.mutable_metadata() = schedule.metadata();
  if (!experiment::CheckSpecLimits(head, findings)) return;
  CheckOuterTable(schedule, findings);
  CheckHead(schedule, findings);
  if (!schedule.has_spec()) return;
  CheckTimes(schedule.spec(), findings);
  CheckHistory(schedule.spec(), findings);
  CheckTemplate(schedule, findings);
}

ParsedSchedule Read(const YamlDocument& document) {
  ParsedSchedule parsed;
  Findings findings;
  for (const YamlProblem& problem : document.problems) {
    findings.Problem(problem.mark, problem.message);
  }
  if (!document.broken) {
    experiment::Walk(document.root, parsed.schedule, findings);
    SetDefaults(parsed.schedule);
    CheckAll(parsed.schedule, findings);
  }
  parsed.findings = findings.Sorted();
  return parsed;
}

}  // namespace

ParsedObjects ParseObjects(std::string_view text) {
  ParsedObjects objects;
  for (const YamlDocument& document : ParseYaml(text)) {
    if (SaysKind(document.root)) {
      objects.schedules.push_back(Read(document));
    } else {
      objects.experiments.push_back(experiment::ParseDocument(document));
    }
  }
  if (objects.schedules.empty() && objects.experiments.empty()) {
    objects.experiments = experiment::ParseExperiments("");  // it says what is to be written
  }
  return objects;
}

std::vector<ParsedSchedule> ParseSchedules(std::string_view text) {
  std::vector<ParsedSchedule> parsed;
  for (const YamlDocument& document : ParseYaml(text)) {
    if (SaysKind(document.root)) parsed.push_back(Read(document));
  }
  return parsed;
}

void SetDefaults(v1::ScheduledExperiment& schedule) {
  if (schedule.metadata().namespace_().empty()) {
    schedule.mutable_metadata()->set_namespace_("default");
  }
  if (!schedule.has_spec()) return;
  v1::ScheduledExperimentSpec& spec = *schedule.mutable_spec();
  if (spec.concurrency_policy() == v1::CONCURRENCY_POLICY_UNSPECIFIED) {
    spec.set_concurrency_policy(v1::ALLOW);
  }
  if (!spec.has_successful_experiments_history_limit()) {
    spec.set_successful_experiments_history_limit(kDefaultSuccessful);
  }
  if (!spec.has_failed_experiments_history_limit()) {
    spec.set_failed_experiments_history_limit(kDefaultFailed);
  }
}

std::vector<experiment::Finding> Validate(const v1::ScheduledExperiment& schedule) {
  Findings findings;
  CheckAll(schedule, findings);
  return findings.Sorted();
}

ExperimentKey KeyOf(const v1::ScheduledExperiment& schedule) {
  return {schedule.metadata().namespace_(), schedule.metadata().name()};
}

StatusOr<StartRules> RulesOf(const v1::ScheduledExperimentSpec& spec) {
  ASSIGN_OR_RETURN(const CronSchedule cron, CronSchedule::Parse(spec.schedule(), spec.time_zone()));
  StartRules rules{.schedule = cron,
                   .suspend = spec.suspend(),
                   .successful_history_limit = spec.successful_experiments_history_limit(),
                   .failed_history_limit = spec.failed_experiments_history_limit()};
  if (spec.concurrency_policy() == v1::FORBID) rules.concurrency = ConcurrencyPolicy::kForbid;
  if (spec.concurrency_policy() == v1::REPLACE) rules.concurrency = ConcurrencyPolicy::kReplace;
  if (spec.has_starting_deadline_seconds()) {
    rules.starting_deadline = absl::Seconds(spec.starting_deadline_seconds());
  }
  return rules;
}

v1::Experiment ExperimentOf(const v1::ScheduledExperiment& schedule, const std::string& name,
                            absl::Time scheduled, const std::string& last) {
  const v1::ExperimentTemplate& wanted = schedule.spec().experiment_template();
  v1::Experiment made;
  made.set_api_version(kApiVersion);
  made.set_kind("Experiment");
  v1::ObjectMeta& metadata = *made.mutable_metadata();
  metadata.set_name(name);
  metadata.set_namespace_(schedule.metadata().namespace_());
  *metadata.mutable_labels() = wanted.metadata().labels();
  *metadata.mutable_annotations() = wanted.metadata().annotations();
  (*metadata.mutable_labels())[kScheduleLabel] = schedule.metadata().name();
  (*metadata.mutable_annotations())[kScheduledAt] =
      absl::FormatTime(absl::RFC3339_sec, scheduled, absl::UTCTimeZone());
  *made.mutable_spec() = wanted.spec();
  if (!last.empty()) {
    auto& known = *made.mutable_spec()->mutable_shirabe()->mutable_warm_start();
    const auto& names = known.experiments();
    if (std::find(names.begin(), names.end(), last) == names.end()) known.add_experiments(last);
  }
  experiment::SetDefaults(made);
  return made;
}

}  // namespace shirabe::schedule
