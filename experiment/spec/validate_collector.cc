// Rules of spec.metricsCollectorSpec: what each kind of collector needs, and whether the user's
// patterns can find the metrics that are wanted.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/validate_rules.h"
#include "metrics/collector.h"
#include "metrics/metrics_format.h"
#include "proto/shirabe/v1/collector_traits.h"

namespace shirabe::experiment {
namespace {

constexpr const char* kSpec = "spec.metricsCollectorSpec";
constexpr const char* kFile = "spec.metricsCollectorSpec.source.fileSystemPath";
constexpr const char* kHttp = "spec.metricsCollectorSpec.source.httpGet";
constexpr const char* kFilter = "spec.metricsCollectorSpec.source.filter";

const std::string& Name(const v1::MetricsCollectorSpec& spec) {
  return v1::NameOf(spec.collector().kind());
}

void CheckFile(const v1::MetricsCollectorSpec& spec, Findings& findings) {
  const v1::FileSystemPath& file = spec.source().file_system_path();
  if (file.path().empty()) findings.Error(ChildPath(kFile, "path"), "is required");
  if (file.kind() != v1::FILE) {
    findings.Error(ChildPath(kFile, "kind"), "must be File for the collector " + Name(spec));
  }
  if (file.format() == v1::JSON && spec.source().has_filter()) {
    findings.Error(kFilter, "does not go with the format JSON: metrics are found by their names");
  }
}

void CheckDirectory(const v1::MetricsCollectorSpec& spec, Findings& findings) {
  const v1::FileSystemPath& folder = spec.source().file_system_path();
  if (folder.kind() != v1::DIRECTORY) {
    findings.Error(ChildPath(kFile, "kind"), "must be Directory for the collector " + Name(spec));
  }
  if (folder.format() != v1::FILE_FORMAT_UNSPECIFIED) {
    findings.Error(ChildPath(kFile, "format"), "does not go with " + Name(spec) + ": remove it");
  }
}

void CheckHttp(const v1::ExperimentSpec& experiment, Findings& findings) {
  const v1::HttpGetAction& http = experiment.metrics_collector_spec().source().http_get();
  const int parallel = experiment.parallel_trial_count();
  const auto port = http.port().has_string_value() ? ParseNumber(http.port().string_value())
                                                   : std::optional(http.port().number_value());
  if (!port || !(*port >= 1 && *port <= 65535) || *port != static_cast<int>(*port)) {
    findings.Error(ChildPath(kHttp, "port"), "must be a port number from 1 to 65535");
  } else if (parallel > 1) {
    // A pod has an address of its own; the trials of one machine share its.
    findings.Warn(ChildPath(kHttp, "port"),
                  "as processes of one machine the " + std::to_string(parallel) +
                      " trials at a time would all serve port " + FormatNumber(*port) +
                      ", and only one of them is asked: set parallelTrialCount to 1 there");
  }
  if (http.path().empty() || http.path()[0] != '/') {
    findings.Error(ChildPath(kHttp, "path"), "\"" + http.path() + "\" must begin with '/'");
  }
}

void CheckCustomCollector(const v1::MetricsCollectorSpec& spec, Findings& findings) {
  if (!spec.collector().has_custom_collector()) {
    findings.Error(ChildPath(ChildPath(kSpec, "collector"), "customCollector"),
                   "is required for the collector " + Name(spec) + ": the container that collects");
  }
  if (!spec.source().has_file_system_path()) return;
  const v1::FileSystemPath& file = spec.source().file_system_path();
  if (file.path().empty() || file.path()[0] != '/') {
    findings.Error(ChildPath(kFile, "path"), "must be absolute: another container reads it");
  }
  if (file.kind() == v1::FILE_SYSTEM_KIND_UNSPECIFIED) {
    findings.Error(ChildPath(kFile, "kind"), "is required: File or Directory");
  }
}

void CheckKind(const v1::ExperimentSpec& experiment, Findings& findings) {
  const v1::MetricsCollectorSpec& spec = experiment.metrics_collector_spec();
  const v1::CollectorTraits& traits = v1::TraitsOf(spec);
  if (!traits.file().empty()) CheckFile(spec, findings);
  if (!traits.directory().empty()) CheckDirectory(spec, findings);
  if (traits.http()) return CheckHttp(experiment, findings);
  if (traits.container()) return CheckCustomCollector(spec, findings);
  if (!v1::ReadsPath(traits) && spec.source().has_file_system_path()) {
    findings.Warn(kFile, "has no effect with the collector " + Name(spec) +
                             ": set collector.kind to File, or remove it");
  }
}

// The text of the first capturing group; "" if it cannot be told.
std::string FirstGroup(const std::string& pattern) {
  int depth = 0;
  size_t start = std::string::npos;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (in_class) {
      in_class = c != ']' || pattern[i - 1] == '[';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(') {
      const bool captures = pattern.compare(i + 1, 1, "?") != 0;
      if (start == std::string::npos && captures) start = i + 1, depth = 0;
      ++depth;
    } else if (c == ')' && start != std::string::npos && --depth == 0) {
      return pattern.substr(start, i - start);
    }
  }
  return "";
}

// A metric that no pattern's first group can name will never be found.
void CheckMetricNames(const v1::ExperimentSpec& spec, const std::vector<std::string>& patterns,
                      Findings& findings) {
  std::vector<std::unique_ptr<const RE2>> groups;
  for (const std::string& pattern : patterns) {
    const std::string group = FirstGroup(pattern);
    groups.push_back(std::make_unique<const RE2>(group, metrics::PatternOptions()));
    if (group.empty() || !groups.back()->ok()) return;  // it may name any
  }
  for (const std::string& metric : WantedMetrics(spec.objective())) {
    const bool possible = std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
      return RE2::FullMatch(metric, *group);
    });
    if (possible) continue;
    if (findings.full()) return;
    findings.Warn(ChildPath(kFilter, "metricsFormat"),
                  "cannot find the metric \"" + metric + "\": the first group, (" +
                      FirstGroup(patterns.front()) + "), does not match that name");
  }
}

