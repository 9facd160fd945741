// A checkpoint in an artifact store, below the namespace's part of it:
//   PREFIX/_/EXPERIMENT/TRIAL/ATTEMPT/STEP/files/SHA256   its files, called by their contents
//   …/STEP/manifest.json                                  its manifest, put last
// "_" cannot be a name of a prefix, so that nothing of one experiment lies within another. Where
// there is a manifest there is all: its SHA-256 is the digest in the record, and the manifest has
// those of the files. So whatever is changed there is found before anyone resumes from it, and a
// copy that was cut off is gone on with where it was. Thread-safe for different checkpoints; the
// calls block, and end soon with kCancelled once `stop` is requested.
#pragma once

#include <stop_token>
#include <string>

#include "artifacts/artifact_store.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

// Where those of an experiment lie, with a '/' at its end.
std::string CopiesOfExperiment(const std::string& prefix, const ExperimentKey& key);
std::string CopyOf(const std::string& prefix, const v1::Checkpoint& checkpoint);

struct CheckpointCopy {
  artifacts::ArtifactStore* store = nullptr;  // the namespace's part
  std::string prefix;
  std::stop_token stop = {};
};

// Puts it there. One that is there already is left as it is. kInvalidArgument if it is no longer
// what was committed; kNotFound if it is gone; else the store's errors.
Status CopyOut(const v1::Checkpoint& checkpoint, const std::string& checkpoint_dir,
               const CheckpointCopy& copy);

// Makes it the folder `path`, whole or not at all, and durable; in the place of what stands there.
// kNotFound if it is not in the store; kDataLoss if what is there is not what was committed;
// kResourceExhausted: no space here; else the store's errors.
Status CopyIn(const v1::Checkpoint& checkpoint, const std::string& path,
              const CheckpointCopy& copy);

// Its manifest goes first. What is not there is fine.
Status RemoveCopy(const v1::Checkpoint& checkpoint, const CheckpointCopy& copy);
// All of an experiment.
Status RemoveCopies(const ExperimentKey& key, const CheckpointCopy& copy);

}  // namespace shirabe::trial
