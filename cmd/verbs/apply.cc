// apply and create: hand an experiment to the server or controller of the store, and return.
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::cmd {
namespace {

struct ApplyFlags {
  std::vector<std::string> files;
  std::string output = "table";
  bool dry_run = false;
};

// experiment.kubeflow.org/digits created
std::string Line(const ExperimentKey& key, const std::string& what) {
  return "experiment/" + key.name + " " + what + "\n";
}

StatusOr<std::string> SubmitOne(client::Client& client, const v1::Experiment& experiment,
                                bool only_new) {
  const ExperimentKey key = experiment::KeyOf(experiment);
  const auto submitted = client.Submit(experiment, {.absent = only_new});
  if (only_new && absl::IsAlreadyExists(submitted.status()) && client.GetExperiment(key).ok()) {
    return absl::AlreadyExistsError(
        absl::StrCat("experiment ", ToString(key), " exists: shirabe apply changes its counts"));
  }
  RETURN_IF_ERROR(submitted.status());
  return submitted->created ? "created" : submitted->changed ? "changed" : "unchanged";
}

StatusOr<int> ApplyOrCreate(const Arguments& arguments, Options& options, bool only_new) {
  Globals globals;
  ApplyFlags flags;
  options.Texts("-f,--file", &flags.files, "FILE",
                "experiments in YAML, or - for stdin; may be repeated");
  options.Flag("--dry-run", &flags.dry_run, "only check the files");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml", "name"}, "how to print");
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.files.empty()) return UsageError("give -f FILE");
  if (flags.dry_run) {
    for (const std::string& file : flags.files) RETURN_IF_ERROR(LoadExperiments(file).status());
    return 0;
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const auto experiments, LoadFor(session, flags.files));
  std::vector<view::Json> trees;
  for (const v1::Experiment& experiment : experiments) {
    const ExperimentKey key = experiment::KeyOf(experiment);
    ASSIGN_OR_RETURN(const std::string what, SubmitOne(*session.client, experiment, only_new));
    if (flags.output == "table") Out(Line(key, what));
    if (flags.output == "name") Out("experiment/" + key.name + "\n");
    if (flags.output != "json" && flags.output != "yaml") continue;
    ASSIGN_OR_RETURN(const auto stored, session.client->GetExperiment(key));
    trees.push_back(view::ExperimentJson(stored));
  }
  const ListFlags list{.output = flags.output};
  if (WantsTree(list) && trees.size() == 1) PrintTree(list, trees[0]);
  if (WantsTree(list) && trees.size() != 1) PrintTrees(list, trees);
  ASSIGN_OR_RETURN(const std::string holder,
                   session.client->Holder(experiment::KeyOf(experiments[0])));
  if (holder.empty())
    Hint("no process runs it yet: shirabe serve, or shirabe run with the same file");
  return 0;
}

}  // namespace

StatusOr<int> Apply(const Arguments& arguments) {
  Options options("apply -f FILE",
                  "Hands experiments to the server, or to the store of this machine, and returns. "
                  "Of one that exists, the counts and the goal may be changed.");
  return ApplyOrCreate(arguments, options, /*only_new=*/false);
}

StatusOr<int> Create(const Arguments& arguments) {
  Options options("create -f FILE",
                  "Hands new experiments to the server, or to the store of this machine. One that "
                  "exists is an error (exit code 4).");
  return ApplyOrCreate(arguments, options, /*only_new=*/true);
}

SHIRABE_REGISTER(Verb, {.name = "apply",
                        .group = VerbGroup::kSubmit,
                        .summary = "hand an experiment to a server, or change its counts",
                        .run = Apply});

SHIRABE_REGISTER(Verb, {.name = "create",
                        .group = VerbGroup::kSubmit,
                        .summary = "hand a new experiment to a server",
                        .run = Create});

}  // namespace shirabe::cmd
