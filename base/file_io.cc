#include "base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"

namespace shirabe {

namespace {

constexpr int kCreateTries = 10;

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

StatusOr<std::string> ReadFileRange(int fd, int64_t offset, int64_t bytes,
                                    const std::string& path) {
  std::string data(static_cast<size_t>(std::max<int64_t>(bytes, 0)), '\0');
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t n =
        pread(fd, data.data() + done, data.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read " + path, errno);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  data.resize(done);
  return data;
}

Status WriteAll(int fd, std::string_view bytes, const std::string& shown) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot write " + shown, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
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

namespace {

std::string FolderOfFile(const std::string& path) {
  const size_t cut = path.rfind('/');
  if (cut == std::string::npos) return ".";
  return cut == 0 ? "/" : path.substr(0, cut);
}

std::string PartialName(const std::string& path) {
  return absl::StrCat(path, ".", absl::BytesToHexString(RandomBytes(4)), ".partial");
}

Status CannotMake(const std::string& path, int error) {
  return ErrnoStatus("cannot make " + path, error);
}

Status AlreadyThere(const std::string& path) {
  return absl::AlreadyExistsError(path + " is there already: choose another name, or move it away");
}

}  // namespace

StatusOr<NewFile> NewFile::Create(const std::string& path, bool replace) {
  NewFile file(path, replace);
  RETURN_IF_ERROR(file.Open());
  return file;
}

NewFile::NewFile(NewFile&& other) noexcept
    : fd_(std::move(other.fd_)),
      path_(std::move(other.path_)),
      replace_(other.replace_),
      partial_(std::exchange(other.partial_, "")) {}

NewFile::~NewFile() {
  if (!partial_.empty()) unlink(partial_.c_str());
}

Status NewFile::Open() {
  struct stat info;
  const bool there = lstat(path_.c_str(), &info) == 0;
  if (there && !replace_) return AlreadyThere(path_);
  if (there && S_ISDIR(info.st_mode)) return CannotMake(path_, EISDIR);
  const std::string folder = FolderOfFile(path_);
  fd_ = Fd(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (fd_.valid()) return absl::OkStatus();
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return CannotMake(path_, errno);
  std::string name = PartialName(path_);
  fd_ = Fd(open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd_.valid()) return CannotMake(name, errno);
  partial_ = std::move(name);
  return absl::OkStatus();
}

// A link is made only where nothing is.
Status NewFile::Link(const std::string& name) {
  const std::string from = partial_.empty() ? absl::StrCat("/proc/self/fd/", fd_.get()) : partial_;
  const int follow = partial_.empty() ? AT_SYMLINK_FOLLOW : 0;
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, name.c_str(), follow) == 0) return absl::OkStatus();
  return errno == EEXIST ? AlreadyThere(name) : CannotMake(name, errno);
}

Status NewFile::Publish() {
  if (fsync(fd_.get()) != 0) return ErrnoStatus("cannot write " + path_, errno);
  if (!replace_) {
    RETURN_IF_ERROR(Link(path_));
  } else {
    if (partial_.empty()) {
      const std::string name = PartialName(path_);
      RETURN_IF_ERROR(Link(name));
      partial_ = name;
    }
    if (rename(partial_.c_str(), path_.c_str()) != 0) return CannotMake(path_, errno);
    partial_.clear();
  }
  const Fd folder(open(FolderOfFile(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid() && fsync(folder.get()) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot write the folder of " + path_, errno);
}

}  // namespace shirabe
