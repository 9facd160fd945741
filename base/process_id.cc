#include "base/process_id.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"

namespace shirabe {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string BootId() {
  std::string id = ReadFile("/proc/sys/kernel/random/boot_id").value_or("unknown");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

template <class Int>
bool ParseInt(std::string_view text, Int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<ProcessId> FindProcess(pid_t pid) {
  const auto stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  if (!stat.ok()) return std::nullopt;
  // The command, in parentheses, may hold anything: count the fields after the last ')'.
  const size_t close = stat->rfind(')');
  if (close == std::string::npos || close + 2 > stat->size()) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(stat->substr(close + 2), ' ');
  constexpr size_t kState = 0, kStart = 19;
  if (fields.size() <= kStart) return std::nullopt;
  if (fields[kState] == "Z" || fields[kState] == "X") return std::nullopt;
  static const std::string host = HostName(), boot = BootId();
  ProcessId id{host, boot, pid, 0};
  if (!ParseInt(fields[kStart], id.start)) return std::nullopt;
  return id;
}

std::string UserAtHost() {
  std::string buffer(1 << 14, '\0');
  passwd entry;
  passwd* found = nullptr;
  const bool known =
      getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return (known ? std::string(found->pw_name) : std::to_string(geteuid())) + "@" + HostName();
}

// The first answer stays, but for a forked child: leases are held in this name, and a later look
// may fail for want of a file descriptor, or see another start (in QEMU, that of the thread).
ProcessId ThisProcess() {
  const auto look = [] {
    return FindProcess(getpid()).value_or(ProcessId{HostName(), BootId(), getpid(), 0});
  };
  static const ProcessId first = look();
  return first.pid == getpid() ? first : look();
}

absl::Duration AgeOf(uint64_t start) {
  double up = 0;
  const std::string uptime = ReadFile("/proc/uptime").value_or("");
  if (!absl::SimpleAtod(absl::string_view(uptime).substr(0, uptime.find(' ')), &up)) {
    return absl::ZeroDuration();
  }
  static const long ticks = sysconf(_SC_CLK_TCK);
  const absl::Duration started = absl::Seconds(1) * static_cast<int64_t>(start) / ticks;
  return std::max(absl::Seconds(up) - started, absl::ZeroDuration());
}

bool MayBeAlive(const ProcessId& id) {
  const ProcessId self = ThisProcess();
  if (id.host != self.host) return true;
  if (id.boot != self.boot) return false;
  const auto now = FindProcess(id.pid);
  return now && now->start == id.start;
}

std::string ToString(const ProcessId& id) {
  return id.host + ":" + std::to_string(id.pid) + ":" + std::to_string(id.start) + ":" + id.boot;
}

std::optional<ProcessId> ParseProcessId(std::string_view text) {
  const std::vector<std::string> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ':');
  ProcessId id;
  if (parts.size() != 4 || !ParseInt(parts[1], id.pid) || !ParseInt(parts[2], id.start)) {
    return std::nullopt;
  }
  id.host = parts[0];
  id.boot = parts[3];
  return id;
}

}  // namespace shirabe
