// What the command line can ask of a Shirabe: one interface over a store of this machine
// (local_client.h) or over a server. It speaks in records and plain values, so that a remote one
// can do all of it: no SQL, no open files. Implementations are thread-safe. Errors are those of
// db/store.h and experiment/submit.h; tokens of attempts are never handed out.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "experiment/submit.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// A piece of an attempt's log. Logs only grow; reading on from `next` never misses a byte.
struct LogChunk {
  std::string text;
  int64_t next = 0;     // offset of the byte after it
  bool at_end = false;  // there was no more when it was read
};

// One point that the algorithm would try next. Nothing of it is stored.
struct Candidate {
  std::vector<v1::Assignment> assignments;
  std::string explanation;  // why this point
};

struct Candidates {
  std::vector<Candidate> points;
  std::string reason;  // why there are fewer than asked for; "" if there are not
};

// Waits for the given time; false if the user interrupted it. The one way in which a client waits.
using Wait = std::function<bool(absl::Duration)>;

class Client {
 public:
  virtual ~Client() = default;

  virtual StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key) = 0;
  // Of one namespace, or of all ("").
  virtual StatusOr<std::vector<v1::Experiment>> ListExperiments(const std::string& ns) = 0;
  virtual StatusOr<v1::Trial> GetTrial(const TrialKey& key) = 0;
  virtual StatusOr<std::vector<v1::Trial>> ListTrials(const db::TrialQuery& query) = 0;
  virtual StatusOr<std::vector<v1::Attempt>> ListAttempts(const db::AttemptQuery& query) = 0;
  virtual StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const TrialKey& key) = 0;
  virtual StatusOr<std::vector<db::ObservationRow>> ListObservations(
      const db::ObservationQuery& query) = 0;
  virtual StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) = 0;

  // To follow: the revision now, and what has changed since one. See db/store.h.
  virtual StatusOr<int64_t> Revision() = 0;
  virtual StatusOr<std::vector<db::Change>> Changes(int64_t after) = 0;

  // Who runs the experiment, in words ("process 4711 on host a"); "" if nobody does.
  virtual StatusOr<std::string> Holder(const ExperimentKey& key) = 0;

  // At most `max_bytes` from `offset`. kNotFound if the attempt has no log (yet).
  virtual StatusOr<LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) = 0;
  // Where a person finds that log.
  virtual std::string LogPlace(const AttemptKey& key) = 0;

  // The next points for an experiment, stored or not (then as if it had just been created).
  virtual StatusOr<Candidates> Suggest(const v1::Experiment& experiment, int count) = 0;

  virtual StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment) = 0;
  virtual Status Send(const ExperimentKey& key, const v1::Intent& intent) = 0;
  // Ends it, waits until nothing of it runs, and removes its records and files. kDeadlineExceeded,
  // naming who runs it, if that takes longer than `patience`; kCancelled if `wait` was interrupted.
  virtual Status Delete(const ExperimentKey& key, absl::Duration patience, const Wait& wait) = 0;
};

}  // namespace shirabe::client
