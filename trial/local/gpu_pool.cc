#include "trial/local/gpu_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/text/number.h"

namespace shirabe::trial {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr absl::Duration kDetectTimeout = absl::Seconds(5);

// Starts `nvidia-smi -L` with its output in `out`; -1 if it cannot be started, which mostly means
// that there is no NVIDIA driver.
pid_t SpawnListing(int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string name = "nvidia-smi", list = "-L";
  char* argv[] = {name.data(), list.data(), nullptr};
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, name.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

// All that can be read until the end or the deadline; nullopt if the deadline came first.
std::optional<std::string> ReadUntil(int fd, Clock* clock, absl::Duration deadline) {
  std::string text;
  for (;;) {
    const absl::Duration left = deadline - clock->Monotonic();
    pollfd waiting = {fd, POLLIN, 0};
    const int timeout_ms = static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(left)));
    const int ready = poll(&waiting, 1, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0) return std::nullopt;
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

std::string ListDevices(Clock* clock) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  Fd in(ends[0]), out(ends[1]);
  const pid_t pid = SpawnListing(out.get());
  out = Fd();
  if (pid < 0) return "";
  const auto text = ReadUntil(in.get(), clock, clock->Monotonic() + kDetectTimeout);
  // A driver in trouble can make it hang in the kernel, where not even SIGKILL ends it: then it is
  // not waited for.
  if (!text) kill(pid, SIGKILL);
  int status = 0;
  const bool ended = waitpid(pid, &status, text ? 0 : WNOHANG) == pid;
  return text && ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? *text : "";
}

std::vector<std::string> SplitList(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipWhitespace());
}

int GpusOf(const Struct& container) {
  int most = 0;
  for (const char* kind : {"limits", "requests"}) {
    const Value* value = nullptr;
    const Struct* at = &container;
    for (const char* key : {"resources", kind, "nvidia.com/gpu"}) {
      const auto found = at->fields().find(key);
      value = found == at->fields().end() ? nullptr : &found->second;
      if (value == nullptr) break;
      at = &value->struct_value();
    }
    if (value == nullptr) continue;
    const double count = value->kind_case() == Value::kNumberValue
                             ? value->number_value()
                             : ParseNumber(value->string_value()).value_or(0);
    if (count > most && count <= 1e6) most = static_cast<int>(count);
  }
  return most;
}

int MaxGpus(const Value& value) {
  int most = value.kind_case() == Value::kStructValue ? GpusOf(value.struct_value()) : 0;
  for (const auto& [key, field] : value.struct_value().fields()) {
    most = std::max(most, MaxGpus(field));
  }
  for (const Value& item : value.list_value().values()) most = std::max(most, MaxGpus(item));
  return most;
}

}  // namespace

std::vector<std::string> ParseDevices(const std::string& listing) {
  std::vector<std::string> whole, slices;
  for (const absl::string_view line : absl::StrSplit(listing, '\n')) {
    const size_t colon = line.find(':');
    const size_t uuid = line.find("(UUID: MIG-");
    if (uuid != absl::string_view::npos) {
      const size_t begin = uuid + 7;
      slices.emplace_back(line.substr(begin, line.find(')', begin) - begin));
    } else if (absl::StartsWith(line, "GPU ") && colon != absl::string_view::npos) {
      whole.emplace_back(line.substr(4, colon - 4));
    }
  }
  return slices.empty() ? whole : slices;
}

std::vector<std::string> DetectDevices(Clock* clock) {
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    std::vector<std::string> devices = SplitList(visible);
    // As CUDA reads it: -1, and all that follows, is no device.
    devices.erase(std::find(devices.begin(), devices.end(), "-1"), devices.end());
    return devices;
  }
  return ParseDevices(ListDevices(clock));
}

int RequestedGpus(const Struct& trial_spec) {
  int most = 0;
  for (const auto& [key, field] : trial_spec.fields()) most = std::max(most, MaxGpus(field));
  return most;
}

GpuPool::GpuPool(std::vector<std::string> devices) {
  for (std::string& device : devices) {
    const bool known = std::find(devices_.begin(), devices_.end(), device) != devices_.end();
    if (!device.empty() && !known) devices_.push_back(std::move(device));
  }
}

StatusOr<std::vector<std::string>> GpuPool::Allocate(int count) {
  if (count > static_cast<int>(devices_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("resources ask for ", count, " GPUs (nvidia.com/gpu) and this machine offers ",
                     devices_.empty() ? "none" : absl::StrJoin(devices_, ","),
                     "; ask for fewer, or name the devices with --gpus"));
  }
  if (count > Free()) return absl::ResourceExhaustedError(Waiting(count));
  std::vector<std::string> taken;
  for (const std::string& device : devices_) {
    if (static_cast<int>(taken.size()) == count) break;
    if (busy_.insert(device).second) taken.push_back(device);
  }
  return taken;
}

void GpuPool::Mark(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) {
    if (std::find(devices_.begin(), devices_.end(), device) != devices_.end()) {
      busy_.insert(device);
    }
  }
}

void GpuPool::Release(const std::vector<std::string>& devices) {
  for (const std::string& device : devices) busy_.erase(device);
}

std::string GpuPool::Waiting(int count) const {
  if (count <= Free()) return "";
  if (count > static_cast<int>(devices_.size())) {
    return absl::StrCat("needs ", count, count == 1 ? " GPU" : " GPUs",
                        " (resources: nvidia.com/gpu) and this machine offers ", devices_.size(),
                        ": ask for fewer, or name the devices with --gpus");
  }
  return absl::StrCat("waits for ", count, count == 1 ? " GPU: " : " GPUs: ", Free(), " of ",
                      devices_.size(), " free");
}

}  // namespace shirabe::trial
