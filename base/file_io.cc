#include "base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace shirabe {
namespace {

constexpr int kCreateTries = 10;

Status WriteAll(int fd, const std::string& contents, const std::string& path) {
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = write(fd, contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write " + path, errno);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

Status WriteNew(const std::string& path, const std::string& contents, bool durable) {
  // What an earlier writer left, or a program put there, is not written to: a link may lead
  // anywhere, and a pipe makes its writer wait.
  Fd fd;
  for (int tries = 0; tries < kCreateTries && !fd.valid(); ++tries) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) break;
    fd = Fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd.valid() && errno != EEXIST) break;
  }
  if (!fd.valid()) return ErrnoStatus("cannot create " + path, errno);
  RETURN_IF_ERROR(WriteAll(fd.get(), contents, path));
  if (durable && fsync(fd.get()) != 0) return ErrnoStatus("cannot sync " + path, errno);
  return absl::OkStatus();
}

Status SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Fd fd(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return ErrnoStatus("cannot sync " + folder, errno);
  return absl::OkStatus();
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

int Fd::release() { return std::exchange(fd_, -1); }

StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open " + path, errno);
  return ReadAll(fd, path, max_bytes);
}

StatusOr<std::string> ReadAll(const Fd& fd, const std::string& path, int64_t max_bytes) {
  std::string contents;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + path, errno);
    if (n == 0) return contents;
    contents.append(buffer, static_cast<size_t>(n));
    if (static_cast<int64_t>(contents.size()) > max_bytes) {
      return absl::ResourceExhaustedError(path + " is larger than " + std::to_string(max_bytes) +
                                          " bytes");
    }
  }
}

Status WriteFileAtomic(const std::string& path, const std::string& contents, bool durable) {
  const std::string beside = path + ".tmp";
  Status status = WriteNew(beside, contents, durable);
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus("cannot rename " + beside + " to " + path, errno);
  }
  if (!status.ok()) {
    unlink(beside.c_str());  // on a full disk, every byte helps
    return status;
  }
  return durable ? SyncFolderOf(path) : absl::OkStatus();
}

Status MakeDirs(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? ErrnoStatus("cannot create folder " + path, error.value()) : absl::OkStatus();
}

}  // namespace shirabe
