// doctor: is everything there that the other verbs need? A line a check, with the fix.
#include <spawn.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/registry.h"
#include "base/text/number.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/doctor.h"
#include "suggestion/accelerator/program_gpu.h"
#include "suggestion/processor_level.h"
#include "trial/local/gpu_pool.h"
#include "view/text_table.h"

extern char** environ;

namespace shirabe::cmd {
namespace {

using State = Check::State;

const char* Word(State state) {
  switch (state) {
    case State::kOk: return "ok";
    case State::kWarning: return "warning";
    default: return "error";
  }
}

// ---- this machine ----------------------------------------------------------------------------

// The nearest folder above that exists: the home is made by the first command that writes.
std::string Existing(const std::string& path) {
  std::filesystem::path folder = path;
  std::error_code error;
  while (!std::filesystem::exists(folder, error) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder.string();
}

Check CheckHome(const client::StateLocation& place) {
  const std::string folder = Existing(place.home);
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return {"home", State::kError, folder + " is not writable",
            "make it so, or set SHIRABE_HOME to a folder that is"};
  }
  return {"home", State::kOk, place.home + (folder == place.home ? "" : " (made when needed)")};
}

Check CheckSpace(const client::StateLocation& place) {
  constexpr int64_t kLittle = int64_t{1} << 30;
  constexpr int64_t kTooLittle = int64_t{64} << 20;
  struct statvfs info;
  const std::string folder = Existing(place.home);
  if (statvfs(folder.c_str(), &info) != 0) {
    return Failed("space", ErrnoStatus("cannot look at " + folder, errno), "");
  }
  const auto free = static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
  const std::string detail = FormatBytes(free) + " free at " + folder;
  if (free >= kLittle) return {"space", State::kOk, detail};
  return {"space", free < kTooLittle ? State::kError : State::kWarning, detail,
          "checkpoints need space: free some, or set SHIRABE_HOME to another disk"};
}

Check CheckDatabase(const client::StateLocation& place) {
  const auto client =
      client::LocalClient::Open({.place = place, .read_only = true, .clock = RealClock()});
  if (!client.ok()) return Failed("database", client.status(), "name another with --db");
  const auto experiments = (*client)->ListExperiments("");
  if (!experiments.ok()) {
    return Failed("database", experiments.status(), "name another with --db");
  }
  const auto revision = (*client)->Revision();
  return {"database", State::kOk,
          absl::StrCat(client::ShownDatabase(place), ": ", experiments->size(),
                       " experiments, revision ", revision.value_or(0))};
}

// Leases and costs are reckoned in the machine's time. A file's time stamp is that of its disk,
// which may be another machine's.
Check CheckClock(const client::StateLocation& place) {
  const absl::Time now = RealClock()->Now();
  if (now < absl::FromCivil(absl::CivilDay(2024, 1, 1), absl::UTCTimeZone())) {
    return {"clock", State::kError, "it is set to " + absl::FormatTime(now), "set it (NTP)"};
  }
  std::string path = Existing(place.home) + "/shirabe-doctor-XXXXXX";
  const Fd file(mkstemp(path.data()));
  if (!file.valid()) return {"clock", State::kOk, absl::FormatTime(now, absl::UTCTimeZone())};
  struct stat info;
  fstat(file.get(), &info);
  unlink(path.c_str());
  const double skew =
      absl::ToDoubleSeconds(absl::TimeFromTimespec(info.st_mtim) - RealClock()->Now());
  if (std::abs(skew) < 2) {
    return {"clock", State::kOk, absl::FormatTime(now, absl::UTCTimeZone())};
  }
  return {"clock", State::kWarning,
          absl::StrCat("the disk of ", place.home, " is ", FormatNumber(std::round(skew)),
                       " s off this machine's clock"),
          "let both follow one NTP server"};
}

Check CheckGpus() {
  const auto devices = trial::DetectDevices(RealClock());
  return {"gpus", State::kOk,
          devices.empty() ? "none: trials that ask for some cannot run here"
                          : absl::StrCat(devices.size(), " for trials")};
}

// What computes suggestions: the processor always can, a GPU where histories are large.
Check CheckEngine() {
  using suggestion::accelerator::GpuReport;
  const GpuReport gpu = suggestion::accelerator::ProbeGpu();
  const std::string here = absl::StrCat("the processor (", suggestion::ProcessorLevel(), ")");
  if (gpu.state == GpuReport::State::kReady) {
    return {"engine", State::kOk,
            absl::StrCat(here, ", and from ", suggestion::AcceleratorThresholds().points,
                         " results on ", gpu.device)};
  }
  const auto setting = suggestion::accelerator::ReadGpuSetting();
  if (!setting.ok()) return Failed("engine", setting.status(), "");
  const std::string detail = absl::StrCat(here, "; no GPU: ", gpu.reason);
  // Which most machines have not; but where one was asked for, it is missed.
  const bool asked = setting->ordinal >= 0 || !setting->folder.empty();
  if (!asked || setting->off) return {"engine", State::kOk, detail};
  return {"engine", State::kWarning, detail,
          "install the package shirabe-cuda and a driver, or unset SHIRABE_GPU and "
          "SHIRABE_GPU_LIBRARY_DIR"};
}

// What the command prints, trimmed; an error if it fails, or takes long.
StatusOr<std::string> OutputOf(const std::string& command) {
  std::string path = "/tmp/shirabe-doctor-XXXXXX";
  const Fd file(mkstemp(path.data()));
  if (!file.valid()) return ErrnoStatus("cannot make a file in /tmp", errno);
  unlink(path.c_str());
  std::string shell = "/bin/sh", flag = "-c", text = "exec timeout 20 " + command;
  char* argv[] = {shell.data(), flag.data(), text.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, file.get(), 2);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoStatus("cannot start /bin/sh", error);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  char out[256];
  const ssize_t got = pread(file.get(), out, sizeof out, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return absl::NotFoundError("it failed");
  return std::string(absl::StripAsciiWhitespace(std::string(out, std::max<ssize_t>(got, 0))));
}

Check CheckPython() {
  const auto version = OutputOf(
      "python3 -c 'import sys, sklearn; print(sys.version.split()[0], \"with scikit-learn\", "
      "sklearn.__version__)'");
  if (version.ok()) return {"python", State::kOk, *version};
  return {"python", State::kWarning, "there is no python3 with scikit-learn",
          "only the examples need it: pip install scikit-learn"};
}

// ---- the server ------------------------------------------------------------------------------

Check CheckConfig(const StatusOr<Access>& access) {
  if (!access.ok()) return Failed("contexts", access.status(), "mend the file");
  const auto path = ContextsPath(client::ProcessEnvironment());
  const auto contexts = path.ok() ? LoadContexts(*path) : Contexts{};
  if (!contexts.ok()) return Failed("contexts", contexts.status(), "mend the file");
  if (contexts->all.empty()) return {"contexts", State::kOk, "none"};
  return {"contexts", State::kOk,
          absl::StrCat(contexts->all.size(), " in ", *path,
                       contexts->current.empty() ? "" : ", current: " + contexts->current)};
}

bool IsSecretKept(const std::string& path) {
  struct stat info;
  return path.empty() || stat(path.c_str(), &info) != 0 || (info.st_mode & 0077) == 0;
}

Check CheckTokenFile(const Access& access) {
  if (IsSecretKept(access.token_file)) return {"token file", State::kOk, access.token_file};
  return {"token file", State::kWarning, "others may read " + access.token_file,
          "chmod 600 " + access.token_file};
}

// It answers, and takes our token.
std::vector<Check> CheckServer(const Globals& globals, const Access& access) {
  std::vector<Check> checks;
  if (!access.token_file.empty()) checks.push_back(CheckTokenFile(access));
  const auto session = OpenSession(globals, /*read_only=*/true);
  if (!session.ok()) {
    checks.push_back(Failed("server", session.status(), "check --server, --token-file and --ca"));
    return checks;
  }
  const absl::Duration began = RealClock()->Monotonic();
  const Status answers = session->client->Revision().status();
  const absl::Duration took = RealClock()->Monotonic() - began;
  if (absl::IsUnavailable(answers) || absl::IsDeadlineExceeded(answers)) {
    checks.push_back(Failed("server", answers, "is it running there (shirabe serve)?"));
    return checks;
  }
  checks.push_back({"server", State::kOk,
                    absl::StrCat(access.server, " answers in ",
                                 absl::FormatDuration(absl::Trunc(took, absl::Microseconds(1))))});
  if (!answers.ok()) {
    checks.push_back(Failed("token", answers, "name the right one: --token-file FILE"));
    return checks;
  }
  const bool all = session->client->ListExperiments("").ok();
  const Status own = session->client->ListExperiments(session->ns).status();
  if (!own.ok()) {
    checks.push_back(Failed("token", own, "use -n with the token's own namespace"));
  } else {
    checks.push_back({"token", State::kOk,
                      all ? "may use every namespace" : "may use namespace " + session->ns});
  }
  return checks;
}

std::vector<Check> CheckAll(const Globals& globals) {
  std::vector<Check> checks;
  const auto access = FindAccessOf(globals);
  const auto place = StateLocationOf(globals);
  if (place.ok()) {
    checks = {CheckHome(*place), CheckSpace(*place), CheckDatabase(*place), CheckClock(*place)};
  } else {
    checks = {Failed("home", place.status(), "set SHIRABE_HOME")};
  }
  checks.push_back(CheckGpus());
  checks.push_back(CheckEngine());
  checks.push_back(CheckPython());
  checks.push_back(CheckConfig(access));
  if (!access.ok() || access->server.empty()) return checks;
  for (Check& check : CheckServer(globals, *access)) checks.push_back(std::move(check));
  return checks;
}

// What others can read, reach or do.
std::vector<Check> CheckSecurity(const Globals& globals) {
  std::vector<Check> checks;
  const auto add = [&](std::vector<Check> more) {
    for (Check& check : more) checks.push_back(std::move(check));
  };
  const auto place = StateLocationOf(globals);
  if (place.ok()) add(CheckFileSecurity(*place));
  if (!place.ok()) add({Failed("home", place.status(), "set SHIRABE_HOME")});
  add(CheckListeners("/proc"));
  const auto access = FindAccessOf(globals);
  add({CheckConfig(access)});
  if (!access.ok() || access->server.empty()) return checks;
  if (!access->token_file.empty()) add({CheckTokenFile(*access)});
  add(CheckServerSecurity(*access));
  return checks;
}

void PrintChecks(const std::vector<Check>& checks) {
  view::Table table({"STATE", "CHECK", "DETAIL"});
  for (const Check& check : checks) {
    const std::string fix = check.fix.empty() ? "" : " (" + check.fix + ")";
    table.Add({Word(check.state), check.name, check.detail + fix});
  }
  Out(table.Render(/*with_header=*/false));
}

view::Json DoctorTree(const Check& check) {
  return {{"check", check.name},
          {"state", Word(check.state)},
          {"detail", check.detail},
          {"fix", check.fix.empty() ? view::Json() : view::Json(check.fix)}};
}

}  // namespace

StatusOr<int> Doctor(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  Options options("doctor",
                  "Looks whether what the other verbs need is there: home, database, clock, GPUs, "
                  "Python, and the server if one is meant. Exits with 1 if something is wrong.");
  bool security = false;
  options.Arguments("nothing", nullptr, 0, 0);
  options.Flag("--security", &security,
               "check what is open instead: files that others can read, listeners without a token");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  const std::vector<Check> checks = security ? CheckSecurity(globals) : CheckAll(globals);
  bool wrong = false;
  std::vector<view::Json> trees;
  for (const Check& check : checks) {
    wrong = wrong || check.state == State::kError;
    trees.push_back(DoctorTree(check));
  }
  if (WantsTree(flags)) PrintTrees(flags, trees);
  if (!WantsTree(flags)) PrintChecks(checks);
  return wrong ? kFailure : kOk;
}

SHIRABE_REGISTER(Verb, {.name = "doctor",
                        .group = VerbGroup::kTools,
                        .summary = "is everything there that the others need?",
                        .run = Doctor});

}  // namespace shirabe::cmd
