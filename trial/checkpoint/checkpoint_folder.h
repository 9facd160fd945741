// A checkpoint's folder, the manifest in it, and how its files are copied, as the parts of
// CheckpointStore share them. Every folder and file is opened by name from the descriptor of the
// one above, never through a link: a program owns these directories and may put there what it
// likes. One thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/file_io.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/checkpoint/checkpoint_manifest.h"

namespace shirabe::trial {

AttemptKey KeyOf(const v1::Checkpoint& checkpoint);
void SetKey(const AttemptKey& key, v1::Checkpoint& checkpoint);

// kInvalidArgument, with the rule, if no checkpoint can have this step.
Status ValidateStep(int64_t step);

struct CheckpointFolder {
  FileTree above;  // CHECKPOINT_DIR
  FileTree tree;
  std::string path;
};
// kNotFound; kInvalidArgument if it is a link or a file.
StatusOr<CheckpointFolder> OpenCheckpoint(const std::string& checkpoint_dir, int64_t step);

struct ManifestText {
  std::string text;
  absl::Time modified;
};
StatusOr<ManifestText> ReadManifest(FileTree& tree);

// Seen whole or not at all, also after a power cut. Its own time becomes `saved`, when the program
// had saved, so that a second Commit tells the same.
Status WriteManifest(int folder, const std::string& text, absl::Time saved);

// One of its files, if it is there with its size; kDataLoss if not.
StatusOr<Fd> OpenListed(const ManifestFile& file, FileTree& tree);

// Flushes files: one by one where they are a few, else the file system as a whole at the end.
class Flusher {
 public:
  explicit Flusher(const std::vector<ManifestFile>& files);
  // For every file, after it was written or read.
  Status File(int fd, const std::string& path) const;
  // Once, last: the folders that they are in, but for the tree's root.
  Status Rest(FileTree& tree) const;

 private:
  std::vector<std::string> few_;  // their paths; empty if they are many
};

// Reading a file of any size once: for its SHA-256, and to write a copy on the way. Thread-safe.

// Two flags that may end what takes long: of the whole program, and of this piece of work. Both
// outlive it; null = there is none.
struct Interrupt {
  const std::atomic<bool>* all = nullptr;
  const std::atomic<bool>* one = nullptr;
  explicit operator bool() const { return (all != nullptr && *all) || (one != nullptr && *one); }
};

struct FileCopyRequest {
  int from = -1;        // read from where it stands to its end
  int to = -1;          // written to, unless -1
  Interrupt stop = {};  // once true, the answer is kCancelled
  std::string shown;    // names the file in messages
};

struct FileContents {
  int64_t bytes = 0;
  std::string sha256;  // hexadecimal
};

StatusOr<FileContents> CopyAndHash(const FileCopyRequest& pass);

// Makes an empty file share the bytes of another; what is written to one later is not seen in the
// other. False if the file system cannot do that.
bool CloneFile(int from, int to);

}  // namespace shirabe::trial
