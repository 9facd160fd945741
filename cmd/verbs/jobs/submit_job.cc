#include "cmd/verbs/jobs/submit_job.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/address.h"
#include "base/printable.h"
#include "cmd/api_server_proxy.h"
#include "cmd/artifact_stores.h"
#include "cmd/job_packages.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/jobs/job_records.h"
#include "cmd/verbs/run_loop.h"
#include "convert/trial_program.h"
#include "experiment/conditions.h"
#include "experiment/spec/local_support.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kLogInterval = absl::Milliseconds(200);

// Where the trials of the job will run, as far as it can be told from here.
enum class Ground { kThisMachine, kOtherMachine, kCluster };

StatusOr<Ground> FindGround(const Globals& globals) {
  ASSIGN_OR_RETURN(const Access access, FindAccessOf(globals));
  if (absl::StartsWith(access.server, kClusterScheme)) return Ground::kCluster;
  if (access.server.empty()) return Ground::kThisMachine;
  std::string address = access.server;
  if (absl::StartsWith(address, "tls://")) address.erase(0, 6);
  return IsLoopback(HostOf(address)) ? Ground::kThisMachine : Ground::kOtherMachine;
}

// KEY=VALUE,…
Status AddLabels(const JobFlags& flags, convert::TrainingJob& job) {
  for (const std::string& text : flags.labels) {
    for (const auto& part : absl::StrSplit(text, ',')) {
      const std::pair<std::string, std::string> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      if (pair.first.empty() || !absl::StrContains(part, "=")) {
        return UsageError("--labels " + Quoted(text) + ": write KEY=VALUE,KEY=VALUE");
      }
      job.labels.push_back(pair);
    }
  }
  return absl::OkStatus();
}

// Of --package-path, whole. The first word of the module is its last part.
StatusOr<std::filesystem::path> PackageFolder(const JobFlags& flags) {
  std::error_code error;
  const std::filesystem::path package =
      std::filesystem::weakly_canonical(flags.package_path, error);
  if (error || !std::filesystem::is_directory(package, error)) {
    return UsageError("--package-path " + Quoted(flags.package_path) +
                      " is no directory: name the folder of a Python package");
  }
  return package;
}

const std::string* ImageOf(const v1::Experiment& experiment) {
  const google::protobuf::Value* value = nullptr;
  const google::protobuf::Struct* at = &experiment.spec().trial_template().trial_spec();
  for (const char* key : {"spec", "template", "spec", "containers"}) {
    const auto found = at->fields().find(key);
    if (found == at->fields().end()) return nullptr;
    value = &found->second;
    at = &value->struct_value();
  }
  if (value->list_value().values_size() == 0) return nullptr;
  const auto& container = value->list_value().values(0).struct_value();
  const auto image = container.fields().find("image");
  return image == container.fields().end() ? nullptr : &image->second.string_value();
}

// Whether packages are fetched, and uploaded as one that has the local one in it.
bool HasPackages(const JobFlags& flags, const v1::Experiment& experiment) {
  return !flags.packages.empty() || !experiment::PackageUrisOf(experiment).empty();
}

// Where a package of this machine can go to for a server elsewhere; null = nowhere.
StatusOr<StoreTablePtr> StoresForPackage(const JobFlags& flags, Ground ground, bool packages) {
  if (ground == Ground::kThisMachine || (flags.package_path.empty() && !packages)) {
    return StoreTablePtr();
  }
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(flags.globals));
  return FindStores(flags.globals, place);
}

// The package alone, as gcloud packs it: its trials find it by its name.
Status UploadPackage(const JobFlags& flags, const StoreTablePtr& stores,
                     v1::Experiment& experiment) {
  ASSIGN_OR_RETURN(const std::filesystem::path package, PackageFolder(flags));
  ASSIGN_OR_RETURN(*experiment.mutable_spec()->mutable_shirabe()->mutable_code(),
                   UploadCode({.folder = package.parent_path().string(),
                               .only = package.filename().string(),
                               .store = "",
                               .prefix = ""},
                              stores, experiment.metadata().namespace_()));
  return absl::OkStatus();
}

