#include "base/open_beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_io.h"

namespace shirabe {
namespace {

constexpr int kFolder = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// Not even a file that becomes a pipe between two looks makes us wait.
constexpr int kFile = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::string KindOf(const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return "a directory";
  if (S_ISLNK(info.st_mode)) return "a symbolic link";
  if (S_ISFIFO(info.st_mode)) return "a named pipe";
  if (S_ISSOCK(info.st_mode)) return "a socket";
  return S_ISREG(info.st_mode) ? "a file" : "a device";
}

Status NotRegular(const std::string& shown, const std::string& kind) {
  return absl::InvalidArgumentError(shown + " is " + kind +
                                    ", and only a regular file is read: write one there, or name "
                                    "the file that is meant");
}

Status EscapesRoot(const std::string& shown) {
  return absl::InvalidArgumentError(
      shown + " leads over a symbolic link, which is not followed: put a directory in its place");
}

Status Refused(const std::string& shown, int error) {
  if (error == ELOOP || error == EXDEV) return EscapesRoot(shown);
  if (error == ENOTDIR) error = ENOENT;
  return ErrnoStatus("cannot open " + shown, error);
}

// The names of a way below a folder; none of them may mean another way. Two slashes are one.
StatusOr<std::vector<std::string>> NamesOf(const std::string& below, const std::string& shown) {
  std::vector<std::string> names;
  for (size_t at = 0; at < below.size();) {
    const size_t end = std::min(below.find('/', at), below.size());
    const std::string name = below.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    const bool good = name != "." && name != ".." && name.find('\0') == std::string::npos &&
                      name.size() <= NAME_MAX;
    if (!good)
      return absl::InvalidArgumentError("cannot open " + shown + ": it is not a plain path");
    names.push_back(name);
  }
  if (!names.empty()) return names;
  return absl::InvalidArgumentError("cannot open " + shown + ": it names nothing");
}

// Where the kernel has refused openat2 once, it is not asked again.
std::atomic<bool>& OpenAt2Refused() {
  static std::atomic<bool> refused = false;
  return refused;
}

// -1 with errno; ENOSYS once it was refused.
int OpenAt2(int folder, const std::string& below, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  if (OpenAt2Refused()) {
    errno = ENOSYS;
    return -1;
  }
  int fd = -1;
  do {
    fd = static_cast<int>(syscall(SYS_openat2, folder, below.c_str(), &how, sizeof how));
  } while (fd < 0 && (errno == EAGAIN || errno == EINTR));
  if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == E2BIG)) {
    OpenAt2Refused() = true;
    errno = ENOSYS;
  }
  return fd;
}

StatusOr<Fd> WalkDown(int folder, const std::vector<std::string>& names, int flags,
                      const std::string& shown) {
  Fd at;
  for (size_t i = 0; i < names.size(); ++i) {
    const int parent = i == 0 ? folder : at.get();
    const int how = i + 1 < names.size() ? O_PATH | kFolder : flags;
    Fd next(openat(parent, names[i].c_str(), how));
    if (!next.valid()) {
      const int error = errno;
      struct stat info;
      const bool link = error == ENOTDIR &&
                        fstatat(parent, names[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISLNK(info.st_mode);
      return Refused(shown, link ? ELOOP : error);
    }
    at = std::move(next);
  }
  return at;
}

// The folder `below` one that is open; with `flags` besides those of every folder.
StatusOr<Fd> EnterFolder(int folder, const std::string& below, int flags,
                         const std::string& shown) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesOf(below, shown));
  Fd fd(OpenAt2(folder, below, flags | kFolder));
  if (fd.valid()) return fd;
  if (errno == ENOSYS) return WalkDown(folder, names, flags | kFolder, shown);
  const int error = errno;
  struct stat info;
  const bool link = error == ENOTDIR &&
                    fstatat(folder, below.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(info.st_mode);
  return Refused(shown, link ? ELOOP : error);
}

// A path in two: the folder that is trusted, and the way below it.
struct Way {
  std::string trusted;
  std::string below;
};

StatusOr<Way> Divide(const std::string& root, const std::string& path) {
  std::string trusted = root;
  if (root.empty()) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return Way{".", path};
    trusted = path.substr(0, slash);
  }
  while (!trusted.empty() && trusted.back() == '/') trusted.pop_back();
  if (path.size() > trusted.size() + 1 && path.compare(0, trusted.size(), trusted) == 0 &&
      path[trusted.size()] == '/') {
    const size_t first = std::min(path.find_first_not_of('/', trusted.size()), path.size());
    return Way{trusted.empty() ? "/" : trusted, path.substr(first)};
  }
  return absl::InvalidArgumentError("cannot open " + path + ": it does not lie in " + root);
}

