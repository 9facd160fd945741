#include "cmd/spec_file.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "client/import_batch.h"
#include "cmd/terminal.h"
#include "convert/report.h"
#include "experiment/spec/server_files.h"
#include "notify/endpoints.h"

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

StatusOr<TextFile> ReadTextFile(const std::string& path) {
  StatusOr<std::string> text = path == "-" ? ReadStdin() : ReadFile(path, kMaxBytes);
  RETURN_IF_ERROR(text.status());
  if (path == "-") return TextFile{"<stdin>", *std::move(text), "converted"};
  std::string stem = path.substr(path.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  return TextFile{path, *std::move(text), client::ExperimentNameFrom(stem)};
}

SpecFile SpecFileFrom(const std::string& shown_name, convert::Conversion conversion) {
  SpecFile file{shown_name, {}};
  if (!experiment::HasErrors(conversion.findings)) {
    file.notice =
        absl::StrCat(shown_name, ": converted from ", convert::FormatTitle(conversion.format), ": ",
                     convert::Summary(conversion), " (shirabe convert shows all)");
  }
  experiment::ParsedExperiment& parsed = file.documents.emplace_back();
  parsed.experiment = std::move(conversion.experiment);
  experiment::SetDefaults(parsed.experiment);
  parsed.findings = std::move(conversion.findings);
  for (const convert::Note& note : conversion.notes) {
    if (note.outcome != convert::Outcome::kLeftOut) continue;
    parsed.findings.push_back({.warning = true,
                               .path = note.field,
                               .message = "left out: " + note.remark,
                               .line = note.mark.line,
                               .column = note.mark.column});
  }
  return file;
}

StatusOr<SpecFile> ReadSpecFile(const std::string& path) {
  ASSIGN_OR_RETURN(const TextFile file, ReadTextFile(path));
  auto converted = convert::ConvertIfForeign(file.text, {.name = file.experiment_name});
  if (converted) return SpecFileFrom(file.shown_name, *std::move(converted));
  schedule::ParsedObjects objects = schedule::ParseObjects(file.text);
  return SpecFile{.shown_name = file.shown_name,
                  .documents = std::move(objects.experiments),
                  .schedules = std::move(objects.schedules)};
}

Status ReportFindings(const SpecFile& file) {
  int errors = 0;
  if (!file.notice.empty()) ProgressLine(file.notice);
  for (const experiment::ParsedExperiment& document : file.documents) {
    errors += Print(document.findings, file.shown_name);
  }
  for (const schedule::ParsedSchedule& document : file.schedules) {
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

StatusOr<v1::NodePools> ReadPools(const std::string& text, const std::string& path) {
  experiment::ParsedNodes nodes = experiment::ParseNodes(text, experiment::NoPools::kIsFine);
  // One message, since a controller logs it.
  std::vector<std::string> errors;
  for (const experiment::Finding& finding : nodes.findings) {
    if (!finding.warning) errors.push_back(experiment::FormatFinding(finding, path));
  }
  if (!errors.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors, "; "));
  Print(nodes.findings, path);
  return std::move(nodes.pools);
}

Status UseEndpoints(const std::string& path) {
  if (path.empty()) return notify::SetEndpoints({});
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxBytes));
  experiment::ParsedEndpoints parsed = experiment::ParseEndpoints(text);
  RETURN_IF_ERROR(ErrorsIn(path, Print(parsed.findings, path)));
  return Prefix(path, notify::SetEndpoints(std::move(parsed.endpoints)));
}

StatusOr<std::vector<v1::Experiment>> LoadExperiments(const std::string& path) {
  ASSIGN_OR_RETURN(SpecFile file, ReadSpecFile(path));
  RETURN_IF_ERROR(ReportFindings(file));
  if (!file.schedules.empty()) {
    const std::string& name = file.schedules[0].schedule.metadata().name();
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ScheduledExperiment ", name,
        " is started at its times by a server: start one (shirabe serve) and hand it over ",
        "(shirabe apply -f ", path, "); shirabe create --from schedule/", name,
        " then starts an experiment of it at once"));
  }
  std::vector<v1::Experiment> experiments;
  for (auto& document : file.documents) experiments.push_back(std::move(document.experiment));
  return experiments;
}

StatusOr<LoadedObjects> LoadObjects(const Session& session, const std::vector<std::string>& paths) {
  LoadedObjects all;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(SpecFile file, ReadSpecFile(path));
    RETURN_IF_ERROR(ReportFindings(file));
    for (auto& document : file.documents) {
      if (!session.ns_is_default) {
        document.experiment.mutable_metadata()->set_namespace_(session.ns);
      }
      all.experiments.push_back(std::move(document.experiment));
    }
    for (auto& document : file.schedules) {
      if (!session.ns_is_default) {
        document.schedule.mutable_metadata()->set_namespace_(session.ns);
      }
      all.schedules.push_back(std::move(document.schedule));
    }
  }
  return all;
}

StatusOr<std::vector<v1::Experiment>> LoadFor(const Session& session,
                                              const std::vector<std::string>& paths) {
  std::vector<v1::Experiment> all;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(auto some, LoadExperiments(path));
    for (v1::Experiment& experiment : some) {
      if (!session.ns_is_default) experiment.mutable_metadata()->set_namespace_(session.ns);
      all.push_back(std::move(experiment));
    }
  }
  return all;
}

StatusOr<v1::Experiment> LoadExperiment(const std::string& path) {
  ASSIGN_OR_RETURN(auto experiments, LoadExperiments(path));
  if (experiments.size() == 1) return std::move(experiments[0]);
  return absl::InvalidArgumentError(absl::StrCat(path, " holds ", experiments.size(),
                                                 " experiments: give each a file of its own"));
}

}  // namespace shirabe::cmd
