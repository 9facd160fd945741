// What a job of AI Platform runs, and on which machines: its image or module with arguments, as the
// container of a Job. A parameter is handed on as --NAME=VALUE after the arguments, as there.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "convert/readers.h"
#include "convert/trial_program.h"

namespace shirabe::convert {
namespace {

constexpr char kSeveralPods[] =
    "a trial is one pod or process here: it is run without; only the program of the master runs";
constexpr char kTrainingInput[] = "AI Platform";
constexpr char kHere[] = "means nothing outside of Google's cloud";

struct Tier {
  const char* name;
  const char* machine;
  bool several;
};

constexpr Tier kTiers[] = {{"BASIC", "standard", false},
                           {"STANDARD_1", "standard", true},
                           {"PREMIUM_1", "complex_model_l", true},
                           {"BASIC_GPU", "standard_gpu", false}};

class ProgramReader {
 public:
  ProgramReader(const Reading& reading, bool single)
      : spec_(*reading.experiment.mutable_spec()),
        reading_(reading),
        report_(reading.report),
        single_(single) {}

  void Run(Fields& input) {
    if (single_) program_.env.emplace_back("CLOUD_ML_JOB_ID", ValueOf("job"));
    if (!reading_.package_parent.empty()) {
      program_.env.emplace_back("PYTHONPATH", Literal(reading_.package_parent));
    }
    ReadProgram(input);
    ReadMachines(input);
    ReadRest(input);
    SetTemplate(program_, spec_);
  }

 private:
  // The container that says so first.
  void ReadImages(Fields& input) {
    std::string from;
    for (const char* key :
         {"masterConfig", "workerConfig", "parameterServerConfig", "evaluatorConfig"}) {
      Fields config = input.Child(key);
      ReadAccelerators(config, std::string(key) == "masterConfig");
      ReadContainer(config);
      const auto image = config.Text("imageUri");
      if (image && from.empty()) {
        from = key;
        program_.image = *image;
        const Target target{absl::StrCat(kContainerPath, ".image"), *image};
        if (from == "masterConfig") report_.Taken(config.At("imageUri"), target);
        if (from != "masterConfig") {
          report_.Changed(config.At("imageUri"), target, "the only image that is named");
        }
      } else if (image) {
        report_.LeftOut(config.At("imageUri"), kSeveralPods);
      }
      config.LeaveOut({"tpuTfVersion", "diskConfig"}, kHere);
      config.Finish(kTrainingInput);
    }
    has_image_ = !from.empty();
    if (!has_image_ && !reading_.options.image.empty()) {
      program_.image = reading_.options.image;
      has_image_ = true;
    }
  }

  void ReadContainer(Fields& config) {
    const auto command = config.Texts("containerCommand");
    const auto args = config.Texts("containerArgs");
    if (!command.empty() && program_.command.empty()) {
      for (const std::string& word : command) program_.command.push_back(Literal(word));
      report_.Taken(config.At("containerCommand"),
                    {absl::StrCat(kContainerPath, ".command"), absl::StrJoin(command, " ")});
    }
    if (!args.empty() && container_args_.empty()) {
      container_args_ = args;
      report_.Taken(config.At("containerArgs"),
                    {absl::StrCat(kContainerPath, ".args"), absl::StrJoin(args, " ")});
    }
  }

  void ReadProgram(Fields& input) {
    ReadImages(input);
    const auto module = input.Text("pythonModule");
    if (module) {
      program_.command = {"python3", "-m", Literal(*module)};
      report_.Taken(input.At("pythonModule"), {absl::StrCat(kContainerPath, ".command"),
                                               absl::StrCat("python3 -m ", *module)});
    }
    if (!module && !has_image_) {
      report_.Error(input.At("pythonModule"),
                    "is missing: which module to run (--module-name), or, in masterConfig.imageUri "
                    "(--master-image-uri), an image with a program of its own");
    }
    std::vector<std::string> args = input.Texts("args");
    if (!args.empty()) {
      report_.Taken(input.At("args"),
                    {absl::StrCat(kContainerPath, ".args"), absl::StrJoin(args, " ")});
    }
    args.insert(args.begin(), container_args_.begin(), container_args_.end());
    for (const std::string& word : args) program_.args.push_back(Literal(word));
    if (!single_) {
      for (const v1::ParameterSpec& parameter : spec_.parameters()) {
        program_.args.push_back(
            absl::StrCat("--", Literal(parameter.name()), "=", ValueOf(parameter.name())));
      }
    }
    ReadJobDir(input);
    ReadPackages(input);
  }

  void ReadJobDir(Fields& input) {
    const auto folder = input.Text("jobDir");
    if (!folder) return;
    std::string value = Literal(*folder);
    if (!single_)
      absl::StrAppend(&value, absl::EndsWith(value, "/") ? "" : "/", "$(CLOUD_ML_TRIAL_ID)");
    program_.args.push_back("--job-dir=" + value);
    const bool remote = absl::StrContains(*folder, "://");
    report_.Changed(input.At("jobDir"),
                    {absl::StrCat(kContainerPath, ".args"), "--job-dir=" + value},
                    remote ? "handed to the program, which reads and writes there with rights of "
                             "its own; nothing is copied there or read from it"
                           : "handed to the program");
  }

