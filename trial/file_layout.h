// Where attempts that run on this machine keep their files, under $SHIRABE_HOME:
//   trials/<namespace>/<experiment>/reclaims.json           what of its trace was played
//   trials/<namespace>/<experiment>/<trial>/output/         shared by the trial's attempts
//   trials/<namespace>/<experiment>/<trial>/<attempt>/      log, metrics.jsonl,
//       hypertune.jsonl, scrapes.jsonl, params.json, control.json, checkpoints/, the supervisor's
//       records pid and exit (trial/local/supervisor_records.h), trainer-url and trainer-token
//       (trial/local/attempt_endpoints.h), and reclaim once its machine is taken away
//       (trial/local/simulated_preemption.h)
// Used by executors and by code that shows or deletes those files. Thread-safe: no state but a
// path.
//
// Paths are made of validated keys only (base/names.h). Others are refused, with the reason, where
// they come from outside; should such a check be forgotten, what is asked for lies in a directory
// that is never there.
#pragma once

#include <string>

#include "base/names.h"
#include "base/status.h"
#include "trial/executor.h"

namespace shirabe::trial {

class FileLayout {
 public:
  // `home` is made absolute: trials may run in other directories.
  explicit FileLayout(const std::string& home);

  const std::string& home() const { return home_; }
  std::string ExperimentDir(const ExperimentKey& key) const;
  std::string ReclaimsFile(const ExperimentKey& key) const;
  std::string TrialDir(const TrialKey& key) const;
  AttemptPaths Paths(const AttemptKey& key) const;

  // Creates the attempt's directories. True if the attempt's own was not there before: no process
  // has tried to start it. kDataLoss if a program has put something else in their place. Costs five
  // system calls once the experiment has its directory.
  StatusOr<bool> Create(const AttemptKey& key) const;

  // Makes the data directory one that only its owner can look into, and so all that lies in it:
  // logs, parameters, checkpoints. One that is there already is changed if it is plainly ours (it
  // is called shirabe, or is empty); in others only what lies below `trials` is kept from others.
  // What it cannot do is logged; code that needs the directory will fail with the reason.
  void KeepPrivate() const;

  // Deletes the files of an experiment, or of one trial. kFailedPrecondition if a directory on the
  // way is a symbolic link: what it points to is not ours to delete.
  Status Remove(const ExperimentKey& experiment, int64_t trial) const;

 private:
  std::string home_;
};

}  // namespace shirabe::trial
