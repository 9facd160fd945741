#include "trial/local/launcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/local/pidfd.h"
#include "trial/local/spawn_supervisor.h"
#include "trial/local/trial_environment.h"

namespace shirabe::trial {
namespace {

constexpr int kSpawnTries = 3;

// kAlreadyExists if it is another one's.
StatusOr<AttemptProcess> Find(const std::string& dir, const std::string& id) {
  AttemptProcess found = FindAttemptProcess(dir, id);
  if (found.state == AttemptProcess::State::kForeign)
    return absl::AlreadyExistsError(found.message);
  if (found.state == AttemptProcess::State::kVanished && found.leftovers) KillLeftovers(id, 0);
  return found;
}

// All processes of this machine have the same paths.
void UseKatibFolder(const std::string& path, const std::string& folder, ContainerCommand& command) {
  for (std::string& text : command.argv) text = WithKatibFolder(text, path, folder);
  for (auto& [name, value] : command.env) value = WithKatibFolder(value, path, folder);
}

}  // namespace

Launcher::Launcher(const ExecutorOptions& options)
    : clock_(options.clock), layout_(options.home), inherited_(ParseEnvironment(environ)) {}

StatusOr<AttemptProcess> Launcher::Prepare(const AttemptRequest& request,
                                           const std::string& id) const {
  const StatusOr<bool> made = layout_.Create(request.key);
  // Of this machine and of no experiment, as a full disk is: it waits until the rights are mended.
  if (absl::IsPermissionDenied(made.status()))
    return absl::UnavailableError(Message(made.status()));
  ASSIGN_OR_RETURN(const bool fresh, made);
  if (fresh) return AttemptProcess();
  return Find(layout_.Paths(request.key).dir, id);
}

StatusOr<LaunchPlan> Launcher::Plan(const AttemptRequest& request, const std::string& resume_from,
                                    const Environment& more) const {
  LaunchPlan plan;
  plan.id = AttemptId(request.key, request.token);
  plan.contract = ContractEnvironment(request, layout_.Paths(request.key));
  // Set even where it is empty: a trial within a trial must not resume from the outer one's.
  plan.contract["SHIRABE_RESUME_FROM"] = resume_from;
  for (const auto& [name, value] : more) plan.contract[name] = value;
  ASSIGN_OR_RETURN(plan.command,
                   ReadCommand(request.trial_spec, request.primary_container, plan.contract));
  const std::string path = KatibPath(request.environment);
  if (path.empty()) return plan;
  const std::string folder = KatibFolder(layout_.Paths(request.key));
  plan.contract[kKatibFolderVariable] = folder;
  UseKatibFolder(path, folder, plan.command);
  for (InitCommand& init : plan.command.init) UseKatibFolder(path, folder, init.command);
  return plan;
}

StatusOr<AttemptProcess> Launcher::Launch(const AttemptRequest& request, const LaunchPlan& plan) {
  const AttemptPaths paths = layout_.Paths(request.key);
  const auto code = plan.contract.find(kCodeDirVariable);
  const std::filesystem::path base =
      code == plan.contract.end() ? request.working_dir : code->second;
  RETURN_IF_ERROR(WriteInput(paths.params_file, request.parameters_json));
  const auto log = OpenBeneath(layout_.home(), paths.log, O_WRONLY | O_CREAT | O_APPEND);
  RETURN_IF_ERROR(InItsWay(log.status()));
  SpawnRequest spawn;
  spawn.dir = paths.dir;
  spawn.log = log->get();
  spawn.id = plan.id;
  spawn.working_dir = (base / plan.command.working_dir).string();
  spawn.devices = absl::StrJoin(plan.devices, ",");
  spawn.place = plan.place;
  spawn.grace = request.grace;
  spawn.argv = plan.command.argv;
  const auto environment = [&](const Variables& own) {
    return MergeEnvironment({inherited_, plan.contract, own, plan.devices, plan.id});
  };
  spawn.environment = environment(plan.command.env);
  for (const InitCommand& init : plan.command.init) {
    spawn.steps.push_back({.name = init.name,
                           .working_dir = (base / init.command.working_dir).string(),
                           .argv = init.command.argv,
                           .environment = environment(init.command.env)});
  }
  if (plan.command.limit) {
    spawn.limit = plan.command.limit->time;
    spawn.limit_of = plan.command.limit->of_job ? kJobLimit : kPodLimit;
  }
  const auto pid = Spawn(spawn);
  // An earlier start of ours was faster, which a crash has cut short.
  if (absl::IsAlreadyExists(pid.status())) return Find(paths.dir, plan.id);
  RETURN_IF_ERROR(pid.status());
  AttemptProcess found;
  found.state = AttemptProcess::State::kRunning;
  found.pid.pid = *pid;
  found.pid.devices = spawn.devices;
  found.pid.place = spawn.place;
  found.pid.began = clock_->Now();
  found.pidfd = OpenPidfd(*pid);
  return found;
}

// Another try helps where the program was removed since it was unpacked, and where a
// child of another thread still held the new file open for writing.
StatusOr<pid_t> Launcher::Spawn(SpawnRequest request) {
  StatusOr<pid_t> pid = absl::UnknownError("not tried");
  for (int i = 0; i < kSpawnTries; ++i) {
    ASSIGN_OR_RETURN(request.supervisor, Supervisor(/*again=*/i > 0));
    pid = SpawnSupervisor(request);
    if (!absl::IsNotFound(pid.status()) && !absl::IsUnavailable(pid.status())) break;
  }
  return pid;
}

StatusOr<std::string> Launcher::Supervisor(bool again) {
  const MutexLock lock(mutex_);
  if (again || supervisor_.empty()) {
    ASSIGN_OR_RETURN(supervisor_, UnpackSupervisor(layout_.home()));
  }
  return supervisor_;
}

}  // namespace shirabe::trial
