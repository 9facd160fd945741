#include "trial/local/supervisor_records.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/open_beneath.h"
#include "base/process_id.h"
#include "base/sha256.h"
#include "base/text/number.h"
#include "trial/local/pidfd.h"

namespace shirabe::trial {
namespace {

constexpr int64_t kMaxRecordBytes = 1 << 16;
constexpr int kSupervisorFailed = 125;  // its exit code if it could not do its work

// The "key value" lines of a record.
class Lines {
 public:
  explicit Lines(std::string_view text) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      const size_t space = line.find(' ');
      if (space != std::string_view::npos) values_[line.substr(0, space)] = line.substr(space + 1);
    }
  }

  std::string Text(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : std::string(found->second);
  }

  template <class Int>
  bool Number(std::string_view key, Int& number) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return false;
    const char* end = found->second.data() + found->second.size();
    const auto result = std::from_chars(found->second.data(), end, number);
    return result.ec == std::errc() && result.ptr == end;
  }

  bool Time(std::string_view key, absl::Time& time) const {
    int64_t nanoseconds = 0;
    if (!Number(key, nanoseconds)) return false;
    time = absl::FromUnixNanos(nanoseconds);
    return true;
  }

 private:
  std::map<std::string_view, std::string_view> values_;
};

Status Unreadable(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " is not a record of a supervisor"));
}

bool IsAlive(const PidRecord& record) {
  const auto process = FindProcess(record.pid);
  return process && process->start == record.start && process->boot == record.boot;
}

// The supervisor's own words stand at the end of the log.
std::string LastWords(const std::string& log) {
  std::string line = TailBeneath("", log, 1);
  for (char& c : line) {
    if (c < ' ' || c > '~') c = '?';
  }
  return line;
}

// How a child of ours ended that left no exit record.
void ExplainByStatus(int status, const std::string& log, AttemptProcess& found) {
  if (WIFSIGNALED(status)) {
    found.message = absl::StrCat("its supervisor was killed by signal ", WTERMSIG(status));
  } else if (WEXITSTATUS(status) == kSupervisorFailed) {
    found.message = "its supervisor could not start it: " + LastWords(log);
  } else {
    // It had no room for its record, yet its own exit code is the command's.
    found.state = AttemptProcess::State::kEnded;
    found.exit.code = WEXITSTATUS(status);
    found.exit.stop_requested = true;                              // for all we know
    found.exit.began = found.exit.ended = absl::InfiniteFuture();  // not seen
  }
}

void SetEnd(absl::Time began, absl::Time ended, v1::Placement& placement) {
  if (!placement.has_start_time()) *placement.mutable_start_time() = ToProto(began);
  *placement.mutable_end_time() = ToProto(std::max(ended, FromProto(placement.start_time())));
}

// A machine that is taken away ends whatever runs there, unless that had ended by itself before.
void SetPlatform(const AttemptProcess& found, AttemptStatus& observed) {
  if (found.reclaim) observed.platform = found.reclaim->cause;
  const bool by_itself = found.state == AttemptProcess::State::kEnded && !found.exit.stop_requested;
  if (by_itself) observed.platform = v1::CAUSE_NONE;
}

void SetExit(const ExitRecord& exit, absl::Time now, AttemptStatus& observed) {
  observed.state = AttemptStatus::State::kExited;
  observed.signal = exit.signal;
  if (exit.signal == 0) observed.exit_code = exit.code;
  observed.out_of_memory = exit.oom;
  observed.ran = exit.ran;
  observed.message = exit.message;
  if (exit.overdue == kJobLimit) observed.overdue = AttemptStatus::Overdue::kJob;
  if (exit.overdue == kPodLimit) observed.overdue = AttemptStatus::Overdue::kPod;
  // Also where the program ended well once it was asked to: it was not done.
  if (!exit.overdue.empty()) observed.platform = v1::APP_ERROR;
  if (exit.oom) observed.message = "killed by the kernel, which had run out of memory";
  SetEnd(std::min(exit.began, now), std::min(exit.ended, now), observed.placement);
}

}  // namespace

StatusOr<PidRecord> ReadPidRecord(const std::string& dir) {
  const std::string path = dir + "/pid";
  ASSIGN_OR_RETURN(const std::string text, ReadBeneath("", path, kMaxRecordBytes));
  const Lines lines(text);
  PidRecord record;
  record.boot = lines.Text("boot");
  record.id = lines.Text("id");
  record.devices = lines.Text("devices");
  record.place = lines.Text("place");
  if (!lines.Number("pid", record.pid) || !lines.Number("start", record.start) ||
      !lines.Time("began", record.began) || record.pid <= 0) {
    return Unreadable(path);
  }
  return record;
}

StatusOr<ExitRecord> ReadExitRecord(const std::string& dir) {
  const std::string path = dir + "/exit";
  ASSIGN_OR_RETURN(const std::string text, ReadBeneath("", path, kMaxRecordBytes));
  const Lines lines(text);
  ExitRecord record;
  record.id = lines.Text("id");
  int oom = 0, killed = 0;
  if (!lines.Number("code", record.code) || !lines.Number("signal", record.signal) ||
      !lines.Number("oom", oom) || !lines.Number("killed", killed) ||
      !lines.Time("began", record.began) || !lines.Time("ended", record.ended)) {
    return Unreadable(path);
  }
  record.oom = oom != 0;
  record.killed = killed != 0;
  // Not in records of older supervisors.
  int told = 0;
  record.stop_requested = killed != 0 || (lines.Number("told", told) && told != 0);
  record.overdue = lines.Text("overdue");
  int64_t ran_ns = 0;
  if (lines.Number("ran", ran_ns)) record.ran = absl::Nanoseconds(ran_ns);
  record.message = lines.Text("message");
  return record;
}

