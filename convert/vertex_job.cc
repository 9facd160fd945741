// What a job of Vertex AI runs: the first of its pools of workers, as the container of a Job.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "convert/readers.h"
#include "convert/trial_program.h"

namespace shirabe::convert {
namespace {

constexpr char kVertexJob[] = "Vertex AI";
constexpr char kGoogleOnly[] = "means nothing outside of Google's cloud";
constexpr char kOnePool[] = "a trial is one pod or process here: only the first pool runs";

class WorkerReader {
 public:
  WorkerReader(const Reading& reading, bool single)
      : spec_(*reading.experiment.mutable_spec()),
        reading_(reading),
        report_(reading.report),
        single_(single) {}

  void Run(Fields& root) {
    if (single_) program_.env.emplace_back("CLOUD_ML_JOB_ID", ValueOf("job"));
    ReadJob(root);
    SetTemplate(program_, spec_);
  }

 private:
  // trialJobSpec, jobSpec, or a config that is one.
  void ReadJob(Fields& root) {
    for (const char* key : {"trialJobSpec", "jobSpec"}) {
      if (root.Find(key) == nullptr) continue;
      Fields job = root.Child(key);
      ReadJobSpec(job);
      job.Finish(kVertexJob);
      return;
    }
    ReadJobSpec(root);
  }

  void ReadJobSpec(Fields& job) {
    std::vector<Fields> pools = job.Items("workerPoolSpecs");
    if (pools.empty()) report_.Error(job.At("workerPoolSpecs"), "is missing: what a trial runs");
    for (size_t i = 0; i < pools.size(); ++i) {
      if (i == 0) ReadPool(pools[i]);
      if (i > 0) report_.LeftOut(pools[i].place(), kOnePool);
    }
    Fields scheduling = job.Child("scheduling");
    if (const auto timeout = scheduling.Text("timeout")) {
      double seconds = 0;
      const bool good = absl::EndsWith(*timeout, "s") &&
                        absl::SimpleAtod(timeout->substr(0, timeout->size() - 1), &seconds) &&
                        seconds > 0;
      if (!good) report_.Error(scheduling.At("timeout"), "must be seconds, as 7200s");
      if (good) spec_.mutable_shirabe()->mutable_limits()->set_trial_seconds(seconds);
      report_.Taken(scheduling.At("timeout"),
                    {"spec.shirabe.limits.trialSeconds", FormatNumber(seconds)});
    }
    if (const auto strategy = scheduling.Text("strategy")) {
      const bool spot = *strategy == "SPOT";
      if (spot) spec_.mutable_shirabe()->mutable_capacity()->set_spot(v1::PREFERRED);
      if (spot)
        report_.Taken(scheduling.At("strategy"), {"spec.shirabe.capacity.spot", "preferred"});
      if (!spot) report_.LeftOut(scheduling.At("strategy"), "machines are as the cluster has them");
    }
    scheduling.LeaveOut({"restartJobOnWorkerRestart", "disableRetries", "maxWaitDuration"},
                        "spec.shirabe.attempts says what is tried again");
    scheduling.Finish(kVertexJob);
    job.LeaveOut(
        {"serviceAccount", "network", "reservedIpRanges", "tensorboard", "enableWebAccess",
         "enableDashboardAccess", "experiment", "experimentRun", "protectedArtifactLocationId",
         "persistentResourceId", "pscInterfaceConfig", "models"},
        kGoogleOnly);
    job.LeaveOut({"baseOutputDirectory"},
                 "a program writes to $SHIRABE_OUTPUT_DIR; nothing is copied to a bucket");
  }

  void ReadPool(Fields& pool) {
    Fields machine = pool.Child("machineSpec");
    const std::string resources = absl::StrCat(kContainerPath, ".resources");
    if (const auto type = machine.Text("machineType")) {
      if (const auto known = FindMachineType(*type)) {
        program_.cpu = CpuRequest(*known);
        program_.memory = MemoryRequest(*known);
        program_.gpus = known->gpus;
        report_.Changed(
            machine.At("machineType"),
            {resources, absl::StrCat("cpu ", program_.cpu, ", memory ", program_.memory)},
            "three quarters of it, so that a trial has such a node to itself");
      } else {
        report_.LeftOut(machine.At("machineType"), "is no type of machine that is known here");
      }
    }
    if (const auto count = machine.Count("acceleratorCount", 0)) {
      program_.gpus = *count;
      report_.Changed(machine.At("acceleratorCount"),
                      {resources + ".limits[\"nvidia.com/gpu\"]", absl::StrCat(*count)},
                      "of any type");
    }
    machine.LeaveOut({"acceleratorType"}, "clusters name types by labels of their own");
    machine.LeaveOut({"tpuTopology", "reservationAffinity"}, kGoogleOnly);
    machine.Finish(kVertexJob);
    if (const auto count = pool.Count("replicaCount", 0)) {
      if (*count > 1) report_.LeftOut(pool.At("replicaCount"), kOnePool);
      if (*count <= 1) report_.Taken(pool.At("replicaCount"), {"spec.trialTemplate", "one pod"});
    }
    pool.LeaveOut({"diskSpec", "nfsMounts"}, "volumes are of the trial's pod, in trialSpec");
    ReadContainerSpec(pool);
    pool.Finish(kVertexJob);
  }

  void ReadContainerSpec(Fields& pool) {
    const bool python = pool.Has("pythonPackageSpec");
    if (python == pool.Has("containerSpec")) {
      report_.Error(pool.place(), "must have one of containerSpec and pythonPackageSpec");
    }
    pool.Find(python ? "containerSpec" : "pythonPackageSpec");
    Fields spec = pool.Child(python ? "pythonPackageSpec" : "containerSpec");
    const std::string image = python ? "executorImageUri" : "imageUri";
    if (const auto uri = spec.Text(image)) {
      program_.image = *uri;
      report_.Taken(spec.At(image), {absl::StrCat(kContainerPath, ".image"), *uri});
    } else if (!reading_.options.image.empty()) {
      program_.image = reading_.options.image;
    }
    std::vector<std::string> command = spec.Texts("command");
    if (!command.empty()) {
      report_.Taken(spec.At("command"), {absl::StrCat(kContainerPath, ".command")});
    }
    if (const auto module = spec.Text("pythonModule")) {
      command = {"python3", "-m", *module};
      report_.Taken(spec.At("pythonModule"), {absl::StrCat(kContainerPath, ".command")});
    }
    for (const std::string& word : command) program_.command.push_back(Literal(word));
    for (const std::string& word : spec.Texts("args")) program_.args.push_back(Literal(word));
    if (spec.Has("args")) report_.Taken(spec.At("args"), {absl::StrCat(kContainerPath, ".args")});
    TakePackages(spec, reading_);
    for (Fields& entry : spec.Items("env")) {
      const auto name = entry.Text("name"), value = entry.Text("value");
      if (name) program_.env.emplace_back(*name, Literal(value.value_or("")));
      report_.Taken(entry.place(), {absl::StrCat(kContainerPath, ".env"), name.value_or("")});
      entry.Finish(kVertexJob);
    }
    spec.Finish(kVertexJob);
    if (single_) return;
    for (const v1::ParameterSpec& parameter : spec_.parameters()) {
      program_.args.push_back(
          absl::StrCat("--", Literal(parameter.name()), "=", ValueOf(parameter.name())));
    }
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  TrialProgram program_;
  const bool single_;
};

}  // namespace

void ReadWorkers(const Reading& reading, Fields& root, bool single) {
  WorkerReader(reading, single).Run(root);
}

}  // namespace shirabe::convert
