#include "trial/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "trial/manifest.h"

namespace shirabe::trial {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// A pipe must not make us wait for its other end.
constexpr int kFileFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using FolderReader = std::unique_ptr<DIR, CloseFolder>;

Status NoRegularFile(const std::string& shown) {
  return absl::InvalidArgumentError(
      shown + " is a symbolic link, a device, a pipe, a socket or a folder, not a regular file");
}

StatusOr<Fd> OpenFolder(int parent, const std::string& name, const std::string& shown) {
  Fd fd(openat(parent, name.c_str(), kFolderFlags));
  if (fd.valid()) return fd;
  if (errno == ENOTDIR || errno == ELOOP) {
    return absl::InvalidArgumentError(shown + " is a symbolic link or a file, not a folder");
  }
  return ErrnoStatus("cannot open " + shown, errno);
}

// Walks a tree and writes down the paths of its files.
class Lister {
 public:
  Lister(const std::string& shown, int64_t most, std::vector<std::string>& paths)
      : shown_(shown), left_(most), paths_(paths) {}

  // `below` is the path of `folder`, with a '/' at its end unless it is the root's. How deep this
  // goes, and so how many descriptors it holds, is limited by ValidatePath.
  Status List(Fd folder, const std::string& below) {
    const int fd = folder.get();
    const FolderReader reader(fdopendir(folder.release()));
    if (reader == nullptr) return ErrnoStatus("cannot read " + shown_ + below, errno);
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(reader.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") RETURN_IF_ERROR(Take(fd, below, entry->d_name));
    }
    return errno == 0 ? absl::OkStatus() : ErrnoStatus("cannot read " + shown_ + below, errno);
  }

 private:
  Status Take(int folder, const std::string& below, const std::string& name) {
    const std::string path = below + name;
    if (left_-- == 0) {
      return absl::InvalidArgumentError(shown_ + " has more entries than one checkpoint may have" +
                                        ": save fewer and larger files");
    }
    if (path == kManifestName || path == kManifestDraft) return absl::OkStatus();
    if (const Status status = ValidatePath(path); !status.ok()) {
      return absl::InvalidArgumentError(shown_ + " holds " + Message(status));
    }
    struct stat info;
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrnoStatus("cannot look at " + shown_ + path, errno);
    }
    if (S_ISREG(info.st_mode)) {
      paths_.push_back(path);
      return absl::OkStatus();
    }
    if (!S_ISDIR(info.st_mode)) return NoRegularFile(path);
    ASSIGN_OR_RETURN(Fd inner, OpenFolder(folder, name, shown_ + path));
    return List(std::move(inner), path + "/");
  }

  const std::string shown_;
  int64_t left_;
  std::vector<std::string>& paths_;
};

}  // namespace

StatusOr<FileTree> FileTree::Open(int parent, const std::string& folder, const std::string& shown) {
  ASSIGN_OR_RETURN(Fd root, OpenFolder(parent, folder, shown));
  return FileTree(std::move(root), shown);
}

StatusOr<std::vector<std::string>> FileTree::Files(int64_t most) const {
  std::vector<std::string> paths;
  // A descriptor of its own, since the position of a reading is the descriptor's.
  ASSIGN_OR_RETURN(Fd folder, OpenFolder(root_.get(), ".", shown_));
  RETURN_IF_ERROR(Lister(shown_ + "/", most, paths).List(std::move(folder), ""));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Opens the folders on the way to `path`, and returns the descriptor of the last.
StatusOr<int> FileTree::Enter(const std::string& path) {
  const auto leads_there = [&path](const Folder& folder) {
    return path.compare(0, folder.path.size(), folder.path) == 0;
  };
  while (!way_.empty() && !leads_there(way_.back())) way_.pop_back();
  int parent = way_.empty() ? root_.get() : way_.back().fd.get();
  size_t from = way_.empty() ? 0 : way_.back().path.size();
  for (;;) {
    const size_t slash = path.find('/', from);
    if (slash == std::string::npos) return parent;
    const std::string shown = path.substr(0, slash);
    ASSIGN_OR_RETURN(Fd inner, OpenFolder(parent, path.substr(from, slash - from), shown));
    if (syncing_) RETURN_IF_ERROR(SyncFd(inner.get(), shown));
    parent = inner.get();
    way_.push_back({path.substr(0, slash + 1), std::move(inner)});
    from = slash + 1;
  }
}

StatusOr<Fd> FileTree::OpenFile(const std::string& path) {
  ASSIGN_OR_RETURN(const int folder, Enter(path));
  Fd fd(openat(folder, path.c_str() + (path.rfind('/') + 1), kFileFlags));
  if (!fd.valid() && (errno == ELOOP || errno == ENXIO)) return NoRegularFile(path);
  if (!fd.valid()) return ErrnoStatus("cannot open " + path, errno);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
  if (!S_ISREG(info.st_mode)) return NoRegularFile(path);
  return fd;
}

Status FileTree::SyncFolders(const std::vector<std::string>& paths) {
  way_.clear();
  syncing_ = true;
  Status status = absl::OkStatus();
  for (size_t i = 0; i < paths.size() && status.ok(); ++i) status = Enter(paths[i]).status();
  syncing_ = false;
  return status;
}

Status SyncFd(int fd, const std::string& shown) {
  if (fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP) return absl::OkStatus();
  return ErrnoStatus("cannot sync " + shown, errno);
}

}  // namespace shirabe::trial
