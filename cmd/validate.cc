#include "absl/strings/str_cat.h"
#include "cmd/context.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"

namespace shirabe::cmd {
namespace {

void PrintValid(const SpecFile& file) {
  for (const experiment::ParsedExperiment& document : file.documents) {
    const v1::ExperimentSpec& spec = document.experiment.spec();
    Out(absl::StrCat(file.shown_name, ": experiment ", document.experiment.metadata().name(),
                     " is valid: ", spec.parameters_size(), " parameters, algorithm ",
                     spec.algorithm().algorithm_name(), "\n"));
  }
}

Status ValidateNodesFile(const std::string& path) {
  ASSIGN_OR_RETURN(const v1::NodePools nodes, LoadNodes(path));
  int64_t slots = 0;
  for (const v1::NodePool& pool : nodes.pools()) slots += pool.slots();
  Out(absl::StrCat(path, ": nodes are valid: ", nodes.pools_size(), " pools with ", slots,
                   " slots\n"));
  return absl::OkStatus();
}

Status ValidateSpecFile(const std::string& path) {
  ASSIGN_OR_RETURN(const SpecFile file, ReadSpecFile(path));
  RETURN_IF_ERROR(ReportFindings(file));
  PrintValid(file);
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> Validate(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> files;
  std::vector<std::string> more;
  std::string nodes;
  Options options("validate -f FILE",
                  "Checks experiments without running them, and prints every mistake with its "
                  "place. Exits with 5 if there is one.");
  options.Texts("-f,--file", &files, "FILE", "a file, or - for stdin; may be repeated");
  options.Text("--nodes", &nodes, "FILE", "pools of machines, as for run --nodes");
  options.Arguments("FILE", &more, 0, 1000);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  files.insert(files.end(), more.begin(), more.end());
  if (files.empty() && nodes.empty()) {
    return UsageError("-f FILE is missing; usage: shirabe validate -f FILE");
  }
  Status worst;
  const auto note = [&worst](const Status& status) {
    if (status.ok()) return;
    if (!worst.ok()) PrintError(worst);
    worst = status;
  };
  for (const std::string& path : files) note(ValidateSpecFile(path));
  if (!nodes.empty()) note(ValidateNodesFile(nodes));
  RETURN_IF_ERROR(worst);
  return 0;
}

}  // namespace shirabe::cmd
