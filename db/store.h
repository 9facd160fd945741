// The store: every record of every experiment, and the only thing that survives a crash.
//
// Writing is one call, Commit(Batch): all of it or nothing, durable when it returns. Every put
// carries the revision that its writer read (0 = there was none); if another Commit came between,
// the whole batch is refused with kAborted, nothing of it is written, and the writer reads again.
// Each Commit gets one revision, greater than every one before, which all its rows then carry;
// Changes(after) lists the rows newer than a revision, so that a reader can follow or go on.
//
// An experiment has at most one owner: the holder of its lease. Puts of an experiment, its trials,
// attempts, checkpoints and observations name the lease's epoch once a lease exists; a batch with
// an older epoch is refused with kFailedPrecondition, however late it arrives. Anyone may add an
// Intent or an Event, and anyone may create an experiment that does not exist (with what belongs
// to it in the same batch). The epoch of a name outlives the deletion of its experiment.
//
// What an attempt wrote is committed under a Fence, which holds only while the attempt is open and
// has that token: else kPermissionDenied, and nothing of the batch is written. So an attempt that
// was replaced, and still runs somewhere, changes nothing.
//
// Everything belongs to an experiment, and attempts, checkpoints and observations to a trial, that
// exists (or is in the same batch): else kNotFound. Lists of what does not exist are empty.
//
// Implementations are thread-safe. Concurrent Commits may share one fsync. Records are returned
// by value. Errors: kNotFound, kAborted, kFailedPrecondition (lease lost), kAlreadyExists (lease
// held by another: the message names the holder), kResourceExhausted (disk full),
// kPermissionDenied (read-only, a stale fence), kUnavailable (locked or gone: try again), kDataLoss
// (damaged), kUnimplemented (a schema newer than this program), kInvalidArgument (a batch that
// contradicts itself; an address that is not a database of ours).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/registry.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::db {

// One value of one metric. The key is (trial, attempt, step, metric): adding a row again is a
// no-op, adding another value under the same key replaces it (the last write of a step counts). A
// row once superseded stays so.
struct StoredObservation {
  int64_t trial = 0;
  int32_t attempt = 0;
  std::string metric{};
  int64_t step = 0;
  double value = 0;  // NaN and infinities included
  absl::Time time{};
  bool implicit_step = false;  // the step was counted, not reported
  bool superseded = false;     // past the step from which a later attempt resumed: not counted
};

template <class Record>
struct Versioned {
  Record record{};
  int64_t revision = 0;
};

template <class Record>
struct Write {
  Record record{};
  int64_t expected = 0;  // the revision read; 0 = must not exist
};

struct LeaseClaim {
  ExperimentKey experiment{};
  int64_t epoch = 0;
};

// What one Commit writes: data, no behaviour. Observations and deletions refer to `experiment`.
struct Batch {
  ExperimentKey experiment{};      // of everything in the batch
  std::optional<int64_t> epoch{};  // of the lease that the writer holds
  std::optional<Write<v1::Experiment>> put{};
  std::vector<Write<v1::Trial>> trials{};
  std::vector<Write<v1::Attempt>> attempts{};
  std::vector<Write<v1::Checkpoint>> checkpoints{};
  std::vector<StoredObservation> observations{};
  std::vector<v1::Event> events{};
  std::vector<v1::Intent> intents{};    // ids are set by the store; see CheckConditions
  std::vector<int64_t> intents_done{};  // ids to remove
  // Rows of this attempt and of earlier ones no longer count if their step is greater, a counted
  // step than its metric's entry in `counts` (0 if it has none). After `observations`.
  struct Supersede {
    int64_t trial = 0;
    int32_t attempt = 0;
    int64_t past_step = 0;  // -1 = all
    std::map<std::string, int64_t> counts{};
  };
  std::vector<Supersede> supersede{};
  struct Fence {
    int64_t trial = 0;
    int32_t attempt = 0;
    std::string token{};
  };
  std::vector<Fence> fences{};
  bool delete_experiment = false;  // with all that belongs to it; the rest must be empty
};

struct TrialQuery {
  ExperimentKey experiment{};
  bool live_only = false;  // not in a terminal phase
  int64_t after_number = 0;
  int64_t changed_after = 0;  // revision
  int64_t limit = -1;         // -1 = all
};

struct AttemptQuery {
  ExperimentKey experiment{};
  int64_t trial = 0;        // 0 = of all trials
  bool open_only = false;   // not closed
  int64_t after_trial = 0;  // goes on after this attempt, in the order of the list
  int32_t after_number = 0;
  int64_t changed_after = 0;  // revision
  int64_t limit = -1;         // -1 = all
};

struct ObservationQuery {
  TrialKey trial{};
  std::string metric{};  // "" = all
  bool include_superseded = false;
};

