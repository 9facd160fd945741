// What our own containers in the pod of a trial run; see sidecar/.
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "base/log.h"
#include "cmd/exit_code.h"
#include "cmd/options.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "sidecar/init.h"
#include "sidecar/sidecar.h"
#include "trial/layout.h"

namespace shirabe::cmd {
namespace {

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
  const trial::Layout layout(root + "/home");
  RETURN_IF_ERROR(layout.Remove(key, 0));
  Log(LogLevel::kInfo, "nothing is left of it on this volume",
      {{"folder", layout.ExperimentDir(key)}});
  return absl::OkStatus();
}

StatusOr<int> RunBeside(const sidecar::Pod& pod) {
  const sigset_t signals = BlockSignals();
  std::stop_source stop;
  std::thread([signals, stop]() mutable {
    int signal = 0;
    sigwait(&signals, &signal);
    stop.request_stop();
  }).detach();  // it waits for ever where no signal comes
  const auto link = sidecar::MakeLink(pod.config);
  sidecar::SidecarOptions options;
  options.pod = &pod;
  options.link = link.get();
  options.clock = RealClock();
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
      "pod init|sidecar|stop|clean",
      "Run by the containers that Shirabe adds to the pod of a trial: init prepares it, "
      "sidecar sends what the program writes, stop tells the sidecar that the pod is "
      "about to end. Configured by $SHIRABE_POD. And, in a pod of its own: clean NAMESPACE "
      "EXPERIMENT deletes what a deleted experiment has left on the mounted volume.");
  options.Arguments("init|sidecar|stop|clean", &words, 1, 3);
  options.Text("--root", &root, "DIR", "where the pod's volume is mounted");
  ASSIGN_OR_RETURN(const bool done, options.Parse(arguments));
  if (done) return kOk;
  SetLogLevel(LogLevel::kInfo);
  umask(022);  // the program, which may be another user, reads what we write
  if (words[0] == "clean") {
    RETURN_IF_ERROR(Clean(words, root));
    return kOk;
  }
  if (words.size() > 1) return UsageError("pod " + words[0] + " takes no more words");
  const char* json = std::getenv(trial::kPodVariable);
  ASSIGN_OR_RETURN(const sidecar::Pod pod, sidecar::ReadPod(json == nullptr ? "" : json, root));
  if (words[0] == "sidecar") return RunBeside(pod);
  if (words[0] != "init" && words[0] != "stop") {
    return UsageError("pod: \"" + words[0] + "\" must be init, sidecar, stop or clean");
  }
  RETURN_IF_ERROR(words[0] == "init" ? sidecar::Init(pod) : sidecar::AnnounceStop(pod));
  return kOk;
}

}  // namespace shirabe::cmd