StatusOr<Fd> OpenTrusted(const std::string& folder, const std::string& shown) {
  if (folder.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("cannot open a path with a NUL in it");
  }
  Fd fd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) return fd;
  return Refused(shown, errno);
}

// The folder of a file, open, and its name there.
struct PathBeneath {
  Fd folder;
  std::string name;
};

StatusOr<PathBeneath> PathBeneathOf(const std::string& root, const std::string& path) {
  ASSIGN_OR_RETURN(const Way way, Divide(root, path));
  PathBeneath place;
  ASSIGN_OR_RETURN(place.folder, OpenTrusted(way.trusted, path));
  const size_t slash = way.below.rfind('/');
  place.name = slash == std::string::npos ? way.below : way.below.substr(slash + 1);
  if (slash == std::string::npos) return place;
  ASSIGN_OR_RETURN(place.folder,
                   EnterFolder(place.folder.get(), way.below.substr(0, slash), O_PATH, path));
  return place;
}

StatusOr<Fd> OpenIn(const PathBeneath& place, const std::string& shown, int access, unsigned mode) {
  const int folder = place.folder.get();
  const std::string& name = place.name;
  RETURN_IF_ERROR(NamesOf(name, shown).status());
  // Opening a device can do something to it: it is looked at before.
  struct stat info;
  if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(info.st_mode)) return NotRegular(shown, KindOf(info));
  } else if (errno != ENOENT || (access & O_CREAT) == 0) {
    return Refused(shown, errno);
  }
  Fd fd(openat(folder, name.c_str(), access | kFile, mode));
  if (!fd.valid() && errno == ELOOP) return NotRegular(shown, "a symbolic link");
  if (!fd.valid()) return Refused(shown, errno);
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot examine " + shown, errno);
  if (!S_ISREG(info.st_mode)) return NotRegular(shown, KindOf(info));
  // A program may be given it.
  if ((access & O_ACCMODE) != O_RDONLY) fcntl(fd.get(), F_SETFL, access & O_APPEND);
  return fd;
}

}  // namespace

StatusOr<Fd> OpenBeneath(const std::string& root, const std::string& path, int access,
                         unsigned mode) {
  ASSIGN_OR_RETURN(const PathBeneath place, PathBeneathOf(root, path));
  return OpenIn(place, path, access, mode);
}

StatusOr<std::string> ReadBeneath(const std::string& root, const std::string& path,
                                  int64_t max_bytes) {
  ASSIGN_OR_RETURN(const Fd fd, OpenBeneath(root, path));
  return ReadAll(fd, path, max_bytes);
}

std::string FolderAbove(const std::string& path, int names) {
  size_t end = path.size();
  for (; names > 0 && end != std::string::npos && end > 0; --names) end = path.rfind('/', end - 1);
  return end == std::string::npos || end == 0 ? "/" : path.substr(0, end);
}

std::string TailBeneath(const std::string& root, const std::string& path, int lines,
                        int64_t max_bytes) {
  const auto fd = OpenBeneath(root, path);
  struct stat info;
  if (!fd.ok() || fstat(fd->get(), &info) != 0) return "";
  const int64_t start = std::max<int64_t>(0, info.st_size - max_bytes);
  std::string text(static_cast<size_t>(info.st_size - start), '\0');
  const ssize_t n = pread(fd->get(), text.data(), text.size(), start);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t first = text.size() + 1;  // of the lines taken so far
  for (int i = 0; i < lines && first > 0; ++i) {
    const size_t newline = first < 2 ? std::string::npos : text.rfind('\n', first - 2);
    first = newline == std::string::npos ? 0 : newline + 1;
  }
  return first > text.size() ? "" : text.substr(first);
}

