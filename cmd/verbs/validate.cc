#include <optional>

#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/spec/local_support.h"

namespace shirabe::cmd {
namespace {

void PrintValid(const SpecFile& file) {
  for (const experiment::ParsedExperiment& document : file.documents) {
    const v1::ExperimentSpec& spec = document.experiment.spec();
    Out(absl::StrCat(file.shown_name, ": experiment ", document.experiment.metadata().name(),
                     " is valid: ", spec.parameters_size(), " parameters, algorithm ",
                     spec.algorithm().algorithm_name(), "\n"));
  }
  for (const schedule::ParsedSchedule& document : file.schedules) {
    Out(absl::StrCat(file.shown_name, ": schedule ", document.schedule.metadata().name(),
                     " is valid: ", document.schedule.spec().schedule(), "\n"));
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

// What only the server knows: whether its trials could run where it runs them.
Status AskServer(Session& session, const SpecFile& file) {
  for (const experiment::ParsedExperiment& document : file.documents) {
    v1::Experiment experiment = document.experiment;
    if (!session.ns_is_default) experiment.mutable_metadata()->set_namespace_(session.ns);
    // What it would refuse has no points either, and nothing is stored.
    const Status fits = session.client->Suggest(experiment, 0).status();
    RETURN_IF_ERROR(Prefix(file.shown_name, fits));
  }
  return absl::OkStatus();
}

// What would be otherwise than in a cluster, if its trials were processes of this machine.
void WarnOfValidated(const SpecFile& file) {
  for (const experiment::ParsedExperiment& document : file.documents) {
    const Status here = experiment::CheckRunnable(document.experiment);
    if (!here.ok()) Warn(absl::StrCat(file.shown_name, " could not run here: ", Message(here)));
    for (const experiment::Finding& idle :
         experiment::FindIneffectiveLocally(document.experiment)) {
      Warn(experiment::FormatFinding(idle, file.shown_name));
    }
  }
}

Status ValidateSpecFile(const std::string& path, Session* session) {
  ASSIGN_OR_RETURN(const SpecFile file, ReadSpecFile(path));
  RETURN_IF_ERROR(ReportFindings(file));
  if (session != nullptr) RETURN_IF_ERROR(AskServer(*session, file));
  if (session == nullptr) WarnOfValidated(file);
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
                  "place. Exits with 5 if there is one. With --server that one is asked, too, "
                  "whether their trials could run in its cluster; without, it is said what "
                  "would do nothing on this machine.");
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
  std::optional<Session> session;
  if (!globals.server.empty()) {
    ASSIGN_OR_RETURN(session, OpenSession(globals, /*read_only=*/true));
  }
  Status worst;
  const auto note = [&worst](const Status& status) {
    if (status.ok()) return;
    if (!worst.ok()) PrintError(worst);
    worst = status;
  };
  for (const std::string& path : files) note(ValidateSpecFile(path, session ? &*session : nullptr));
  if (!nodes.empty()) note(ValidateNodesFile(nodes));
  RETURN_IF_ERROR(worst);
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "validate",
                        .group = VerbGroup::kRun,
                        .summary = "check a file: every mistake with its line and column",
                        .run = Validate});

}  // namespace shirabe::cmd