// On this machine the package of --package-path is found where it lies.
Status BringPackages(const JobFlags& flags, Ground ground, const StoreTablePtr& stores,
                     v1::Experiment& experiment) {
  if (!HasPackages(flags, experiment)) {
    return stores == nullptr ? absl::OkStatus() : UploadPackage(flags, stores, experiment);
  }
  MorePackages more;
  for (const std::string& text : flags.packages) {
    for (const auto& part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      more.archives.emplace_back(part);
    }
  }
  if (ground != Ground::kThisMachine && !flags.package_path.empty()) {
    ASSIGN_OR_RETURN(more.folder, PackageFolder(flags));
  }
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(flags.globals));
  return FetchPackages(experiment, more, flags.globals, place);
}

// What is elsewhere does not get the files of this machine, but by a store (`stored`); and pods
// need an image in any case.
Status CheckCodeIsThere(const JobFlags& flags, Ground ground, bool stored,
                        const v1::Experiment& experiment) {
  const bool pods = ground == Ground::kCluster;
  if (ground == Ground::kThisMachine || (stored && !pods)) return absl::OkStatus();
  const std::string* image = ImageOf(experiment);
  const std::string where = pods ? "the cluster" : "the server's machine";
  const bool no_image = image == nullptr || *image == convert::kNoImage;
  if (no_image && stored) {
    return absl::FailedPreconditionError(
        "the package comes from a store, and what runs it is missing: name an image that has "
        "Python with --master-image-uri IMAGE (or trainingInput.masterConfig.imageUri)");
  }
  if (no_image) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the code of the job would not be there: no files of this machine are copied to ", where,
        ", but by a store (--stores FILE). Build an image that has ",
        flags.package_path.empty() ? "the module" : Quoted(flags.package_path),
        " in its working directory or PYTHONPATH, and name it with --master-image-uri IMAGE (or "
        "trainingInput.masterConfig.imageUri)"));
  }
  if (!stored && !flags.package_path.empty()) {
    Warn(absl::StrCat("--package-path ", flags.package_path, " is not copied to ", where,
                      " without a store (--stores FILE): the image ", *image, " must have it"));
  }
  return absl::OkStatus();
}

StatusOr<v1::Experiment> MakeJob(const JobFlags& flags, const std::string& name, Ground ground) {
  convert::TrainingJob job{
      .name = name, .fields = flags.fields, .args = flags.user_args, .collector = flags.collector};
  RETURN_IF_ERROR(AddLabels(flags, job));
  std::string shown = "flags";
  if (!flags.config.empty()) {
    ASSIGN_OR_RETURN(TextFile file, ReadTextFile(flags.config));
    job.config = std::move(file.text);
    shown = file.shown_name;
  }
  if (!flags.package_path.empty() && ground == Ground::kThisMachine) {
    ASSIGN_OR_RETURN(const std::filesystem::path package, PackageFolder(flags));
    job.package_parent = package.parent_path().string();
  }
  const SpecFile converted = SpecFileFrom(shown, convert::ConvertTrainingJob(job));
  RETURN_IF_ERROR(ReportFindings(converted));
  for (const auto& [flag, value] : flags.ignored) {
    if (flag != "--staging-bucket") continue;
    Warn(flag + " " + value + ": left out: packages go to a store of the administrator");
  }
  return converted.documents[0].experiment;
}

int CodeOf(const v1::Experiment& experiment) {
  return JobState(experiment) == "SUCCEEDED" ? kOk : kFailure;
}

StatusOr<int> ConcludeJob(client::Client& client, const ExperimentKey& key) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  ProgressLine(absl::StrCat("Job [", key.name, "] ", JobState(experiment), ": ",
                            experiment::CurrentCondition(experiment).message()));
  return CodeOf(experiment);
}

