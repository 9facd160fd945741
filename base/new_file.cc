#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/rng.h"

namespace shirabe {
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
