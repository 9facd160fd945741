// spec.shirabe.onSuccess: its Job as a template, and its rules, which are those of
// spec.trialTemplate but that it is a Job and need not use every trialParameter.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/validate_rules.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kOnSuccess[] = "spec.shirabe.onSuccess";
constexpr char kJob[] = "spec.shirabe.onSuccess.job";
constexpr int kDefaultBackoffLimit = 6;  // Kubernetes' own
constexpr int kMaxBackoffLimit = 1'000'000;

const Value& FieldIn(const Struct& object, const std::string& name) {
  const Value* found = trial::FindField(object, name);
  return found == nullptr ? Value::default_instance() : *found;
}

const Value& BackoffLimitOf(const Struct& job) {
  return FieldIn(FieldIn(job, "spec").struct_value(), "backoffLimit");
}

std::vector<std::string> ContainersOf(const Struct& job) {
  const Struct& pod = FieldIn(FieldIn(job, "spec").struct_value(), "template").struct_value();
  const Value& list = FieldIn(FieldIn(pod, "spec").struct_value(), "containers");
  std::vector<std::string> names;
  for (const Value& container : list.list_value().values()) {
    names.push_back(FieldIn(container.struct_value(), "name").string_value());
  }
  return names;
}

// A Job, or why not.
bool CheckIsJob(const Struct& job, Findings& findings) {
  const int errors = findings.errors();
  for (const auto& [field, wanted] : {std::pair{"apiVersion", "batch/v1"}, {"kind", "Job"}}) {
    const Value& given = FieldIn(job, field);
    if (given.string_value() == wanted) continue;
    findings.Error(ChildPath(kJob, field),
                   absl::StrCat("must be ", wanted,
                                given.string_value().empty()
                                    ? ""
                                    : absl::StrCat(", not ", Quoted(given.string_value())),
                                ": what follows an experiment is run as a Job"));
  }
  return findings.errors() == errors;
}

void CheckBackoffLimit(const Struct& job, Findings& findings) {
  const Value& limit = BackoffLimitOf(job);
  if (limit.kind_case() == Value::KIND_NOT_SET || limit.has_null_value()) return;
  const double number = limit.number_value();
  if (limit.has_number_value() && number >= 0 && number <= kMaxBackoffLimit &&
      number == std::floor(number)) {
    return;
  }
  const std::string given = limit.has_number_value()   ? FormatNumber(number)
                            : limit.has_string_value() ? Quoted(limit.string_value())
                                                       : "this";
  findings.Error(
      ChildPath(ChildPath(kJob, "spec"), "backoffLimit"),
      absl::StrCat("must be a whole number from 0 to ", kMaxBackoffLimit, ", not ", given));
}

// Whether it is known which container is meant.
bool CheckPrimaryContainer(const v1::OnSuccess& follow_up, Findings& findings) {
  if (!follow_up.primary_container_name().empty()) return true;
  const std::vector<std::string> names = ContainersOf(follow_up.job());
  if (names.size() < 2) return true;  // without any the rules of a template say so
  findings.Error(ChildPath(kOnSuccess, "primaryContainerName"),
                 absl::StrCat("is required, for the Job has several containers: one of ",
                              absl::StrJoin(names, ", ")));
  return false;
}

}  // namespace

std::string AtOnSuccess(const std::string& text) {
  return absl::StrReplaceAll(text, {{trial::kTrialSpecPath, kJob},
                                    {"spec.trialTemplate.primaryContainerName",
                                     absl::StrCat(kOnSuccess, ".primaryContainerName")},
                                    {"trialSpec has no", "the Job has no"},
                                    {"each trial's object gets", "its object gets"}});
}

v1::TrialTemplate OnSuccessTemplate(const v1::ExperimentSpec& spec) {
  const v1::OnSuccess& follow_up = spec.shirabe().on_success();
  v1::TrialTemplate job;
  *job.mutable_trial_spec() = follow_up.job();
  job.set_retain(spec.trial_template().retain());
  job.set_primary_container_name(follow_up.primary_container_name());
  if (job.primary_container_name().empty()) {
    const std::vector<std::string> names = ContainersOf(follow_up.job());
    if (names.size() == 1) job.set_primary_container_name(names[0]);
  }
  const auto used = trial::ReferencedParameters(follow_up.job());
  for (const v1::TrialParameterSpec& bound : spec.trial_template().trial_parameters()) {
    if (std::binary_search(used.begin(), used.end(), bound.name())) {
      *job.add_trial_parameters() = bound;
    }
  }
  SetTemplateDefaults(job);
  return job;
}

int32_t OnSuccessBackoffLimit(const v1::ExperimentSpec& spec) {
  const Value& limit = BackoffLimitOf(spec.shirabe().on_success().job());
  if (!limit.has_number_value()) return kDefaultBackoffLimit;
  return static_cast<int32_t>(
      std::clamp(limit.number_value(), 0.0, static_cast<double>(kMaxBackoffLimit)));
}

void CheckOnSuccess(const v1::ExperimentSpec& spec, Findings& findings) {
  if (!spec.shirabe().has_on_success()) return;
  const v1::OnSuccess& follow_up = spec.shirabe().on_success();
  if (spec.shirabe().ask_and_tell()) {
    return findings.Error(kOnSuccess,
                          "does not go with spec.shirabe.askAndTell, where no programs are run "
                          "here: remove one of the two");
  }
  if (follow_up.job().fields().empty() || findings.IsUnreadable(kJob)) return;
  if (!CheckIsJob(follow_up.job(), findings)) return;
  CheckBackoffLimit(follow_up.job(), findings);
  if (!CheckPrimaryContainer(follow_up, findings)) return;
  v1::ExperimentSpec as_trial = spec;
  *as_trial.mutable_trial_template() = OnSuccessTemplate(spec);
  Findings found;
  CheckTemplate(as_trial, found);
  for (const Finding& finding : found.Sorted()) {
    const std::string path = AtOnSuccess(finding.path);
    if (!absl::StartsWith(path, kOnSuccess)) continue;  // of trials, which are looked at as such
    finding.warning ? findings.Warn(path, AtOnSuccess(finding.message))
                    : findings.Error(path, AtOnSuccess(finding.message));
  }
}

}  // namespace shirabe::experiment
