// Files that the store does not account for.
//
// LeftoverFiles: those of an experiment's name that is not in the store: of one that was deleted
// and whose files are still being removed, or of one in another database. They are not ours to
// remove, and trials could not start beside them. Thread-safe; what it is made of outlives it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "db/store.h"
#include "trial/file_layout.h"

namespace shirabe::client {

class LeftoverFiles {
 public:
  LeftoverFiles(db::Store* store, const trial::FileLayout* layout, Clock* clock)
      : store_(store), layout_(layout), clock_(clock) {}

  // kAlreadyExists, with the folder and what to do, if there are any on this machine.
  Status Check(const ExperimentKey& key) const;
  // The same, once they are gone or `deadline` (monotonic) has come; kCancelled if `wait` says so.
  Status AwaitRemoved(const ExperimentKey& key, absl::Duration deadline, const Wait& wait) const;

 private:
  db::Store* const store_;
  const trial::FileLayout* const layout_;
  Clock* const clock_;
};

// What the programs of attempts that have ended printed and reported: logs, and the contract's
// files or, in the server for a cluster, the copies of all that a collector read. Kept for people
// alone, since every value in them is in the store; a server that runs for months would fill its
// disk. Thread-safe: no state.

// Deletes them, those that were written to the longest ago first, until all together take at most
// `bytes` of the disk. In the place of a log that is gone stands a line that says so. Left are
// attempts that are open, experiments that the client does not know, what programs have saved
// (checkpoints and outputs), and whatever is small.
Status RemoveOldLogs(Client& client, const trial::FileLayout& layout, int64_t bytes);

// Files of trials and attempts that a restored store does not know: those that came after the
// backup was taken, also of an experiment that was deleted and made again under its name. A new
// attempt of the same number could not start where they lie, and an old one would show another's
// log, so they are set aside, and put back if the restore fails after all. Used by
// client/store_backup; one thread.

// What a backup has: the attempts of each trial by their number, with the id (trial::AttemptId)
// that stands in their folder; "" = none is known.
using KnownIds = std::map<int32_t, std::string>;
using KnownTrials = std::map<int64_t, KnownIds>;
using KnownAttempts = std::map<ExperimentKey, KnownTrials>;

class StaleFiles {
 public:
  // They go into `folder`, which is made when the first of them does.
  StaleFiles(const trial::FileLayout* layout, std::string folder)
      : layout_(layout), folder_(std::move(folder)) {}

  // Moves what lies in the folders of these experiments and belongs to none of their attempts.
  Status SetAside(const KnownAttempts& known);
  // Moves all of it back.
  Status PutBack();

  int64_t count() const { return std::ssize(moved_); }
  const std::string& folder() const { return folder_; }

 private:
  Status SetAside(const ExperimentKey& key, const KnownTrials& known);
  // Whether an attempt of the same number lies there, of another experiment of that name.
  bool IsOfAnother(const TrialKey& trial, const KnownIds& known) const;
  Status Move(const std::string& path);

  const trial::FileLayout* const layout_;
  const std::string folder_;
  std::vector<std::pair<std::string, std::string>> moved_;  // from, to
};

}  // namespace shirabe::client