// Runs it in this process, and prints what its trials print.
StatusOr<int> RunJobHere(const JobFlags& flags, const v1::Experiment& made) {
  RETURN_IF_ERROR(experiment::CheckRunnable(made));
  Interrupts interrupts;  // before anything starts a thread
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(flags.globals, /*read_only=*/false));
  v1::Experiment experiment = made;
  experiment.mutable_metadata()->set_namespace_(session.place.ns);
  RETURN_IF_ERROR(BringPackages(flags, Ground::kThisMachine, nullptr, experiment));
  const ExperimentKey key = experiment::KeyOf(experiment);
  RETURN_IF_ERROR(session.client->Submit(experiment, {.absent = true}).status());
  ProgressLine("Job [" + key.name + "] submitted successfully.");
  JobLogs logs(session.client.get(), key, !IsSingleJob(experiment));
  const RunLoopOptions loop{.key = key,
                            .machines = {.devices = ChooseDevices(flags.gpus, &experiment),
                                         .working_dir = std::filesystem::current_path().string()},
                            .again = "shirabe serve",
                            .meanwhile = [&logs] { logs.PrintSometimes(kLogInterval); }};
  ASSIGN_OR_RETURN(const RunEnd end, RunUntilEnd(*session.client, loop, interrupts));
  RETURN_IF_ERROR(logs.Print());
  if (end == RunEnd::kInterrupted) return kInterrupted;
  return ConcludeJob(*session.client, key);
}

StatusOr<int> Follow(client::Client& client, const ExperimentKey& key, absl::Duration interval) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, client.GetExperiment(key));
  JobLogs logs(&client, key, !IsSingleJob(experiment));
  bool warned = false;
  for (;;) {
    const bool ended = experiment::IsEnded(experiment);  // before the last look
    RETURN_IF_ERROR(logs.Print());
    if (ended) return ConcludeJob(client, key);
    const auto holder = client.Holder(key);
    if (holder.ok() && holder->empty() && !std::exchange(warned, true)) {
      Warn("no process runs job " + key.name + " yet: shirabe serve does");
    }
    SleepUninterrupted(interval);
    ASSIGN_OR_RETURN(experiment, client.GetExperiment(key));
  }
}

absl::Duration PollingInterval(const JobFlags& flags) {
  return absl::Seconds(flags.polling_seconds.value_or(1));
}

std::string Program() { return IsPlugin() ? "kubectl ai-platform" : "shirabe ai-platform"; }

}  // namespace

StatusOr<int> SubmitJob(const JobFlags& flags, const std::string& name) {
  RETURN_IF_ERROR(JobKey(name, "default").status());
  ASSIGN_OR_RETURN(const Ground ground, FindGround(flags.globals));
  ASSIGN_OR_RETURN(v1::Experiment experiment, MakeJob(flags, name, ground));
  ASSIGN_OR_RETURN(const StoreTablePtr stores,
                   StoresForPackage(flags, ground, HasPackages(flags, experiment)));
  RETURN_IF_ERROR(CheckCodeIsThere(flags, ground, stores != nullptr, experiment));
  ASSIGN_OR_RETURN(const Access access, FindAccessOf(flags.globals));
  if (access.server.empty() && flags.stream_logs) return RunJobHere(flags, experiment);
  ASSIGN_OR_RETURN(const Session session, OpenSession(flags.globals, /*read_only=*/false));
  experiment.mutable_metadata()->set_namespace_(session.ns);
  RETURN_IF_ERROR(BringPackages(flags, ground, stores, experiment));
  const ExperimentKey key = experiment::KeyOf(experiment);
  RETURN_IF_ERROR(session.client->Submit(experiment, {.absent = true}).status());
  ProgressLine("Job [" + key.name + "] submitted successfully.");
  if (flags.stream_logs) return Follow(*session.client, key, PollingInterval(flags));
  ProgressLine(absl::StrCat("How it gets on: ", Program(), " jobs describe ", key.name,
                            "\nWhat it prints: ", Program(), " jobs stream-logs ", key.name));
  ASSIGN_OR_RETURN(const v1::Experiment stored, session.client->GetExperiment(key));
  Out(absl::StrCat("jobId: ", key.name, "\nstate: ", JobState(stored), "\n"));
  ASSIGN_OR_RETURN(const std::string holder, session.client->Holder(key));
  if (holder.empty() && access.server.empty()) {
    ProgressLine(
        "no process runs it yet: shirabe serve does, or --stream-logs when it is "
        "submitted");
  }
  return kOk;
}

StatusOr<int> StreamJobLogs(const JobFlags& flags, const std::string& name) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(flags.globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, JobKey(name, session.ns));
  return Follow(*session.client, key, PollingInterval(flags));
}

}  // namespace shirabe::cmd