  void ReadPackages(Fields& input) {
    if (!has_image_) return TakePackages(input, reading_);
    input.LeaveOut({"packageUris"}, "packages are not fetched: the image must have them");
  }

  void ReadMachines(Fields& input) {
    const auto tier = input.Word(
        "scaleTier", {"BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM"});
    const Place place = input.At("scaleTier");
    if (tier == "BASIC_TPU") report_.LeftOut(place, "there is no machine with a TPU to ask for");
    if (tier == "CUSTOM") report_.Taken(place, {kResources, "as masterType and masterConfig say"});
    for (const Tier& known : kTiers) {
      if (!tier || *tier != known.name) continue;
      SetMachine(place, known.machine, known.several ? kSeveralPods : "");
    }
    if (const auto type = input.Text("masterType")) {
      SetMachine(input.At("masterType"), *type, "");
    }
    input.LeaveOut({"workerType", "workerCount", "parameterServerType", "parameterServerCount",
                    "evaluatorType", "evaluatorCount", "useChiefInTfConfig"},
                   kSeveralPods);
  }

  void SetMachine(const Place& place, const std::string& type, const std::string& more) {
    const auto machine = FindMachineType(type);
    if (!machine) {
      return report_.LeftOut(place, Quoted(type) +
                                        " is no type of machine that is known here: give the "
                                        "container resources of its own");
    }
    program_.cpu = CpuRequest(*machine);
    program_.memory = MemoryRequest(*machine);
    if (machine->gpus > 0) program_.gpus = machine->gpus;
    std::string value = absl::StrCat("cpu ", program_.cpu, ", memory ", program_.memory);
    if (machine->gpus > 0) absl::StrAppend(&value, ", nvidia.com/gpu ", machine->gpus);
    report_.Changed(place, {kResources, value},
                    absl::StrCat("three quarters of a ", type,
                                 ", so that a trial has a node of "
                                 "that size to itself; on one machine nothing is set aside",
                                 more.empty() ? "" : "; ", more));
  }

  void ReadAccelerators(Fields& config, bool master) {
    if (!config.Has("acceleratorConfig")) return;
    const Place place = config.At("acceleratorConfig");
    Fields accelerators = config.Child("acceleratorConfig");
    const auto count = accelerators.Count("count", 0);
    const auto type = accelerators.Text("type");
    accelerators.Finish(kTrainingInput);
    if (!master) return report_.LeftOut(place, kSeveralPods);
    if (type && absl::StartsWith(*type, "TPU")) {
      return report_.LeftOut(place, "there is no TPU to ask for");
    }
    program_.gpus = count.value_or(1);
    report_.Changed(
        accelerators.Has("count") ? accelerators.At("count") : place,
        {absl::StrCat(kResources, ".limits[\"nvidia.com/gpu\"]"), absl::StrCat(program_.gpus)},
        "of any type");
    if (!type || *type == "ACCELERATOR_TYPE_UNSPECIFIED") return;
    report_.LeftOut(accelerators.At("type"),
                    "clusters name types by labels of their own: on GKE set nodeSelector "
                    "cloud.google.com/gke-accelerator");
  }

  void ReadRest(Fields& input) {
    ReadScheduling(input);
    input.LeaveOut({"region"}, "trials run where the cluster, or this machine, stands");
    input.LeaveOut({"runtimeVersion", "pythonVersion"},
                   has_image_ ? "the image decides which versions run"
                              : "python3 of this machine runs it, with the packages that it has");
    input.LeaveOut({"serviceAccount", "network", "encryptionConfig", "enableWebAccess", "projectId",
                    "runMode"},
                   kHere);
  }

  void ReadScheduling(Fields& input) {
    Fields scheduling = input.Child("scheduling");
    if (const auto limit = scheduling.Text("maxRunningTime")) {
      double seconds = 0;
      const Place place = scheduling.At("maxRunningTime");
      if (!absl::EndsWith(*limit, "s") ||
          !absl::SimpleAtod(limit->substr(0, limit->size() - 1), &seconds) || !(seconds > 0)) {
        report_.Error(place, Quoted(*limit) + " is no duration: write seconds, as 7200s");
      } else {
        spec_.mutable_shirabe()->mutable_limits()->set_experiment_seconds(seconds);
        report_.Taken(place, {"spec.shirabe.limits.experimentSeconds", FormatNumber(seconds)});
      }
    }
    scheduling.LeaveOut({"maxWaitTime", "priority"}, "trials wait until there is room for them");
    scheduling.Finish(kTrainingInput);
  }

  static constexpr char kResources[] =
      "spec.trialTemplate.trialSpec.spec.template.spec.containers[0].resources";

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  TrialProgram program_;
  std::vector<std::string> container_args_;
  bool has_image_ = false;
  const bool single_;
};

}  // namespace

void ReadTrainingProgram(const Reading& reading, Fields& input, bool single) {
  ProgramReader(reading, single).Run(input);
}

}  // namespace shirabe::convert
