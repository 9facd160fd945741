// Where attempts that run on this machine keep their files, under $SHIRABE_HOME:
//   trials/<namespace>/<experiment>/reclaims.json           what of its trace was played
//   trials/<namespace>/<experiment>/<trial>/output/         shared by the trial's attempts
//   trials/<namespace>/<experiment>/<trial>/<attempt>/      log, metrics.jsonl,
//       hypertune.jsonl, scrapes.jsonl, params.json, control.json, checkpoints/, the supervisor's
//       records pid and exit (trial/records.h), and reclaim once its machine is taken away
//       (trial/reclaims.h)
// Used by executors and by whoever shows or deletes those files. Thread-safe: no state but a path.
#pragma once

#include <string>

#include "base/names.h"
#include "base/status.h"
#include "trial/executor.h"

namespace shirabe::trial {

class Layout {
 public:
  // `home` is made absolute: trials may run in other directories.
  explicit Layout(const std::string& home);

  const std::string& home() const { return home_; }
  std::string ExperimentDir(const ExperimentKey& key) const;
  std::string ReclaimsFile(const ExperimentKey& key) const;
  std::string TrialDir(const TrialKey& key) const;
  AttemptPaths Paths(const AttemptKey& key) const;

  // Creates the attempt's directories. True if the attempt's own was not there before: nobody has
  // tried to start it. Costs four system calls once the experiment has its directory.
  StatusOr<bool> Create(const AttemptKey& key) const;

  // Deletes the files of an experiment, or of one trial. kFailedPrecondition if a directory on the
  // way is a symbolic link: what it points to is not ours to delete.
  Status Remove(const ExperimentKey& experiment, int64_t trial) const;

 private:
  std::string home_;
};

// kInvalidArgument unless every part of the key can be a directory's name.
Status ValidateKey(const ExperimentKey& key);
Status ValidateKey(const AttemptKey& key);

}  // namespace shirabe::trial
