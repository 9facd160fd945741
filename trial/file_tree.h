// The regular files below one folder, reached name by name from its descriptor: no symbolic link
// is followed and nothing outside is touched, whatever a program puts there meanwhile. One thread
// at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shirabe::trial {

class FileTree {
 public:
  // `folder` below `parent`, or a path if `parent` is AT_FDCWD. kNotFound; kInvalidArgument if it
  // is a link or a file. `shown` stands for it in messages.
  static StatusOr<FileTree> Open(int parent, const std::string& folder, const std::string& shown);

  int root() const { return root_.get(); }

  // The paths of its files, ascending byte by byte; the manifest's are left out. kInvalidArgument
  // if there is a link, device, pipe or socket, a name that cannot be listed, too deep a nest, or
  // more than `most` entries.
  StatusOr<std::vector<std::string>> Files(int64_t most) const;

  // One of them, for reading. kNotFound; kInvalidArgument if it is not a regular file. Folders stay
  // open on the way, so that asking in ascending order opens each of them once.
  StatusOr<Fd> OpenFile(const std::string& path);

  // Flushes the folders on the way to these files, each once if the paths ascend, not the root.
  Status SyncFolders(const std::vector<std::string>& paths);

 private:
  struct Folder {
    std::string path;  // with a '/' at its end
    Fd fd;
  };

  StatusOr<int> Enter(const std::string& path);

  FileTree(Fd root, std::string shown) : root_(std::move(root)), shown_(std::move(shown)) {}

  Fd root_;
  std::string shown_;
  std::vector<Folder> way_;  // to the file opened last, from below the root down
  bool syncing_ = false;     // what is entered is flushed
};

// Flushes a file or folder to the disk. A file system that cannot do so for folders is fine.
Status SyncFd(int fd, const std::string& shown);

}  // namespace shirabe::trial