namespace {

constexpr int kReadFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMaxDepth = 24;   // of folders that are open, twice each
constexpr int kMaxRounds = 64;  // over a folder that is still written to

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Reader = std::unique_ptr<DIR, CloseFolder>;

// One removal. Folders that lie too deep are moved up into the topmost one, and found there again.
class Remover {
 public:
  explicit Remover(std::string shown) : shown_(std::move(shown)) {}

  Status Remove(int parent, const std::string& name) {
    if (unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
    if (errno != EISDIR && errno != EPERM) return Failed(errno);
    ASSIGN_OR_RETURN(const Fd top, Open(parent, name));
    if (!top.valid()) return absl::OkStatus();
    top_ = top.get();
    for (int round = 0; round < kMaxRounds; ++round) {
      moved_ = false;
      RETURN_IF_ERROR(Clear(top.get(), 0));
      if (unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
        return absl::OkStatus();
      }
      if (errno != ENOTEMPTY && errno != EEXIST) return Failed(errno);
      if (moved_) round = 0;  // each level that was moved up is progress
    }
    return Failed(ENOTEMPTY);
  }

 private:
  Status Failed(int error) const { return ErrnoStatus("cannot remove " + shown_, error); }

  // Not valid if it is gone. One that we may not read or change is made ours first: its program
  // ran as the user that we are.
  StatusOr<Fd> Open(int parent, const std::string& name) const {
    Fd fd(openat(parent, name.c_str(), kReadFolder));
    if (!fd.valid() && errno == EACCES) {
      const Fd handle(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (handle.valid()) {
        chmod(("/proc/self/fd/" + std::to_string(handle.get())).c_str(), S_IRWXU);
        fd = Fd(openat(parent, name.c_str(), kReadFolder));
      }
    }
    if (!fd.valid() && errno == ENOENT) return fd;
    if (!fd.valid()) return Failed(errno);
    struct stat info;
    if (fstat(fd.get(), &info) == 0 && (info.st_mode & S_IRWXU) != S_IRWXU) {
      fchmod(fd.get(), S_IRWXU);
    }
    return fd;
  }

  // Removes what is in the folder, as far as it does not lie too deep.
  Status Clear(int folder, int depth) {
    const Reader reader(fdopendir(openat(folder, ".", kReadFolder)));
    if (reader == nullptr) return Failed(errno);
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(reader.get());
      if (entry == nullptr) return errno == 0 ? absl::OkStatus() : Failed(errno);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") RETURN_IF_ERROR(RemoveEntry(folder, entry->d_name, depth));
    }
  }

  Status RemoveEntry(int folder, const std::string& name, int depth) {
    if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
    if (errno != EISDIR && errno != EPERM) return Failed(errno);
    if (depth >= kMaxDepth) return MoveUp(folder, name);
    ASSIGN_OR_RETURN(const Fd inner, Open(folder, name));
    if (!inner.valid()) return absl::OkStatus();
    RETURN_IF_ERROR(Clear(inner.get(), depth + 1));
    if (unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
      return absl::OkStatus();
    }
    // Something was made meanwhile, or not told by the file system: the next round finds it.
    return errno == ENOTEMPTY || errno == EEXIST ? absl::OkStatus() : Failed(errno);
  }

  Status MoveUp(int folder, const std::string& name) {
    const std::string above = ".shirabe-removed-" + std::to_string(++moves_);
    if (renameat(folder, name.c_str(), top_, above.c_str()) != 0 && errno != ENOENT) {
      return Failed(errno);
    }
    moved_ = true;
    return absl::OkStatus();
  }

  const std::string shown_;
  int top_ = -1;
  bool moved_ = false;  // in this round
  int moves_ = 0;
};

}  // namespace

Status RemoveAll(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
  const Fd folder(open(parent.empty() ? "/" : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT) return absl::OkStatus();
  if (!folder.valid()) return ErrnoStatus("cannot remove " + path, errno);
  return Remover(path).Remove(folder.get(), path.substr(slash + 1));
}

}  // namespace shirabe
