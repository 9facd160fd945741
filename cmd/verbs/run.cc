// run: submits an experiment, runs it in the foreground, and ends with its result. The same command
// goes on where an earlier one stopped, or shows the result again.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/registry.h"
#include "client/records/enum_words.h"
#include "cmd/artifact_stores.h"
#include "cmd/job_packages.h"
#include "cmd/page_server.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/run_loop.h"
#include "experiment/conditions.h"
#include "experiment/spec/experiment_from_flags.h"
#include "experiment/spec/local_support.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "trial/node_slots.h"
#include "view/best_trial.h"
#include "view/describe_experiment.h"
#include "view/record_rows.h"

namespace shirabe::cmd {
namespace {

struct RunFlags {
  std::string file;
  experiment::FlagsExperimentOptions quick;
  std::optional<int64_t> max_trials;
  std::optional<int64_t> max_failed;
  std::optional<int64_t> parallel;
  std::string algorithm;
  std::string gpus;
  std::string nodes;
  std::string notifications;
  std::string code;
  std::string output = "table";
  PageFlags page;
};

void AddExperimentFlags(Options& options, RunFlags* flags) {
  experiment::FlagsExperimentOptions* quick = &flags->quick;
  options.Texts("-p,--param", &quick->params, "NAME=RANGE",
                "0..1, int:1..10, log:1e-5..1e-1, 0..1:0.1 (step) or a,b,c; may be repeated");
  options.Texts("--minimize", &quick->minimize, "METRIC",
                "a metric to make small; with several objectives the search is for their front");
  options.Texts("--maximize", &quick->maximize, "METRIC", "a metric to make large");
  options.Texts("--constraint", &quick->constraints, "METRIC=RANGE",
                "..16e9, 0.9.. or 1..5: values of a metric that a result must have");
  options.Text("--name", &quick->name, "NAME", "of the experiment (default from the command)");
  options.Text("--algorithm", &flags->algorithm, "NAME[=HOST:PORT]",
               "default auto; see shirabe algorithms. With an address, also with -f, this name is "
               "an algorithm that runs there");
  options.Count("--max-trials", &flags->max_trials, 1, "trials in all (default 12)");
  options.Count("--max-failed", &flags->max_failed, 0,
                "more failed trials than this end the experiment, as failed (default any number)");
  options.Count("--parallel", &flags->parallel, 1, "trials at the same time (default 1)");
  options.Number("--seed", &quick->seed, 0, "of every random choice");
}

// Splits off what follows "--": the command of a trial.
Arguments SplitCommand(Arguments& arguments) {
  const auto cut = std::find(arguments.begin(), arguments.end(), "--");
  if (cut == arguments.end()) return {};
  Arguments command(cut + 1, arguments.end());
  arguments.erase(cut, arguments.end());
  return command;
}

bool HasExperimentFlags(const RunFlags& flags) {
  const experiment::FlagsExperimentOptions& quick = flags.quick;
  return !quick.params.empty() || !quick.minimize.empty() || !quick.maximize.empty() ||
         !quick.constraints.empty() || !quick.name.empty() || !flags.algorithm.empty() ||
         flags.max_trials || flags.max_failed || flags.parallel || quick.seed ||
         !quick.command.empty();
}

StatusOr<v1::Experiment> FromFlags(RunFlags flags, const std::string& ns) {
  if (flags.max_trials) flags.quick.max_trials = *flags.max_trials;
  if (flags.max_failed) flags.quick.max_failed = *flags.max_failed;
  if (flags.parallel) flags.quick.parallel = *flags.parallel;
  if (!flags.algorithm.empty()) flags.quick.algorithm = flags.algorithm;
  flags.quick.ns = ns;
  auto experiment = experiment::ExperimentFromFlags(flags.quick);
  if (!experiment.ok()) return AsUsage(experiment.status());
  for (const experiment::Finding& finding : experiment::Validate(*experiment)) {
    if (finding.warning) Warn(finding.message);
  }
  return experiment;
}

StatusOr<v1::Experiment> MakeExperiment(const RunFlags& flags, const client::StateLocation& place) {
  if (flags.file.empty()) return FromFlags(flags, place.ns);
  ASSIGN_OR_RETURN(v1::Experiment experiment, LoadExperiment(flags.file));
  if (!place.ns_is_default) experiment.mutable_metadata()->set_namespace_(place.ns);
  return experiment;
}

// NAME=HOST:PORT says where an algorithm runs; without a file it also chooses it.
Status UseRemoteAlgorithm(RunFlags& flags) {
  const size_t equals = flags.algorithm.find('=');
  if (equals == std::string::npos) return absl::OkStatus();
  suggestion::RemoteAlgorithmTable table = suggestion::GetRemoteAlgorithms();
  const Status added = suggestion::AddRemoteAlgorithm(flags.algorithm, table);
  if (!added.ok()) return UsageError("--algorithm: " + Message(added));
  flags.algorithm = flags.file.empty() ? flags.algorithm.substr(0, equals) : "";
  return suggestion::SetRemoteAlgorithmTable(std::move(table));
}

Status CheckRunFlags(const RunFlags& flags) {
  if (flags.file.empty() && !HasExperimentFlags(flags)) {
    return UsageError(
        "give -f FILE, or --param, --minimize and a command after --; "
        "see shirabe run --help");
  }
  if (!flags.file.empty() && HasExperimentFlags(flags)) {
    return UsageError(
        "-f FILE says all of it: the other options belong to the form without a "
        "file (edit the file, or use shirabe scale)");
  }
  return absl::OkStatus();
}

// The same command again; what came from stdin is gone.
std::string Again(const Arguments& arguments, const Arguments& command) {
  std::vector<std::string> words = {"shirabe", "run"};
  for (const std::string& word : arguments) words.push_back(view::ShellQuote(word));
  if (!command.empty()) words.push_back("--");
  for (const std::string& word : command) words.push_back(view::ShellQuote(word));
  return absl::StrJoin(words, " ");
}

// What trials get here. A nodes file that leaves the experiment no machine is an error at once, not
// one of each trial.
StatusOr<client::ExecutionOptions> MachinesOfRun(const RunFlags& flags,
                                                 const v1::Experiment& experiment) {
  client::ExecutionOptions machines;
  machines.working_dir = std::filesystem::current_path().string();
  if (!flags.nodes.empty()) {
    ASSIGN_OR_RETURN(machines.pools, LoadNodes(flags.nodes));
    const Status usable =
        trial::NodeSlots(machines.pools).Check({.policy = experiment.spec().shirabe().capacity()});
    RETURN_IF_ERROR(Prefix(flags.nodes, usable));
  }
  machines.devices = ChooseDevices(flags.gpus, &experiment);
  return machines;
}

// The folder that "shirabe run" began an experiment in, in which its trials start for good.
constexpr char kRunFolder[] = "shirabe.dev/run-folder";

void RememberFolder(const std::string& folder, v1::Experiment& experiment) {
  if (Printable(folder) != folder) return;  // a record holds text
  (*experiment.mutable_metadata()->mutable_annotations())[kRunFolder] = folder;
}

// Trials of an experiment that goes on start where the first ones did, wherever the user is now.
Status StayInFolder(const v1::Experiment& experiment, client::ExecutionOptions& machines) {
  const auto& annotations = experiment.metadata().annotations();
  const auto began = annotations.find(kRunFolder);
  if (began == annotations.end() || began->second == machines.working_dir) return absl::OkStatus();
  std::error_code error;
  if (!std::filesystem::is_directory(began->second, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("trials of experiment ", ToString(experiment::KeyOf(experiment)), " start in ",
                     began->second,
                     ", where it was begun, and there is no such folder any more: make it again, "
                     "or give a new experiment another name"));
  }
  ProgressLine(absl::StrCat("trials start in ", began->second, ", where the experiment was begun"));
  machines.working_dir = began->second;
  return absl::OkStatus();
}

// What is right in itself, and does not do here what it seems to.
void WarnOfThisMachine(const v1::Experiment& experiment, const client::ExecutionOptions& machines) {
  for (const experiment::Finding& idle : experiment::FindIneffectiveLocally(experiment)) {
    Warn(absl::StrCat(idle.path, ": ", idle.message));
  }
  const v1::ExperimentSpec& spec = experiment.spec();
  if (spec.shirabe().budget().has_max_cost() && machines.pools.pools().empty()) {
    Warn(
        "spec.shirabe.budget.maxCost keeps nothing here: this machine has no price; give it one "
        "with --nodes FILE");
  }
}

void Announce(const v1::Experiment& experiment, const experiment::Submitted& submitted,
              const client::StateLocation& place) {
  const std::string name = experiment.metadata().name();
  const v1::ExperimentSpec& spec = experiment.spec();
  std::string trials = spec.has_max_trial_count()
                           ? absl::StrCat(spec.max_trial_count(), " trials, ")
                           : std::string();
  if (!submitted.created) {
    trials = absl::StrCat(view::TrialsCell(experiment), " trials have ended, ");
  }
  ProgressLine(absl::StrCat("experiment ", name, submitted.created ? ": " : " goes on: ", trials,
                            spec.parallel_trial_count(), " at the same time, algorithm ",
                            spec.algorithm().algorithm_name(), "; state in ", place.home));
  if (spec.shirabe().ask_and_tell()) {
    ProgressLine(absl::StrCat("nothing is started (spec.shirabe.askAndTell): `shirabe ask ", name,
                              "` gives a trial, `shirabe tell` takes its result"));
  }
}

void PrintBest(const v1::Experiment& experiment, const std::string& output) {
  if (output != "table") return Out(view::BestAs(experiment, output));
  Out(view::BestTable(experiment, true) + "\n" + view::BestArguments(experiment));
}

// A trial to look at where an experiment went wrong: the last one that did.
StatusOr<std::string> Culprit(client::Client& client, const ExperimentKey& key) {
  ASSIGN_OR_RETURN(const auto trials, client.ListTrials({.experiment = key}));
  std::string name;
  for (const v1::Trial& trial : trials) {
    const bool wrong = trial.phase() == v1::TRIAL_FAILED ||
                       trial.phase() == v1::TRIAL_METRICS_UNAVAILABLE ||
                       trial.reason() == "ResultIncomplete";
    if (wrong) name = TrialName({key, trial.number()});
  }
  return name;
}

std::string LogsLine(client::Client& client, const ExperimentKey& key, int64_t number) {
  const auto trial = client.GetTrial({key, number});
  if (!trial.ok() || trial->attempts() == 0) return "";
  return "log of the best trial: " + client.LogLocation({{key, number}, trial->attempts()});
}

// How spec.shirabe.onSuccess ended; false if what it runs has failed.
bool SayFollowUp(const v1::Experiment& experiment) {
  if (!experiment.status().shirabe().has_on_success()) return true;
  ProgressLine("on success: " + view::OnSuccessLine(experiment));
  return experiment.status().shirabe().on_success().phase() != v1::FOLLOW_UP_FAILED;
}

// The result on stdout, how it came about on stderr, and the exit code.
StatusOr<int> Conclude(client::Client& client, const ExperimentKey& key,
                       const std::string& output) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  const v1::Condition condition = experiment::CurrentCondition(experiment);
  const bool succeeded = condition.type() == "Succeeded";
  ProgressLine(absl::StrCat("experiment ", key.name,
                            succeeded ? " has ended: " : " has failed: ", condition.message()));
  const Status has_best = view::CheckHasBest(experiment);
  if (has_best.ok()) {
    PrintBest(experiment, output);
    RETURN_IF_ERROR(FlushOut());
    const std::string recommended = view::RecommendedLine(experiment);
    if (!recommended.empty()) ProgressLine("recommended: " + recommended);
    const std::string logs =
        LogsLine(client, key, experiment.status().current_optimal_trial().number());
    if (!logs.empty()) ProgressLine(logs);
  } else {
    Warn(Message(has_best));
  }
  const std::string culprit = Culprit(client, key).value_or("");
  // Katib calls it a success when all trials have ended, however; a script wants a result.
  const bool followed = SayFollowUp(experiment);
  const bool good = succeeded && has_best.ok() && followed;
  if (!good && !culprit.empty()) {
    ProgressLine("what went wrong: shirabe describe trial " + culprit);
  }
  Hint("all trials: shirabe get trials " + key.name);
  return good ? kOk : kNoSuccess;
}

}  // namespace

