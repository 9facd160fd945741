#include "base/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace shirabe {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMaxDepth = 24;   // of folders that are open, twice each
constexpr int kMaxRounds = 64;  // over a folder in which somebody still writes

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
    Fd fd(openat(parent, name.c_str(), kFolder));
    if (!fd.valid() && errno == EACCES) {
      const Fd handle(openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (handle.valid()) {
        chmod(("/proc/self/fd/" + std::to_string(handle.get())).c_str(), S_IRWXU);
        fd = Fd(openat(parent, name.c_str(), kFolder));
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
    const Reader reader(fdopendir(openat(folder, ".", kFolder)));
    if (reader == nullptr) return Failed(errno);
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(reader.get());
      if (entry == nullptr) return errno == 0 ? absl::OkStatus() : Failed(errno);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") RETURN_IF_ERROR(Take(folder, entry->d_name, depth));
    }
  }

  Status Take(int folder, const std::string& name, int depth) {
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

Status RemoveTree(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
  const Fd folder(open(parent.empty() ? "/" : parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT) return absl::OkStatus();
  if (!folder.valid()) return ErrnoStatus("cannot remove " + path, errno);
  return Remover(path).Remove(folder.get(), path.substr(slash + 1));
}

}  // namespace shirabe
