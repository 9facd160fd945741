// apply and create: hand an experiment to the server or controller of the store, and return.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/artifact_stores.h"
#include "cmd/job_packages.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "experiment/spec/local_support.h"
#include "experiment/submission.h"
#include "view/schedule_text.h"

namespace shirabe::cmd {
namespace {

struct ApplyFlags {
  std::vector<std::string> files;
  std::string output = "table";
  bool dry_run = false;
  bool only_new = false;
  std::string from;
  std::string code;
};

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

// schedule/nightly created
StatusOr<std::string> SubmitOne(client::Client& client, const v1::ScheduledExperiment& schedule,
                                bool only_new) {
  v1::SubmitScheduleRequest request;
  *request.mutable_schedule() = schedule;
  request.set_absent(only_new);
  ASSIGN_OR_RETURN(const auto reply, client.Get<v1::SubmitReply>("SubmitSchedule", request));
  return reply.created() ? "created" : reply.changed() ? "changed" : "unchanged";
}

StatusOr<view::Json> StoredTree(client::Client& client, const v1::ScheduledExperiment& schedule) {
  const v1::ObjectMeta& metadata = schedule.metadata();
  ASSIGN_OR_RETURN(const auto stored,
                   client.Get<v1::ScheduledExperiment>(
                       "GetSchedule", ScheduleRef(metadata.name(), metadata.namespace_())));
  return view::ScheduleJson(stored);
}

StatusOr<view::Json> StoredTree(client::Client& client, const v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(const auto stored, client.GetExperiment(experiment::KeyOf(experiment)));
  return view::ExperimentJson(stored);
}

// Of both kinds: hands them over, one after the other, and says so.
template <class Object>
Status SubmitAll(client::Client& client, const std::vector<Object>& objects,
                 const ApplyFlags& flags, std::vector<view::Json>& trees) {
  const bool schedules = std::is_same_v<Object, v1::ScheduledExperiment>;
  for (const Object& object : objects) {
    const std::string name =
        absl::StrCat(schedules ? "schedule/" : "experiment/", object.metadata().name());
    ASSIGN_OR_RETURN(const std::string what, SubmitOne(client, object, flags.only_new));
    if (flags.output == "table") Out(absl::StrCat(name, " ", what, "\n"));
    if (flags.output == "name") Out(name + "\n");
    if (flags.output != "json" && flags.output != "yaml") continue;
    ASSIGN_OR_RETURN(view::Json tree, StoredTree(client, object));
    trees.push_back(std::move(tree));
  }
  return absl::OkStatus();
}

// An experiment of a schedule, at once.
StatusOr<int> CreateFrom(const Globals& globals, const ApplyFlags& flags) {
  if (!flags.files.empty()) return UsageError("give -f FILE or --from schedule/NAME, not both");
  if (!flags.code.empty() || !globals.stores.empty()) {
    return UsageError("--code and --stores go with -f FILE: a schedule's template names its code");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const auto schedule, ScheduleArgument(flags.from, session.ns));
  if (!schedule) return UsageError("--from " + flags.from + ": write schedule/NAME");
  v1::SteerScheduleRequest request;
  *request.mutable_schedule() = *schedule;
  request.set_action(v1::SteerScheduleRequest::START);
  ASSIGN_OR_RETURN(const auto reply,
                   session.client->Get<v1::SteerScheduleReply>("SteerSchedule", request));
  Out(absl::StrCat("experiment/", reply.experiment(), flags.output == "name" ? "" : " created",
                   "\n"));
  return 0;
}

// From here: a server takes no packages.
Status UploadFor(LoadedObjects& objects, const Globals& globals, const std::string& folder) {
  if (objects.experiments.size() != 1 || !objects.schedules.empty()) {
    return UsageError("--code is of one experiment: give each a file of its own");
  }
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  ASSIGN_OR_RETURN(const StoreTablePtr stores, FindStores(globals, place));
  return UploadCodeFor(objects.experiments[0], folder, stores);
}

// What the files have their programs from, where that is not there yet.
Status BringPrograms(LoadedObjects& objects, const Globals& globals, const std::string& folder) {
  const bool names_packages =
      std::any_of(objects.experiments.begin(), objects.experiments.end(),
                  [](const auto& one) { return !experiment::PackageUrisOf(one).empty(); });
  if (!folder.empty()) RETURN_IF_ERROR(UploadFor(objects, globals, folder));
  if (folder.empty() && !names_packages && !globals.stores.empty()) {
    return UsageError(
        "--stores goes with --code DIR, and with files that name packages (packageUris): what runs "
        "the experiment has its own");
  }
  if (!names_packages) return absl::OkStatus();
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  for (v1::Experiment& experiment : objects.experiments) {
    RETURN_IF_ERROR(FetchPackages(experiment, {}, globals, place));
  }
  return absl::OkStatus();
}

StatusOr<int> ApplyOrCreate(const Arguments& arguments, Options& options, bool only_new) {
  Globals globals;
  ApplyFlags flags{.only_new = only_new};
  options.Texts("-f,--file", &flags.files, "FILE",
                "experiments and schedules in YAML, or - for stdin; may be repeated");
  if (only_new) {
    options.Text("--from", &flags.from, "schedule/NAME",
                 "start an experiment of this schedule at once");
  }
  AddCode(options, &flags.code);
  options.Text(
      "--stores", &globals.stores, "FILE",
      "with --code, and for packages that a file of AI Platform names: the administrator's "
      "stores, in YAML (default stores.yaml in $SHIRABE_HOME)");
  options.Flag("--dry-run", &flags.dry_run, "only check the files");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml", "name"}, "how to print");
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (!flags.from.empty()) return CreateFrom(globals, flags);
  if (flags.files.empty()) return UsageError("give -f FILE");
  if (flags.dry_run) {
    RETURN_IF_ERROR(LoadObjects(Session{}, flags.files).status());
    return 0;
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(LoadedObjects objects, LoadObjects(session, flags.files));
  RETURN_IF_ERROR(BringPrograms(objects, globals, flags.code));
  std::vector<view::Json> trees;
  RETURN_IF_ERROR(SubmitAll(*session.client, objects.experiments, flags, trees));
  RETURN_IF_ERROR(SubmitAll(*session.client, objects.schedules, flags, trees));
  const ListFlags list{.output = flags.output};
  if (WantsTree(list) && trees.size() == 1) PrintTree(list, trees[0]);
  if (WantsTree(list) && trees.size() != 1) PrintTrees(list, trees);
  if (!objects.schedules.empty()) {
    Hint("experiments of a schedule are started while a server runs: shirabe serve");
  }
  if (objects.experiments.empty()) return 0;
  ASSIGN_OR_RETURN(const std::string holder,
                   session.client->Holder(experiment::KeyOf(objects.experiments[0])));
  if (holder.empty())
    Hint("no process runs it yet: shirabe serve, or shirabe run with the same file");
  return 0;
}

}  // namespace

StatusOr<int> Apply(const Arguments& arguments) {
  Options options("apply -f FILE",
                  "Hands experiments to the server, or to the store of this machine, and returns. "
                  "Of one that exists, the counts and the goal may be changed; a schedule is "
                  "changed to what the file says.");
  return ApplyOrCreate(arguments, options, /*only_new=*/false);
}

StatusOr<int> Create(const Arguments& arguments) {
  Options options("create -f FILE | --from schedule/NAME",
                  "Hands new experiments to the server, or to the store of this machine. One that "
                  "exists is an error (exit code 4). With --from it starts an experiment of a "
                  "schedule, whatever the time.");
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