struct EventQuery {
  ExperimentKey experiment{};
  int64_t after_id = 0;
  int64_t limit = -1;
};

struct Change {
  enum class Kind { kExperiment, kTrial, kAttempt, kIntent, kDeleted };
  Kind kind = Kind::kExperiment;
  ExperimentKey experiment{};
  int64_t trial = 0;
  int64_t revision = 0;
};

struct LeaseRequest {
  ExperimentKey experiment{};
  std::string holder{};  // base/process_id
  absl::Time now{};
  absl::Duration ttl{};
  std::optional<int64_t> dead_epoch{};  // take over this epoch even if it has not expired: the
                                        // caller knows that its holder is dead
};

class Store {
 public:
  virtual ~Store() = default;

  virtual StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) = 0;
  // Of one namespace, or of all ("" ), by namespace and name.
  virtual StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(
      const std::string& ns) = 0;
  virtual StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key) = 0;
  // By number. The lists below are by their keys, too.
  virtual StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query) = 0;
  virtual StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query) = 0;
  virtual StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key) = 0;
  // By attempt, step and metric.
  virtual StatusOr<std::vector<StoredObservation>> ListObservations(
      const ObservationQuery& query) = 0;
  virtual StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query) = 0;
  virtual StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) = 0;

  // The revision of the newest Commit; 0 in an empty store.
  virtual StatusOr<int64_t> Revision() = 0;
  // At most `limit` rows (-1 = all) with a revision greater than `after`, in the order of their
  // revisions. A row that changed twice appears once, with its newest revision. The rows of one
  // Commit are never parted, so that asking again after the last revision misses none: if the
  // first Commit alone has more than `limit`, it comes whole.
  virtual StatusOr<std::vector<Change>> Changes(int64_t after, int64_t limit) = 0;
  // Returns the revision as soon as it is greater than `after`, or else what it is when `timeout`
  // has passed. Whichever process commits: in this one it wakes at once, in others within 0.2 s.
  // Any number of threads may wait; the store must outlive them. By default it asks again and
  // again.
  virtual StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout);
  // From now on AwaitChange returns within a few milliseconds, in the threads that wait as well:
  // for a process that ends and joins them one after the other.
  virtual void EndWaits() {}

  // Durable and atomic; returns its revision. See above for refusals.
  virtual StatusOr<int64_t> Commit(const Batch& batch) = 0;

  // Acquires, or renews if the holder already has it (the epoch then stays). kAlreadyExists if
  // another holds it and it has neither expired nor the epoch `dead_epoch`.
  virtual StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request) = 0;
  // Without a holder, and with the epoch reached so far, if no process has it.
  virtual StatusOr<v1::Lease> GetLease(const ExperimentKey& key) = 0;
  // Gives it up at once; the epoch is remembered. OK if it is no longer ours.
  virtual Status ReleaseLease(const LeaseClaim& claim) = 0;
};

struct StoreInfo {
  std::string name;  // the scheme of its address: sqlite, memory, postgres
  std::string help;
  std::vector<std::string> aliases{};  // other schemes that mean the same
  // `address` is what follows "<scheme>:", "read_only" never writes nor migrates.
  StatusOr<std::unique_ptr<Store>> (*open)(const std::string& address, bool read_only);
  // For the contract suite: an address (after the scheme) of an empty store, in `folder` if it
  // needs files; nullopt if this machine has none to offer.
  std::optional<std::string> (*scratch)(const std::string& folder);
};

// "sqlite:PATH", "postgres://USER@HOST:PORT/DATABASE", "memory:". kInvalidArgument, naming the
// schemes, for any other.
StatusOr<std::unique_ptr<Store>> Open(const std::string& address, bool read_only = false);

// How the threads of one process learn that their store has a newer Commit. Held by each store: a
// thread that commits raises the signal, one that follows the feed waits for it. Thread-safe; must
// outlive those who wait.
class ChangeSignal {
 public:
  // There is a Commit with this revision. An older one than is known changes nothing.
  void Notify(int64_t revision);
  // Until it was raised above `after`, or `timeout` has passed. Returns the newest revision known.
  int64_t Await(int64_t after, absl::Duration timeout);
  // Ends the waits there are, and makes those to come short. Store::EndWaits.
  void EndWaits();
  bool ending();

 private:
  Mutex mutex_;
  CondVar notified_;
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

// Store::AwaitChange for a store that other processes write as well, who raise no signal here: it
// asks for the revision ten times a second, and at once when `signal` is raised.
StatusOr<int64_t> AwaitByPolling(Store* store, ChangeSignal* signal, int64_t after,
                                 absl::Duration timeout);

}  // namespace shirabe::db
