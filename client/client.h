// What can be asked of a Shirabe: one interface over a store of this machine (local_client.h), over
// a server (remote_client.h), and, within the server, over another one for a caller who may not do
// everything (service/common/guarded_client.h). It speaks in records and plain values, so that a
// remote one can do all of it: no SQL, no open files. Implementations are thread-safe. Errors are
// those of db/store.h and experiment/submission.h, and kPermissionDenied; tokens of attempts are
// never handed out, except by Ask to the caller that runs the trial.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "experiment/report_queue.h"
#include "experiment/submission.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

struct Imported;

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

// The trial that the caller is to run; or, without one, why there is none.
struct Asked {
  std::optional<v1::Trial> trial;
  int32_t attempt = 0;
  std::string token;     // of that attempt: authenticates Tell
  std::string reason;    // "the experiment has ended: 20 trials are done"
  bool ended = false;    // there will never be one
  bool pending = false;  // there may soon be one, since it has been asked for
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
  virtual StatusOr<std::vector<db::StoredObservation>> ListObservations(
      const db::ObservationQuery& query) = 0;
  virtual StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) = 0;

  // To follow: the revision now, and what has changed since one. See db/store.h.
  virtual StatusOr<int64_t> Revision() = 0;
  virtual StatusOr<std::vector<db::Change>> Changes(int64_t after) = 0;
  // The revision, once it is greater than `after` or `timeout` has passed.
  virtual StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) = 0;

  // Who runs the experiment, in words ("process 4711 on host a"); "" if no process does.
  virtual StatusOr<std::string> Holder(const ExperimentKey& key) = 0;

  // At most `max_bytes` from `offset`. kNotFound if the attempt has no log (yet).
  virtual StatusOr<LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) = 0;
  // Where a user finds that log.
  virtual std::string LogLocation(const AttemptKey& key) = 0;

  // The next points for an experiment, stored or not (then as if it had just been created).
  virtual StatusOr<Candidates> Suggest(const v1::Experiment& experiment, int count) = 0;

  // A new experiment, or the same search with other counts, if the precondition holds.
  virtual StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment,
                                                 const experiment::Precondition& precondition) = 0;
  // Stores it as an experiment that has ended; kAlreadyExists if there is one of its name. Returns
  // what was left out, in words.
  virtual StatusOr<std::vector<std::string>> Import(const std::string& ns,
                                                    const Imported& imported) = 0;
  virtual Status Send(const ExperimentKey& key, const v1::Intent& intent) = 0;
  // Ends it, waits until nothing of it runs, and removes its records and files. kDeadlineExceeded,
  // naming who runs it, if that takes longer than `patience`; kCancelled if `wait` was interrupted.
  virtual Status Delete(const ExperimentKey& key, absl::Duration patience, const Wait& wait) = 0;

  // The trial of an ask-and-tell experiment that the caller of this name has open, or a new one:
  // asking again after a lost answer gives the same trial. Waits for the algorithm.
  virtual StatusOr<Asked> Ask(const ExperimentKey& key, const std::string& caller,
                              absl::Duration patience) = 0;
  // What has come of asking, without asking anew, and without waiting.
  virtual StatusOr<Asked> FindAskReply(const ExperimentKey& key, const std::string& caller) = 0;
  // Durable when it returns; doing it again changes nothing. kPermissionDenied if the attempt is no
  // longer the current one.
  virtual StatusOr<experiment::ReportReply> Tell(const experiment::Report& report) = 0;
};

}  // namespace shirabe::client
