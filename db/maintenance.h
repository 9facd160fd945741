// What the people who look after a store ask of it, where db/store.h is what experiments ask: all
// of it as it was at one moment, for a backup; all of it replaced, for a restore; rows that no one
// needs any more, removed; the space they took, given back. Every store of ours has this side; see
// MaintenanceOf. Called by client/store_backup and client/store_prune. Thread-safe, with the errors
// of db/store.h.
//
// None of it stops those who use the store: a snapshot is read while others commit, and what is
// removed is removed in pieces. Only a load keeps other writers waiting until it is whole, since it
// is one transaction: killed at any moment it has happened or it has not.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/store.h"
#include "proto/shirabe/v1/schedule.pb.h"

namespace shirabe::db {

// Where the reading of a table stands; by the store. Zero at its beginning.
using SnapshotCursor = std::array<int64_t, 4>;

// A store as it was when the snapshot was taken, whatever others have committed since. Lists come
// in pages: each call answers with the rows after the cursor, in the order of their keys, moves the
// cursor on, and answers with none at the end. Used by one thread; the store outlives it. It may
// keep the store from giving space back, so it should not live for long.
class Snapshot {
 public:
  virtual ~Snapshot() = default;

  // The store's address, as it may be shown: without a password.
  virtual std::string source() const = 0;
  // Of the newest Commit that it has.
  virtual int64_t revision() const = 0;
  // Every name that was ever used, with its lease, in order.
  virtual StatusOr<std::vector<v1::Lease>> Names() = 0;
  // kNotFound for a name that none has at present.
  virtual StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) = 0;
  virtual StatusOr<std::vector<v1::Trial>> Trials(const ExperimentKey& key,
                                                  SnapshotCursor* cursor) = 0;
  virtual StatusOr<std::vector<v1::Attempt>> Attempts(const ExperimentKey& key,
                                                      SnapshotCursor* cursor) = 0;
  virtual StatusOr<std::vector<v1::Checkpoint>> Checkpoints(const ExperimentKey& key,
                                                            SnapshotCursor* cursor) = 0;
  virtual StatusOr<std::vector<StoredObservation>> Observations(const ExperimentKey& key,
                                                                SnapshotCursor* cursor) = 0;
  virtual StatusOr<std::vector<v1::Event>> Events(const ExperimentKey& key,
                                                  SnapshotCursor* cursor) = 0;
  virtual StatusOr<std::vector<v1::Intent>> Intents(const ExperimentKey& key,
                                                    SnapshotCursor* cursor) = 0;
  // All of them, by namespace and name.
  virtual StatusOr<std::vector<v1::ScheduledExperiment>> Schedules() = 0;
};

// A piece of what is loaded: one name's epoch, and a batch of records, all of them new; or a
// schedule alone.
struct LoadPart {
  ExperimentKey experiment{};
  std::optional<int64_t> epoch{};  // with the first part of a name
  std::optional<Batch> batch{};    // none of a name that no experiment has
  std::optional<v1::ScheduledExperiment> schedule{};
};

struct LoadOptions {
  enum class Mode {
    kIntoEmpty,  // kAlreadyExists if there is any experiment
    kMerge,      // beside what is there; kAborted if a name is taken
    kReplace,    // in the place of what is there
  };
  Mode mode = Mode::kIntoEmpty;
  // Whether the holder of a lease may still write. kReplace is refused while one does.
  std::function<bool(const v1::Lease&)> is_held{};
};

// Gives the next part; false at the end. An error of it undoes the load.
using LoadSource = std::function<StatusOr<bool>(LoadPart*)>;

// Which row of a trial.
struct ObservationKey {
  int32_t attempt = 0;
  int64_t step = 0;
  std::string metric{};
};

class Maintenance {
 public:
  virtual ~Maintenance() = default;

  virtual StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() = 0;

  // All or nothing, durable when it returns the store's revision. Records keep their order and get
  // revisions, and events and intents ids, greater than any that the store has given before, so
  // that those who follow it miss nothing. No lease is held afterwards, and each epoch is greater
  // than both the loaded one and the one that the store had: what a former owner still writes is
  // refused. kReplace deletes what was there, which the feed says.
  virtual StatusOr<int64_t> Load(const LoadOptions& options, const LoadSource& source) = 0;

  // Removes these rows of a trial; those that are not there are fine. kAborted unless the trial is
  // as it was at `revision`, kFailedPrecondition unless that is a terminal phase, which is for
  // ever: its rows are not written any more, and so no lease is needed. Makes no revision.
  struct Removal {
    TrialKey trial{};
    int64_t revision = 0;
    std::vector<ObservationKey> rows{};
  };
  virtual Status RemoveObservations(const Removal& removal) = 0;

  // Gives space that rows have left back to the disk, a piece at a time; true while there is more.
  virtual StatusOr<bool> ReleaseSpace() = 0;

  // What opening the store has changed that its users should be told, in a sentence; "" = nothing.
  virtual std::string OpeningNotice() const { return ""; }
};

// The same store.
inline Maintenance& MaintenanceOf(Store& store) {
  auto* const maintenance = dynamic_cast<Maintenance*>(&store);
  CHECK(maintenance != nullptr);
  return *maintenance;
}

}  // namespace shirabe::db
