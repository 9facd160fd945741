// A checkpoint in an artifact store, below the namespace's part of it:
//   PREFIX/_/EXPERIMENT/TRIAL/ATTEMPT/STEP/files/SHA256   its files, called by their contents
//   …/STEP/manifest.json                                  its manifest, put last
// "_" cannot be a name of a prefix, so that nothing of one experiment lies within another. Where
// there is a manifest there is all: its SHA-256 is the digest in the record, and the manifest has
// those of the files. So whatever is changed there is found before anyone resumes from it, and a
// copy that was cut off is gone on with where it was. A trial's folder of outputs is copied in the
// same form, as step 0 of the attempt that has ended well: no checkpoint has that step. Thread-safe
// for different checkpoints; the calls block, and end soon with kCancelled once `stop` is
// requested.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "artifacts/artifact_store.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/checkpoint/checkpoint_manifest.h"

namespace shirabe::trial {

// Where those of an experiment lie, with a '/' at its end.
std::string CopiesOfExperiment(const std::string& prefix, const ExperimentKey& key);
std::string CopyOf(const std::string& prefix, const v1::Checkpoint& checkpoint);
// Within a CopyOf: the manifest, and the files that it lists.
inline constexpr char kCopiedManifest[] = "manifest.json";
inline constexpr char kCopiedFiles[] = "files/";
std::string CopiedFileKey(const std::string& copy, const ManifestFile& file);

// A key below a CopyOf without a prefix, in the namespace's folder, taken apart.
struct CopiedKey {
  v1::Checkpoint checkpoint;  // whose copy: namespace, experiment, trial, attempt, step
  std::string rest;           // kCopiedManifest, kCopiedFiles and a SHA-256; or "" or kCopiedFiles
};
// nullopt for any other text.
std::optional<CopiedKey> ParseCopiedKey(const std::string& key);

struct CheckpointCopy {
  artifacts::ArtifactStore* store = nullptr;  // the namespace's part
  std::string prefix;
  std::stop_token stop = {};
};

// Puts it there. One that is there already is left as it is. kInvalidArgument if it is no longer
// what was committed; kNotFound if it is gone; else the store's errors.
Status CopyOut(const v1::Checkpoint& checkpoint, const std::string& checkpoint_dir,
               const CheckpointCopy& copy);

// The step of a copy of outputs, in place of a checkpoint's.
inline constexpr int64_t kOutputsStep = 0;

// Puts all files of the folder there; what is returned stands for them, without a time. One without
// a digest: there are no files, and nothing is put. kInvalidArgument for a folder with a link or
// another thing that is no file, or that changes meanwhile; else as CopyOut.
StatusOr<v1::Checkpoint> CopyOutputsOut(const AttemptKey& key, const std::string& output_dir,
                                        const CheckpointCopy& copy);

// Makes it the folder `path`, whole or not at all, and durable; in the place of what stands there.
// kNotFound if it is not in the store; kDataLoss if what is there is not what was committed;
// kResourceExhausted: no space here; else the store's errors.
Status CopyIn(const v1::Checkpoint& checkpoint, const std::string& path,
              const CheckpointCopy& copy);

// Its manifest goes first. What is not there is fine.
Status RemoveCopy(const v1::Checkpoint& checkpoint, const CheckpointCopy& copy);
// All of an experiment. `before_each` request to the store, if there is one, may refuse to go on.
Status RemoveCopies(const ExperimentKey& key, const CheckpointCopy& copy,
                    const std::function<Status()>& before_each = nullptr);

}  // namespace shirabe::trial