StatusOr<int> RunExperiment(const Arguments& given) {
  Arguments arguments = given;
  Globals globals;
  RunFlags flags;
  flags.quick.command = SplitCommand(arguments);
  Options options("run -f FILE | run --param NAME=RANGE… --minimize METRIC -- COMMAND…",
                  "Runs an experiment on this machine until it has ended, and prints its best "
                  "trial. The same command goes on where an earlier one stopped. In the form "
                  "without a file, {lr} in COMMAND stands for the value of parameter lr.");
  options.Text("-f,--file", &flags.file, "FILE", "an Experiment in YAML, or - for stdin");
  AddExperimentFlags(options, &flags);
  options.Text("--gpus", &flags.gpus, "LIST",
               "GPUs for trials that ask for some: 0,1 (default all)");
  options.Text("--nodes", &flags.nodes, "FILE",
               "pools of machines with prices and reclaims to play, in YAML");
  options.Text("--notifications", &flags.notifications, "FILE", kNotificationsHelp);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml", "args", "env"},
               "how to print the best trial");
  AddStores(options, &globals);
  AddCode(options, &flags.code);
  AddPageFlags(options, &flags.page);
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  RETURN_IF_ERROR(CheckPageFlags(flags.page));
  RETURN_IF_ERROR(UseRemoteAlgorithm(flags));
  RETURN_IF_ERROR(CheckRunFlags(flags));
  RETURN_IF_ERROR(UseEndpoints(flags.notifications));
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  ASSIGN_OR_RETURN(v1::Experiment experiment, MakeExperiment(flags, place));
  RETURN_IF_ERROR(experiment::CheckRunnable(experiment));
  ASSIGN_OR_RETURN(client::ExecutionOptions machines, MachinesOfRun(flags, experiment));
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts;
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, /*read_only=*/false));
  client::LocalClient& client = *session.client;
  if (!flags.code.empty()) {
    RETURN_IF_ERROR(UploadCodeFor(experiment, flags.code, client.stores()));
  }
  RETURN_IF_ERROR(FetchPackages(experiment, {}, globals, session.place));
  const ExperimentKey key = experiment::KeyOf(experiment);
  ASSIGN_OR_RETURN(const auto page, RunPage::Start(flags.page, {client, place.home}));
  RememberFolder(machines.working_dir, experiment);
  ASSIGN_OR_RETURN(const experiment::Submitted submitted, client.Submit(experiment, {}));
  ASSIGN_OR_RETURN(experiment, client.GetExperiment(key));
  page->Announce(key);
  if (experiment::NeedsOwner(experiment) || submitted.changed) {
    RETURN_IF_ERROR(StayInFolder(experiment, machines));
    WarnOfThisMachine(experiment, machines);
    Announce(experiment, submitted, place);
    const RunLoopOptions loop{
        .key = key, .machines = machines, .again = Again(arguments, flags.quick.command)};
    ASSIGN_OR_RETURN(const RunEnd end, RunUntilEnd(client, loop, interrupts));
    if (end == RunEnd::kInterrupted) return kInterrupted;
  }
  ASSIGN_OR_RETURN(const int code, Conclude(client, key, flags.output));
  page->StayUntilInterrupted(interrupts);
  return code;
}

SHIRABE_REGISTER(Verb, {.name = "run",
                        .group = VerbGroup::kRun,
                        .summary = "run an experiment here and show its best trial",
                        .run = RunExperiment});

}  // namespace shirabe::cmd
