#include "cmd/pools_file.h"

#include <utility>

#include "base/file_io.h"
#include "base/log.h"
#include "cmd/spec_file.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kLook = absl::Seconds(2);
constexpr int64_t kMostBytes = (1 << 20) + 1;  // one more than the parser takes

}  // namespace

// A mistake in a ConfigMap must not stop the controller when its pod is made again.
StatusOr<PoolsFile> PoolsFile::Open(const std::string& path, const std::string& kept) {
  PoolsFile file(path, kept);
  if (path.empty()) return file;
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMostBytes));
  const Status taken = file.Take(std::move(text));
  if (taken.ok()) return file;
  const StatusOr<std::string> before = ReadFile(kept, kMostBytes);
  if (!before.ok()) return taken;
  ASSIGN_OR_RETURN(file.pools_, ReadPools(*before, kept));
  Log(LogLevel::kError, "the pools of --nodes cannot be used: those of before are",
      {{"file", path}, {"trouble", Message(taken)}});
  return file;
}

Status PoolsFile::Take(std::string text) {
  text_ = std::move(text);
  ASSIGN_OR_RETURN(pools_, ReadPools(text_, path_));
  const Status written = WriteFileAtomic(kept_, text_);
  if (!written.ok()) {
    Log(LogLevel::kWarning, "failed to keep a copy of the pools",
        {{"file", kept_}, {"error", Message(written)}});
  }
  return absl::OkStatus();
}

bool PoolsFile::Reload(absl::Duration monotonic) {
  if (path_.empty() || monotonic < next_look_) return false;
  next_look_ = monotonic + kLook;
  StatusOr<std::string> text = ReadFile(path_, kMostBytes);
  if (!text.ok() || *text == text_) return false;
  const std::string before = pools_.SerializeAsString();
  const Status status = Take(*std::move(text));
  if (!status.ok()) {
    Log(LogLevel::kError, "the pools of --nodes cannot be used: those of before stay",
        {{"file", path_}, {"trouble", Message(status)}});
  }
  return pools_.SerializeAsString() != before;
}

}  // namespace shirabe::cmd
