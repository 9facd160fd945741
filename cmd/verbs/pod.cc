// What our own containers in the pod of a trial run; see sidecar/.
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/log.h"
#include "base/registry.h"
#include "cmd/options.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "sidecar/pod_init.h"
#include "sidecar/sidecar.h"
#include "trial/checkpoint/checkpoint_store.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/file_layout.h"
#include "trial/kubernetes/checkpoint_volume.h"

namespace shirabe::cmd {
namespace {

constexpr int kMaxArguments = 3 + trial::kMaxPrunedAtOnce;

// Blocked before any thread is made, so that they come to this one place.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

// What a deleted experiment has left on the volume: its folder there and nothing else.
Status Clean(const std::vector<std::string>& words, const std::string& root) {
  if (words.size() != 3) return UsageError("pod clean NAMESPACE EXPERIMENT: these two are wanted");
  const ExperimentKey key{words[1], words[2]};
  const trial::FileLayout layout(root + "/home");
  RETURN_IF_ERROR(layout.Remove(key, 0));
  Log(LogLevel::kInfo, "removed an experiment from this volume",
      {{"folder", layout.ExperimentDir(key)}});
  return absl::OkStatus();
}

// Checkpoints that the experiment does not keep, and that no sidecar can reach.
Status Prune(const std::vector<std::string>& words, const std::string& root) {
  if (words.size() < 4) {
    return UsageError("pod prune NAMESPACE EXPERIMENT TRIAL/ATTEMPT/STEP…: these are wanted");
  }
  const trial::FileLayout layout(root + "/home");
  const trial::CheckpointStore store(&layout);
  Status first;
  for (size_t i = 3; i < words.size(); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(words[i], '/');
    v1::Checkpoint checkpoint;
    checkpoint.set_namespace_(words[1]);
    checkpoint.set_experiment(words[2]);
    int64_t trial = 0, step = 0;
    int32_t attempt = 0;
    if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &trial) ||
        !absl::SimpleAtoi(parts[1], &attempt) || !absl::SimpleAtoi(parts[2], &step)) {
      return UsageError("pod prune: \"" + words[i] + "\" is not TRIAL/ATTEMPT/STEP");
    }
    checkpoint.set_trial(trial);
    checkpoint.set_attempt(attempt);
    checkpoint.set_step(step);
    first.Update(Prefix(words[i], store.Prune(checkpoint)));
  }
  Log(LogLevel::kInfo, "deleting unneeded checkpoints",
      {{"experiment", words[1] + "/" + words[2]}});
  return first;
}

// Those that it needs, when it asks for them: nothing is asked of the server yet.
StatusOr<int> RunInit(const sidecar::Pod& pod) {
  sidecar::InitOptions options;
  ASSIGN_OR_RETURN(options.stores, sidecar::OpenStores(pod.config));
  const Status status = sidecar::Init(pod, options);
  if (!absl::IsDataLoss(status)) {
    RETURN_IF_ERROR(status);
    return kOk;
  }
  Log(LogLevel::kError, "the program cannot start", {{"error", Message(status)}});
  return trial::kPodInitInVain;
}

StatusOr<int> RunBeside(const sidecar::Pod& pod) {
  const sigset_t signals = BlockSignals();
  std::stop_source stop;
  std::thread([signals, stop]() mutable {
    int signal = 0;
    sigwait(&signals, &signal);
    stop.request_stop();
  }).detach();  // it waits for ever where no signal comes
  const auto link = sidecar::MakeServerLink(pod.config);
  sidecar::SidecarOptions options;
  options.pod = &pod;
  options.link = link.get();
  options.clock = RealClock();
  auto stores = sidecar::OpenStores(pod.config);
  if (!stores.ok()) {
    Log(LogLevel::kError, "nothing can be copied to the experiment's store",
        {{"error", Message(stores.status())}});
  } else {
    options.stores = *std::move(stores);
  }
  options.print = [](const std::string& line) {
    Out(line);
    FlushOut().IgnoreError();
  };
  sidecar::RunSidecar(options, stop.get_token());
  return kOk;
}

}  // namespace

StatusOr<int> Pod(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string root = trial::kPodRoot;
  Options options(
      "pod folders|init|sidecar|stop|clean|prune",
      "Run by the containers that Shirabe adds to the pod of a trial: folders makes those of the "
      "attempt on the volume, init prepares the pod, sidecar sends what the program writes, stop "
      "tells the sidecar that the pod is about to end. Configured by $SHIRABE_POD. And, in a pod "
      "of its own: clean NAMESPACE EXPERIMENT deletes what a deleted experiment has left on the "
      "mounted volume, and prune NAMESPACE EXPERIMENT TRIAL/ATTEMPT/STEP… checkpoints of it.");
  options.Arguments("folders|init|sidecar|stop|clean|prune", &words, 1, kMaxArguments);
  options.Text("--root", &root, "DIR", "where the pod's volume is mounted");
  ASSIGN_OR_RETURN(const bool done, options.Parse(arguments));
  if (done) return kOk;
  SetLogLevel(LogLevel::kInfo);
  umask(022);  // the program, which may be another user, reads what we write
  if (words[0] == "clean") {
    RETURN_IF_ERROR(Clean(words, root));
    return kOk;
  }
  if (words[0] == "prune") {
    RETURN_IF_ERROR(Prune(words, root));
    return kOk;
  }
  if (words.size() > 1) return UsageError("pod " + words[0] + " takes no further arguments");
  const char* json = std::getenv(trial::kPodVariable);
  ASSIGN_OR_RETURN(sidecar::Pod pod, sidecar::ReadPod(json == nullptr ? "" : json, root));
  pod.katib_folder = std::getenv(trial::kKatibFolderVariable) != nullptr;
  pod.checkpoints = std::getenv(trial::kPodCheckpointsVariable) == nullptr;
  if (words[0] == "sidecar") return RunBeside(pod);
  if (words[0] == "folders") {
    RETURN_IF_ERROR(sidecar::MakeHomeFolders(pod));
    return kOk;
  }
  if (words[0] != "init" && words[0] != "stop") {
    return UsageError("pod: \"" + words[0] +
                      "\" must be folders, init, sidecar, stop, clean or prune");
  }
  if (words[0] == "init") return RunInit(pod);
  RETURN_IF_ERROR(sidecar::SignalStop(pod));
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "pod", .group = VerbGroup::kHidden, .summary = "", .run = Pod});

}  // namespace shirabe::cmd
