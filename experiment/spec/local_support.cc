#include "experiment/spec/local_support.h"

#include <re2/re2.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/registry.h"
#include "base/text/did_you_mean.h"
#include "experiment/spec/parse_spec.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "proto/shirabe/v1/collector_traits.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "trial/local/ineffective_fields.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

// "x" is not in this build; did you mean "y"? It has: a, b.
template <class Info>
Status CheckRegistered(const std::string& what, const std::string& name) {
  const Registry<Info>& registry = Registry<Info>::Get();
  if (registry.Find(name) != nullptr) return absl::OkStatus();
  const std::vector<std::string> names = registry.Names();
  const auto nearest = Nearest(name, names);
  return absl::InvalidArgumentError(
      absl::StrCat(what, " \"", name, "\" is not in this build", nearest ? "; did you mean \"" : "",
                   nearest.value_or(""), nearest ? "\"?" : "",
                   "; it has: ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

// Those that read what a process of this machine leaves: "StdOut, File or …".
std::string CollectorsOfProcesses() {
  std::vector<std::string> names;
  const auto* kinds = v1::CollectorKind_descriptor();
  for (int i = 0; i < kinds->value_count(); ++i) {
    const auto kind = static_cast<v1::CollectorKind>(kinds->value(i)->number());
    const v1::CollectorTraits& traits = v1::TraitsOf(kind);
    if (traits.log() || traits.http() || v1::ReadsPath(traits)) names.push_back(v1::NameOf(kind));
  }
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

// In a cluster every pod has a file system of its own.
void AddSharedPath(const v1::ExperimentSpec& spec, std::vector<Finding>& findings) {
  const v1::MetricsCollectorSpec& collector = spec.metrics_collector_spec();
  const std::string& path = collector.source().file_system_path().path();
  const v1::CollectorTraits& traits = v1::TraitsOf(collector);
  const bool shared = !absl::StrContains(path, "$(SHIRABE_") && !path.empty();
  if (!v1::ReadsPath(traits) || !shared || spec.parallel_trial_count() <= 1) return;
  findings.push_back(
      {.warning = true,
       .path = "spec.metricsCollectorSpec.source.fileSystemPath.path",
       .message = absl::StrCat(path, " is one ", traits.directory().empty() ? "file" : "folder",
                               " for ", spec.parallel_trial_count(),
                               " trials at the same time on this machine, which would count each "
                               "other's values: $(SHIRABE_OUTPUT_DIR)/… is one for each")});
}

}  // namespace

std::string WhyNoArchitectures(const v1::ExperimentSpec& spec) {
  const std::string& name = spec.algorithm().algorithm_name();
  if (name != "enas" && name != "darts") return "";
  return absl::StrCat(
      "\"", name,
      "\" searches architectures (spec.nasConfig), which no algorithm of this build does",
      ": run Katib's own service of it (image docker.io/kubeflowkatib/suggestion-", name,
      ", port 6789) and name that in spec.shirabe.algorithm.endpoint, as HOST:6789");
}

Status CheckVariants(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  // Whatever a remote one is called is known to it.
  ASSIGN_OR_RETURN(const std::string endpoint, suggestion::RemoteEndpoint(spec));
  if (endpoint.empty()) {
    const std::string why = WhyNoArchitectures(spec);
    if (!why.empty()) return InvalidField("spec.algorithm.algorithmName", why);
    RETURN_IF_ERROR(
        CheckRegistered<suggestion::AlgorithmInfo>("algorithm", spec.algorithm().algorithm_name()));
  }
  if (spec.has_early_stopping()) {
    RETURN_IF_ERROR(CheckRegistered<suggestion::StopperInfo>(
        "early-stopping rule", spec.early_stopping().algorithm_name()));
  }
  const Status collector = metrics::CreateCollector(spec.metrics_collector_spec()).status();
  return collector.ok() ? collector : absl::InvalidArgumentError(Message(collector));
}

Status CheckRunnable(const v1::Experiment& experiment) {
  RETURN_IF_ERROR(CheckVariants(experiment));
  const v1::ExperimentSpec& spec = experiment.spec();
  if (spec.shirabe().ask_and_tell()) return absl::OkStatus();
  if (v1::TraitsOf(spec.metrics_collector_spec()).container()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "spec.metricsCollectorSpec.collector.kind: ",
        v1::NameOf(spec.metrics_collector_spec().collector().kind()),
        " collects by a container beside the trial, which a process of this machine has not; use ",
        CollectorsOfProcesses(), ", or Push if the program reports its metrics itself"));
  }
  RETURN_IF_ERROR(trial::ReadCommand(spec.trial_template().trial_spec(),
                                     spec.trial_template().primary_container_name(), {})
                      .status());
  if (!spec.shirabe().has_on_success()) return absl::OkStatus();
  const v1::TrialTemplate job = OnSuccessTemplate(spec);
  const Status readable =
      trial::ReadCommand(job.trial_spec(), job.primary_container_name(), {}).status();
  return readable.ok() ? readable : absl::InvalidArgumentError(AtOnSuccess(Message(readable)));
}

StatusOr<PackageUri> ParsePackageUri(const std::string& uri) {
  static const RE2 form("gs://([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])/([^/,@\\s][^,@\\s]{0,899})");
  PackageUri parsed;
  if (RE2::FullMatch(uri, form, &parsed.bucket, &parsed.object)) return parsed;
  return absl::InvalidArgumentError(
      absl::StrCat(Quoted(Printable(uri.substr(0, 200))),
                   " is no package in a bucket: write gs://BUCKET/OBJECT, without ',', '@' and "
                   "blanks"));
}

std::vector<std::string> PackageUrisOf(const v1::Experiment& experiment) {
  const auto& annotations = experiment.metadata().annotations();
  const auto found = annotations.find(kPackageUris);
  if (found == annotations.end() || experiment.spec().shirabe().has_code()) return {};
  return absl::StrSplit(found->second, ',', absl::SkipEmpty());
}

Status CheckPackagesFetched(const v1::Experiment& experiment) {
  const std::vector<std::string> uris = PackageUrisOf(experiment);
  if (uris.empty()) return absl::OkStatus();
  return InvalidField(
      absl::StrCat("metadata.annotations[\"", kPackageUris, "\"]"),
      absl::StrCat(Quoted(Printable(uris[0])), uris.size() > 1 ? " and others are" : " is",
                   " a package that has not been fetched, and the program would not be there: hand "
                   "it over by shirabe run, apply or create -f FILE --stores STORES, or take the "
                   "annotation out where its image or spec.shirabe.code has the program"));
}

std::vector<Finding> FindIneffectiveLocally(const v1::Experiment& experiment) {
  std::vector<Finding> findings;
  const v1::MetricsCollectorSpec& collector = experiment.spec().metrics_collector_spec();
  if (v1::TraitsOf(collector).container()) {
    findings.push_back({.warning = true,
                        .path = "spec.metricsCollectorSpec.collector.kind",
                        .message = v1::NameOf(collector.collector().kind()) +
                                   " collects by a container beside the trial, which a process of "
                                   "this machine has not: `run` will refuse it; a program that "
                                   "reports its metrics itself needs only Push"});
  }
  AddSharedPath(experiment.spec(), findings);
  const v1::TrialTemplate& trial = experiment.spec().trial_template();
  for (const trial::IneffectiveField& idle :
       trial::FindIneffectiveFields(trial.trial_spec(), trial.primary_container_name())) {
    findings.push_back({.warning = true, .path = idle.path, .message = idle.message});
  }
  if (!experiment.spec().shirabe().has_on_success()) return findings;
  const v1::TrialTemplate job = OnSuccessTemplate(experiment.spec());
  for (const trial::IneffectiveField& idle :
       trial::FindIneffectiveFields(job.trial_spec(), job.primary_container_name())) {
    findings.push_back(
        {.warning = true, .path = AtOnSuccess(idle.path), .message = AtOnSuccess(idle.message)});
  }
  return findings;
}

}  // namespace shirabe::experiment
