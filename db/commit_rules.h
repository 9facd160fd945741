// What every store refuses and grants, as pure functions: the stores differ in where their rows
// lie, never in these answers or their words. Called by the stores only.
//
// The order of refusals is the same everywhere, too: a malformed batch (kInvalidArgument), an
// experiment that is there already (kAborted) or not there (kNotFound), a lease that is not the
// writer's (IsLeaseLost), a stale fence (kPermissionDenied), an intent whose condition does
// not hold or a revision that moved on (kAborted), a trial that does not exist (kNotFound).
// Functions without state, safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "base/text/message_check.h"
#include "db/store.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::db {

// kInvalidArgument if the batch contradicts itself: a record of another experiment, a key put
// twice, a number below 1, a metric without a name, a deletion beside other writes; or if a text in
// it is not UTF-8, for such a record could be written but never be read again.
Status ValidateBatch(const Batch& batch);

// kInvalidArgument, naming the field, if a text of the message is not UTF-8; `what` it is.
Status CheckUtf8(const google::protobuf::Message& message, const std::string& what);

// Whether the batch creates its experiment. Such a batch needs no lease: what does not exist has
// no owner who could be overtaken.
bool Creates(const Batch& batch);

// LeaseLostError, naming the holder, if the batch writes what only the holder may write and was not
// written under the present epoch.
Status CheckEpoch(const Batch& batch, const v1::Lease& lease);

// The same for a holder that makes room for its deletion.
Status CheckClaim(const LeaseClaim& claim, const v1::Lease& lease);

// The lease after `request`: renewed, or with the next epoch. kAlreadyExists if another holds it.
StatusOr<v1::Lease> GrantLease(const LeaseRequest& request, const v1::Lease& lease);

// The lease as it stands where its holder has renewed all leases of theirs: until the later time.
v1::Lease LeaseUntil(v1::Lease lease, absl::Time renewed);

// The lease once its experiment is deleted: without a holder, and the epoch has moved on, so that a
// late write of the former holder cannot reach a new experiment of the same name.
v1::Lease LeaseAfterDeletion(v1::Lease lease);

// An unheld lease of epoch 0.
v1::Lease NoLease(const ExperimentKey& key);

// kPermissionDenied unless the stored attempt (null = there is none) is open and has this token.
Status CheckFence(const Batch& batch, const Batch::Fence& fence, const v1::Attempt* attempt);

// Whether an intent of the batch is conditional: only then the stores read what it depends on.
bool HasConditions(const Batch& batch);

// An intent with a generation is conditional: kAborted unless the experiment has that
// metadata.generation and no SCALE intent waits for its owner, who will raise it. So of any number
// of writers, in any number of processes, that have read the same generation, one changes the
// experiment. `waiting` are the experiment's intents.
Status CheckConditions(const Batch& batch, int64_t generation,
                       const std::vector<v1::Intent>& waiting);

// Whether the row no longer counts because of `supersede`, which is of its trial.
bool Supersedes(const Batch::Supersede& supersede, const StoredObservation& row);

// kAborted: `what` was to be written from revision `expected` (0 = must not exist), but is at
// `current` (0 = does not exist).
Status Conflict(const std::string& what, int64_t expected, int64_t current);
Status NoExperiment(const ExperimentKey& key);
Status NoTrial(const TrialKey& key);
Status ReadOnly(const std::string& address);

// A record as messages name it: "trial mnist-7", "attempt mnist-7-a1".
std::string Describe(const v1::Experiment& experiment);
std::string Describe(const v1::Trial& trial);
std::string Describe(const v1::Attempt& attempt);
std::string Describe(const v1::Checkpoint& checkpoint);
std::string Describe(const v1::Event& event);
std::string Describe(const v1::Intent& intent);

bool IsLive(const v1::Trial& trial);
bool IsOpen(const v1::Attempt& attempt);

// Adds the next change, in the order of revisions, to at most `limit` others (-1 = no limit).
// False once there are enough: then no part of a Commit is in the list without its rest. A first
// Commit that is larger than the limit is taken whole, so that a reader always gets on.
bool AddChange(const Change& change, int64_t limit, std::vector<Change>* changes);

// "This experiment is not yours any more": the one error that makes an owner let an experiment go.
// Said by the check of a write's epoch (CheckEpoch) and by an owner that compares a lease with its
// own; recognised by what the status carries and not by its code, which a file or a call may also
// give. Pure functions.

// kFailedPrecondition, for callers who only show it.
Status LeaseLostError(const std::string& message);
// Also of one that Prefix has put words before.
bool IsLeaseLost(const Status& status);

// What the stores ask of a record that they have read, beside that it is a message. Pure functions.

// kUnimplemented where a newer version wrote values into it that this one does not know. Not of
// experiments: those of everybody are listed together, and one must not hide the others; they are
// looked at when they are loaded to be run.
template <class Record>
Status CheckRecord(const Record& record) {
  if constexpr (std::is_same_v<Record, v1::Experiment>) return absl::OkStatus();
  return CheckEnums(record);
}

}  // namespace shirabe::db
