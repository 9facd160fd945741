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

StatusOr<PoolsFile> PoolsFile::Open(const std::string& path) {
  PoolsFile file(path);
  if (path.empty()) return file;
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMostBytes));
  RETURN_IF_ERROR(file.Take(std::move(text)));
  return file;
}

Status PoolsFile::Take(std::string text) {
  text_ = std::move(text);
  ASSIGN_OR_RETURN(pools_, ReadPools(text_, path_));
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
