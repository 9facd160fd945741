// export: the trials of an experiment for other programs: on stdout, or as a folder.
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "tracking/mlflow_export.h"
#include "tracking/tensorboard_log.h"
#include "view/best_trial.h"
#include "view/csv_export.h"
#include "view/lineage.h"
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

struct ExportFlags {
  std::string output = "csv";
  std::vector<std::string> names;
  std::string to;
  bool lineage = false;
};

bool IsFolderFormat(const std::string& output) {
  return output == "tensorboard" || output == "mlflow";
}

Status CheckExportFlags(const ExportFlags& flags) {
  if (IsFolderFormat(flags.output) && flags.lineage) {
    return UsageError("--lineage is for -o csv and -o jsonl");
  }
  if (!IsFolderFormat(flags.output) && !flags.to.empty()) {
    return UsageError("--to is the folder of -o tensorboard and -o mlflow; " + flags.output +
                      " goes to the standard output");
  }
  return absl::OkStatus();
}

Status ExportTensorboard(client::Client& client, const ExperimentKey& key,
                         const std::string& folder) {
  ASSIGN_OR_RETURN(const auto log, tracking::TensorboardLog::Open({client, key, folder}));
  RETURN_IF_ERROR(log->Update());
  ProgressLine(absl::StrCat(log->trials(), " runs in ", folder, ": tensorboard --logdir ",
                            view::ShellQuote(folder)));
  return absl::OkStatus();
}

Status ExportMlflow(client::Client& client, const ExperimentKey& key, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto exported, tracking::ExportToMlflow({client, key, folder}));
  ProgressLine(absl::StrCat(exported.runs, " runs in ", folder, "/", exported.experiment_id,
                            ": MLFLOW_ALLOW_FILE_STORE=true mlflow server --backend-store-uri ",
                            view::ShellQuote(folder),
                            ", or take them into a database with mlflow migrate-filestore"));
  return absl::OkStatus();
}

Status ExportTo(client::Client& client, const ExperimentKey& key, const ExportFlags& flags) {
  if (flags.output == "tensorboard") {
    return ExportTensorboard(client, key, flags.to.empty() ? key.name + "-runs" : flags.to);
  }
  if (flags.output == "mlflow") {
    return ExportMlflow(client, key, flags.to.empty() ? "mlruns" : flags.to);
  }
  const bool csv = flags.output == "csv";
  if (flags.lineage) return view::EachLineageLine(client, key, csv, Out);
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  return PrintTrials(client, experiment, csv);
}

}  // namespace

StatusOr<int> Export(const Arguments& arguments) {
  Globals globals;
  ExportFlags flags;
  Options options("export EXPERIMENT [-o csv|jsonl|tensorboard|mlflow]",
                  "Prints all trials, one a line, with exact numbers; or writes them as a folder "
                  "for TensorBoard (event files, with HPARAMS) or MLflow (its file store), a run "
                  "for each trial.");
  options.Arguments("EXPERIMENT", &flags.names, 1, 1);
  options.Word("-o,--output", &flags.output, {"csv", "jsonl", "tensorboard", "mlflow"},
               "how to print or write them");
  options.Text("--to", &flags.to, "DIR",
               "of -o tensorboard (default EXPERIMENT-runs) and -o mlflow (default mlruns)");
  options.Flag("--lineage", &flags.lineage,
               "a line for each attempt: its parent, what it resumed from, its steps");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  RETURN_IF_ERROR(CheckExportFlags(flags));
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(flags.names[0], session.ns));
  RETURN_IF_ERROR(ExportTo(*session.client, key, flags));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "export",
                        .group = VerbGroup::kRead,
                        .summary = "all trials as CSV, JSON lines, or for TensorBoard or MLflow",
                        .completes = CompleteExperiments,
                        .outputs = {"csv", "jsonl", "tensorboard", "mlflow"},
                        .run = Export});

}  // namespace shirabe::cmd
