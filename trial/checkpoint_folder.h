// A checkpoint's folder and the manifest in it, as the parts of CheckpointStore share them. Every
// folder and file is opened by name from the descriptor of the one above, never through a link: a
// program owns these directories and may put there what it likes. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/file.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/file_tree.h"
#include "trial/manifest.h"

namespace shirabe::trial {

AttemptKey KeyOf(const v1::Checkpoint& checkpoint);

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

}  // namespace shirabe::trial