std::string EncodePlacement(const v1::Placement& placement) {
  if (placement.pool().empty()) return "";
  return absl::StrCat(placement.node(), " ", placement.pool(), " ", placement.capacity(), " ",
                      FormatNumber(placement.price_per_hour()), " ",
                      FormatNumber(placement.on_demand_price_per_hour()));
}

void DecodePlacement(const std::string& text, v1::Placement& placement) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  if (words.size() != 5) return;
  placement.set_node(words[0]);
  placement.set_pool(words[1]);
  placement.set_capacity(words[2]);
  placement.set_price_per_hour(ParseNumber(words[3]).value_or(0));
  placement.set_on_demand_price_per_hour(ParseNumber(words[4]).value_or(0));
}

std::string AttemptId(const AttemptKey& key, const std::string& token) {
  // A name has no NUL, so that no two pairs give the same text.
  const std::string text =
      absl::StrCat(key.trial.experiment.ns, "/", AttemptName(key), std::string(1, '\0'), token);
  return HexSha256(text).substr(0, 32);
}

AttemptProcess FindAttemptProcess(const std::string& dir, const std::string& id) {
  AttemptProcess found;
  found.message = "it was never started";
  // A supervisor of a moment ago may not have published itself yet.
  found.leftovers = access(dir.c_str(), F_OK) == 0;
  auto pid = ReadPidRecord(dir);
  if (absl::IsNotFound(pid.status())) return found;
  found.state = AttemptProcess::State::kForeign;
  found.leftovers = false;
  found.message = "its directory belongs to an attempt with another token";
  if (!pid.ok() || pid->id != id) return found;
  found.pid = *std::move(pid);
  found.message.clear();
  if (auto reclaim = ReadReclaimRecord(dir); reclaim.ok() && reclaim->id == id) {
    found.reclaim = *std::move(reclaim);
  }
  // Order matters: the pidfd pins the process that has the number, then we ask which that is; and a
  // supervisor that is seen to be gone has written its exit record before.
  found.pidfd = OpenPidfd(found.pid.pid);
  const bool alive = IsAlive(found.pid);
  auto exit = ReadExitRecord(dir);
  if (exit.ok() && exit->id == id) {
    found.state = AttemptProcess::State::kEnded;
    found.exit = *std::move(exit);
  } else {
    found.state = alive ? AttemptProcess::State::kRunning : AttemptProcess::State::kVanished;
  }
  if (found.state != AttemptProcess::State::kRunning) found.pidfd = Fd();
  if (found.state == AttemptProcess::State::kVanished) {
    found.leftovers = found.pid.boot == ThisProcess().boot;
    found.message = found.leftovers ? "its supervisor is gone and has left no exit record"
                                    : "the machine was restarted while it ran";
  }
  return found;
}

AttemptProcess ReapSupervisor(const EndedSupervisor& supervisor) {
  int status = 0;
  // A child of an earlier executor of this process is ours to bury as well.
  const pid_t reaped = waitpid(supervisor.pid, &status, WNOHANG);
  AttemptProcess found;
  if (reaped == 0) {
    found.state = AttemptProcess::State::kRunning;
    found.pidfd = OpenPidfd(supervisor.pid);
    return found;
  }
  found = FindAttemptProcess(supervisor.dir, supervisor.id);
  if (found.state == AttemptProcess::State::kRunning ||
      found.state == AttemptProcess::State::kEnded)
    return found;
  found.state = AttemptProcess::State::kVanished;
  if (reaped > 0) ExplainByStatus(status, supervisor.log, found);
  // Its number is safely its session's only while no other process can have been given it.
  KillLeftovers(supervisor.id, reaped > 0 ? supervisor.pid : 0);
  return found;
}

void UpdateStatus(const AttemptProcess& found, absl::Time now, AttemptStatus& observed) {
  SetPlatform(found, observed);
  v1::Placement& placement = observed.placement;
  if (found.pid.pid != 0) {
    placement.set_pid(found.pid.pid);
    placement.set_devices(found.pid.devices);
    DecodePlacement(found.pid.place, placement);
  }
  const absl::Time began = found.pid.pid != 0 ? found.pid.began : now;
  switch (found.state) {
    case AttemptProcess::State::kRunning:
      observed.state = AttemptStatus::State::kRunning;
      if (!placement.has_start_time()) *placement.mutable_start_time() = ToProto(began);
      return;
    case AttemptProcess::State::kEnded: return SetExit(found.exit, now, observed);
    case AttemptProcess::State::kNeverStarted:
    case AttemptProcess::State::kForeign:
    case AttemptProcess::State::kVanished:
      observed.state = AttemptStatus::State::kLost;
      observed.message = found.message;
      SetEnd(began, now, placement);
  }
}

}  // namespace shirabe::trial
