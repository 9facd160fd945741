#include "sidecar/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/keys.h"
#include "trial/checkpoint_folder.h"
#include "trial/layout.h"

namespace shirabe::sidecar {
namespace {

Status Failed(const std::string& what, int error) {
  if (error != ELOOP && error != ENOTDIR) return ErrnoStatus(what, error);
  return absl::InvalidArgumentError(what + ": a link or a file stands there, not a folder");
}

// Name by name from the volume's own folder, each open to all.
Status MakeBelow(int home, const std::string& path) {
  Fd parent(fcntl(home, F_DUPFD_CLOEXEC, 0));
  if (!parent.valid()) return ErrnoStatus("cannot open the volume", errno);
  for (const auto part : absl::StrSplit(path, '/')) {
    const std::string name(part);
    if (mkdirat(parent.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return Failed("cannot create folder " + path, errno);
    }
    Fd folder(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) return Failed("cannot open " + name + " of folder " + path, errno);
    RETURN_IF_ERROR(OpenToAll(folder.get(), path));
    parent = std::move(folder);
  }
  return absl::OkStatus();
}

}  // namespace

Status OpenToAll(int folder, const std::string& shown) {
  struct stat info;
  if (fstat(folder, &info) != 0) return ErrnoStatus("cannot look at " + shown, errno);
  if ((info.st_mode & 0777) == 0777 || fchmod(folder, 0777) == 0) return absl::OkStatus();
  const int error = errno;
  if (faccessat(folder, ".", W_OK, 0) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot open folder " + shown + " to the program's user", error);
}

Status MakeHomeFolders(const Pod& pod) {
  const trial::Layout layout(pod.home());
  const trial::AttemptPaths own = layout.Paths(pod.key);
  std::vector<std::string> wanted = {own.checkpoint_dir, own.output_dir};
  // One that is gone is empty then, which is found where it is read.
  for (const v1::Checkpoint& checkpoint : pod.config.resume()) {
    RETURN_IF_ERROR(ValidateKey(trial::KeyOf(checkpoint)));
    wanted.push_back(layout.Paths(trial::KeyOf(checkpoint)).checkpoint_dir);
  }
  const Fd home(open(layout.home().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!home.valid()) return ErrnoStatus("cannot open " + layout.home(), errno);
  for (const std::string& path : wanted) {
    RETURN_IF_ERROR(MakeBelow(home.get(), path.substr(layout.home().size() + 1)));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::sidecar
