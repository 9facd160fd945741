#include "trial/local/supervisor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/sha256.h"

namespace shirabe::trial {
namespace {

Status WriteProgram(const std::string& path, std::string_view program) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
  if (!fd.valid()) return ErrnoStatus("cannot create " + path, errno);
  while (!program.empty()) {
    const ssize_t n = write(fd.get(), program.data(), program.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write " + path, errno);
    program.remove_prefix(static_cast<size_t>(n));
  }
  // The umask of the user who runs us must not take the right to execute away.
  if (fchmod(fd.get(), 0755) != 0) return ErrnoStatus("cannot chmod " + path, errno);
  return absl::OkStatus();
}

bool IsInPlace(const std::string& path, std::string_view program) {
  const auto there = ReadFile(path);
  return there.ok() && *there == program && access(path.c_str(), X_OK) == 0;
}

}  // namespace

StatusOr<std::string> UnpackSupervisor(const std::string& home) {
  const std::string_view program = SupervisorProgram();
  const std::string dir = home + "/bin";
  const std::string digest = HexSha256(program).substr(0, 12);
  const std::string path = absl::StrCat(dir, "/shirabe-supervisor-", digest);
  if (IsInPlace(path, program)) return path;
  RETURN_IF_ERROR(MakeDirs(dir));
  // Several processes may do this at once: each has its own file until the rename.
  static std::atomic<int> count = 0;
  const std::string beside = absl::StrCat(path, ".", getpid(), ".", count++);
  Status status = WriteProgram(beside, program);
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus("cannot rename " + beside + " to " + path, errno);
  }
  if (status.ok()) return path;
  unlink(beside.c_str());
  return status;
}

}  // namespace shirabe::trial
