// The manifest of a checkpoint: which files it consists of, and whose it is; and the files that it
// is made of (FileTree).
//
//   {"version":1,"trial":"mnist-7","attempt":2,"step":40,"files":[
//   {"path":"model/weights.bin","bytes":1048576,"sha256":"9f86d0…"},
//   …
//   ]}
//
// It lies in the checkpoint's own folder. `trial` and `attempt` are SHIRABE_TRIAL and
// SHIRABE_ATTEMPT; `path` is relative to the folder, in parts that are names (no "", "." or "..");
// paths ascend, byte by byte, so that the same files always give the same text. Written by
// CheckpointStore::Commit, or by a program that saves one beside its files. Pure functions, but for
// FileTree and SyncFd.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_io.h"
#include "base/names.h"
#include "base/status.h"

namespace shirabe::trial {

inline constexpr const char* kManifestName = ".shirabe-manifest.json";
inline constexpr const char* kManifestDraft = ".shirabe-manifest.json.tmp";
inline constexpr int64_t kMaxManifestBytes = 64 << 20;  // more than kMaxFiles of usual names
// Of one checkpoint. Many small files cost more than their bytes.
inline constexpr int64_t kMaxFiles = 100'000;
// Steps are also numbers in JSON, where none greater is exact.
inline constexpr int64_t kMaxStep = int64_t{1} << 53;

struct ManifestFile {
  std::string path;
  int64_t bytes = 0;
  std::string sha256;  // hexadecimal
};

struct Manifest {
  std::string trial;
  int32_t attempt = 0;
  int64_t step = 0;
  std::vector<ManifestFile> files;  // by path
};

std::string EncodeManifest(const Manifest& manifest);

// kInvalidArgument if it is none, or one that no checkpoint could have: no file, the same one
// twice, a path that leads elsewhere.
StatusOr<Manifest> DecodeManifest(std::string_view text);

// kInvalidArgument, with the fix, if it names another trial, attempt or step.
Status CheckOwner(const Manifest& manifest, const AttemptKey& attempt, int64_t step);

// kInvalidArgument unless a file of a checkpoint may have this path.
Status ValidatePath(const std::string& path);

int64_t TotalBytes(const Manifest& manifest);

// The regular files below one folder, reached name by name from its descriptor: no symbolic link
// is followed and nothing outside is touched, whatever a program puts there meanwhile. One thread
// at a time.
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
