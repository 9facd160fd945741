// Checkpoints of attempts whose files this process can reach: of local trials here, of a pod's in
// its supervisor or sidecar. A controller keeps their records and opens none of this.
//
// A program saves into CHECKPOINT_DIR/<step>.tmp, flushes, and renames to CHECKPOINT_DIR/<step>:
// only a directory whose name is a step counts. Commit then lists every file with its size and
// SHA-256 in a manifest of its own, CHECKPOINT_DIR/<step>/.shirabe-manifest.json, which also names
// trial, attempt and step; the SHA-256 of the manifest is the checkpoint's digest, and goes into
// the store. A checkpoint is good if its digest is the stored one and its files are those of the
// manifest: what was torn, swapped or written to since is found before anyone resumes from it.
//
// Where a checkpoint lies follows from its key alone; `location` in a record is never opened. No
// symbolic link, device or pipe is followed or committed. Thread-safe for different attempts.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/file_layout.h"

namespace shirabe::trial {

// What one checkpoint may be: every byte of it is read when it is committed, and again before
// anyone resumes from it.
struct CheckpointLimits {
  int64_t bytes = int64_t{256} << 30;
  // Of a size that takes hardly any room on the disk (holes) no more than this.
  int64_t hole_bytes = int64_t{1} << 30;
  int64_t quick_bytes = 256 << 20;  // up to here committing it takes a moment
};

class CheckpointStore {
 public:
  // Both outlive the store. Once `stop` is true, whatever is under way ends with kCancelled soon.
  explicit CheckpointStore(const FileLayout* layout, const std::atomic<bool>* stop = nullptr,
                           const CheckpointLimits& limits = {})
      : layout_(layout), stop_(stop), limits_(limits) {}

  // The steps that stand in the attempt's directory, ascending, committed or not. One readdir. A
  // step is a decimal number up to 2^53 without a leading zero; 0 is listed, and never committed.
  StatusOr<std::vector<int64_t>> List(const AttemptKey& attempt) const;

  // A folder there that may have been meant as a checkpoint, as checkpoint-500, but is none by its
  // name; "" if there is no such folder.
  std::string FindMisnamed(const AttemptKey& attempt) const;

  // Makes the checkpoint of this step verifiable and durable, and describes it. One that has a
  // manifest, from an earlier call or from the program, is only compared with it by sizes. Reads
  // every byte otherwise. kInvalidArgument: it holds what cannot be a checkpoint (nothing, a
  // link), or is larger than the limits; kResourceExhausted: no space for the manifest, try again;
  // kCancelled once `cancel` is true.
  StatusOr<v1::Checkpoint> Commit(const AttemptKey& attempt, int64_t step,
                                  const std::atomic<bool>* cancel = nullptr) const;

  // Whether Commit would take more than a moment: it is not small, and its files are to be read.
  bool IsLarge(const AttemptKey& attempt, int64_t step) const;

  // OK if every byte is as it was committed. kNotFound: it is not there; kDataLoss: it is damaged,
  // and how; kUnavailable: the disk does not answer, try again.
  Status Verify(const v1::Checkpoint& checkpoint) const;

  // Puts the checkpoint into the directory of attempt `to`, under the same step, whole or not at
  // all, and durable. Bytes are shared where the file system can (a reflink), else copied: what
  // happens to one does not happen to the other. They are verified on the way; the errors are
  // Verify's, and kResourceExhausted: no space. Returns its path. Doing it again is fine.
  StatusOr<std::string> Fork(const v1::Checkpoint& checkpoint, const AttemptKey& to) const;

  // The same into the new folder `path`, anywhere, for people: kAlreadyExists if there is
  // something.
  Status Export(const v1::Checkpoint& checkpoint, const std::string& path) const;

  // Whether `from`'s copy stands in the directory of attempt `to` and was not replaced since.
  bool HoldsFork(const v1::Checkpoint& from, const AttemptKey& to) const;

  // Deletes it: under another name first, so that a half is never taken for a whole.
  Status Prune(const v1::Checkpoint& checkpoint) const;

 private:
  const FileLayout* layout_;
  const std::atomic<bool>* stop_;
  const CheckpointLimits limits_;
};

}  // namespace shirabe::trial
