#include "cmd/spec_file.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/file.h"
#include "base/registry.h"
#include "cmd/terminal.h"
#include "experiment/nodes.h"
#include "metrics/collector.h"
#include "suggestion/algorithm.h"
#include "suggestion/stopper.h"
#include "trial/template.h"

namespace shirabe::cmd {
namespace {

// One byte more than the parser accepts, so that it is the one to refuse.
constexpr int64_t kMaxBytes = (1 << 20) + 1;

StatusOr<std::string> ReadStdin() {
  std::string text(kMaxBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(STDIN_FILENO, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus("cannot read stdin", errno);
    if (got == 0) break;
    size += got;
  }
  text.resize(size);
  return text;
}

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

// Returns how many are errors.
int Print(const std::vector<experiment::Finding>& findings, const std::string& file) {
  int errors = 0;
  for (const experiment::Finding& finding : findings) {
    if (!finding.warning) ++errors;
    if (finding.warning && IsQuiet()) continue;
    PrintFinding(experiment::FormatFinding(finding, file), finding.warning);
  }
  return errors;
}

Status ErrorsIn(const std::string& file, int errors) {
  if (errors == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, " has ", errors, errors == 1 ? " error" : " errors"));
}

}  // namespace

StatusOr<SpecFile> ReadSpecFile(const std::string& path) {
  StatusOr<std::string> text = path == "-" ? ReadStdin() : ReadFile(path, kMaxBytes);
  RETURN_IF_ERROR(text.status());
  return SpecFile{path == "-" ? "<stdin>" : path, experiment::ParseExperiments(*text)};
}

Status ReportFindings(const SpecFile& file) {
  int errors = 0;
  for (const experiment::ParsedExperiment& document : file.documents) {
    errors += Print(document.findings, file.shown_name);
  }
  return ErrorsIn(file.shown_name, errors);
}

StatusOr<v1::NodePools> LoadNodes(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  experiment::ParsedNodes nodes = experiment::ParseNodes(text);
  RETURN_IF_ERROR(ErrorsIn(path, Print(nodes.findings, path)));
  return std::move(nodes.pools);
}

StatusOr<v1::Experiment> LoadExperiment(const std::string& path) {
  ASSIGN_OR_RETURN(SpecFile file, ReadSpecFile(path));
  RETURN_IF_ERROR(ReportFindings(file));
  if (file.documents.size() == 1) return std::move(file.documents[0].experiment);
  return absl::InvalidArgumentError(absl::StrCat(file.shown_name, " holds ", file.documents.size(),
                                                 " experiments: give each a file of its own"));
}

Status CheckRunnable(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  RETURN_IF_ERROR(
      CheckRegistered<suggestion::AlgorithmInfo>("algorithm", spec.algorithm().algorithm_name()));
  if (spec.has_early_stopping()) {
    RETURN_IF_ERROR(CheckRegistered<suggestion::StopperInfo>(
        "early-stopping rule", spec.early_stopping().algorithm_name()));
  }
  const Status collector = metrics::CreateCollector(spec.metrics_collector_spec()).status();
  if (!collector.ok()) return absl::InvalidArgumentError(Message(collector));
  return trial::ReadCommand(spec.trial_template().trial_spec(),
                            spec.trial_template().primary_container_name(), {})
      .status();
}

}  // namespace shirabe::cmd
