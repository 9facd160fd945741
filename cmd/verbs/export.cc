#include "experiment/conditions.h"
#include "view/csv_export.h"

#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "view/wait_condition.h"

namespace shirabe::cmd {
namespace {

Status PrintTrials(client::Client& client, const v1::Experiment& experiment, bool csv) {
  if (csv) Out(view::CsvHeader(experiment));
  const auto print = [&](const std::vector<v1::Trial>& trials) {
    for (const v1::Trial& trial : trials) {
      Out(csv ? view::CsvLine(experiment, trial) : view::JsonLine(experiment, trial));
    }
    return true;
  };
  return view::EachTrialPage(client, experiment::KeyOf(experiment), print);
}

}  // namespace

StatusOr<int> Export(const Arguments& arguments) {
  Globals globals;
  std::string output = "csv";
  std::vector<std::string> names;
  Options options("export EXPERIMENT [-o csv|jsonl]",
                  "Prints all trials, one a line, with exact numbers.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Word("-o,--output", &output, {"csv", "jsonl"}, "how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  RETURN_IF_ERROR(PrintTrials(*session.client, experiment, output == "csv"));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "export",
                        .group = VerbGroup::kRead,
                        .summary = "all trials as CSV or JSON lines",
                        .completes = CompleteExperiments,
                        .outputs = {"csv", "jsonl"},
                        .run = Export});

}  // namespace shirabe::cmd