void CheckFilter(const v1::ExperimentSpec& spec, Findings& findings) {
  const auto& formats = spec.metrics_collector_spec().source().filter().metrics_format();
  std::vector<std::string> patterns;
  for (int i = 0; i < formats.size(); ++i) {
    const std::string path = ItemPath(ChildPath(kFilter, "metricsFormat"), i);
    const RE2 regex(formats[i], metrics::PatternOptions());
    if (!regex.ok()) {
      findings.Error(path, "is not a regular expression: " + regex.error());
    } else if (regex.NumberOfCapturingGroups() < 2) {
      findings.Error(path, "needs two groups in parentheses: the metric's name, and its value");
    } else {
      patterns.push_back(formats[i]);
    }
  }
  const bool all = static_cast<int>(patterns.size()) == formats.size();
  if (all && !patterns.empty()) CheckMetricNames(spec, patterns, findings);
}

// What this build's collector itself says about it.
void CheckBuild(const v1::MetricsCollectorSpec& spec, Findings& findings) {
  const std::string path = ChildPath(ChildPath(kSpec, "collector"), "kind");
  const auto& registry = Registry<metrics::CollectorInfo>::Get();
  const std::string& kind = Name(spec);
  const auto* info = registry.Find(kind);
  if (info == nullptr) {
    findings.Warn(path, "this version has no collector " + kind +
                            " and `run` will refuse it; it has " +
                            absl::StrJoin(registry.Names(), ", "));
    return;
  }
  const auto collector = info->create(spec);
  if (!collector.ok()) findings.Error(kSpec, Message(collector.status()));
}

}  // namespace

void CheckCollector(const v1::ExperimentSpec& spec, Findings& findings) {
  const v1::MetricsCollectorSpec& collector = spec.metrics_collector_spec();
  if (findings.IsUnreadable(ChildPath(ChildPath(kSpec, "collector"), "kind"))) return;
  const int errors = findings.errors();
  CheckKind(spec, findings);
  CheckFilter(spec, findings);
  if (findings.errors() == errors && !findings.IsUnreadable(kSpec)) CheckBuild(collector, findings);
}

}  // namespace shirabe::experiment
