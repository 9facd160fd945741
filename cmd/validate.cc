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

}  // namespace

StatusOr<int> Validate(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> files;
  std::vector<std::string> more;
  Options options("validate -f FILE",
                  "Checks experiments without running them, and prints every mistake with its "
                  "place. Exits with 5 if there is one.");
  options.Texts("-f,--file", &files, "FILE", "a file, or - for stdin; may be repeated");
  options.Arguments("FILE", &more, 0, 1000);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  files.insert(files.end(), more.begin(), more.end());
  if (files.empty()) return UsageError("-f FILE is missing; usage: shirabe validate -f FILE");
  Status worst;
  for (const std::string& path : files) {
    const auto file = ReadSpecFile(path);
    const Status status = file.ok() ? ReportFindings(*file) : file.status();
    if (status.ok()) PrintValid(*file);
    if (status.ok()) continue;
    if (!worst.ok()) PrintError(worst);
    worst = status;
  }
  RETURN_IF_ERROR(worst);
  return 0;
}

}  // namespace shirabe::cmd
