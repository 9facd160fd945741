// What can be asked of a Shirabe: the methods of shirabe.v1.Shirabe (proto/shirabe/v1/api.proto),
// by one interface over a store of this machine (local_client.h), over a server (remote_client.h),
// and, within the server, over another one for a caller who may not do everything
// (service/common/guarded_client.h). The messages of the .proto are its schema: an implementation
// answers any method by its descriptor, and only the client over a store knows what each one does.
// What has types below is for callers, and made of the same calls. Implementations are thread-safe.
// Errors are those of db/store.h and experiment/submission.h, and kPermissionDenied; tokens of
// attempts are never handed out, except by Ask to the caller that runs the trial.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "experiment/report_queue.h"
#include "experiment/submission.h"
#include "google/protobuf/message.h"
#include "proto/shirabe/v1/api.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// One of shirabe.v1.Shirabe.
using Method = google::protobuf::MethodDescriptor;
// The method of that name, such as "GetTrial"; there must be one.
const Method& MethodOf(const std::string& name);

// Gets the reply of a call, or each of a stream in turn, and may move it. An error ends the call,
// which returns it.
using Sink = std::function<Status(google::protobuf::Message& reply)>;

// Waits for the given time; false if the user interrupted it. The one way in which a client waits.
using Wait = std::function<bool(absl::Duration)>;

class Client {
 public:
  virtual ~Client() = default;

  // The one way in. `request` is of the method's type, as generated from the .proto.
  virtual Status Call(const Method& method, const google::protobuf::Message& request,
                      const Sink& sink) = 0;
  // Where a user finds the log of an attempt.
  virtual std::string LogLocation(const AttemptKey& key) = 0;
  // For a caller who may be interrupted: ends it, waits until nothing of it runs,
  // and removes its records and files. kDeadlineExceeded, naming who runs it, if that takes longer
  // than its `patience`; kCancelled if `wait` was interrupted.
  virtual Status DeleteExperiment(const v1::DeleteRequest& request, const Wait& wait) = 0;

  // Any method, in types: Get<v1::Text>("GetHolder", ref); of a stream all replies.
  template <class Reply>
  StatusOr<Reply> Get(const std::string& method, const google::protobuf::Message& request);
  template <class Reply>
  StatusOr<std::vector<Reply>> List(const std::string& method,
                                    const google::protobuf::Message& request);

  StatusOr<v1::Experiment> GetExperiment(const ExperimentKey& key);
  // Of one namespace, or of all ("").
  StatusOr<std::vector<v1::Experiment>> ListExperiments(const std::string& ns);
  StatusOr<v1::Trial> GetTrial(const TrialKey& key);
  StatusOr<std::vector<v1::Trial>> ListTrials(const db::TrialQuery& query);
  StatusOr<std::vector<v1::Attempt>> ListAttempts(const db::AttemptQuery& query);
  StatusOr<std::vector<v1::Checkpoint>> ListCheckpoints(const TrialKey& key);
  StatusOr<std::vector<db::StoredObservation>> ListObservations(const db::ObservationQuery& query);
  // The same, one after the other, for those who must not hold all of them. An error of `row` ends
  // it, and is returned.
  Status EachObservation(const db::ObservationQuery& query,
                         const std::function<Status(db::StoredObservation row)>& row);
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query);
  // To follow: the revision now, and what has changed since one. See db/store.h.
  StatusOr<int64_t> Revision() { return AwaitChange(-1, absl::ZeroDuration()); }
  StatusOr<std::vector<db::Change>> Changes(int64_t after);
  // The revision, once it is greater than `after`, or `timeout` or a minute has passed.
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout);
  // Who runs the experiment, in words ("process 4711 on host a"); "" if no process does.
  StatusOr<std::string> Holder(const ExperimentKey& key);
  // At most `max_bytes` from `offset`. Logs only grow; reading on from `next` never misses a byte.
  // kNotFound if the attempt has no log (yet).
  StatusOr<v1::LogChunk> ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes);
  // The next points for an experiment, stored or not (then as if it had just been created).
  StatusOr<v1::SuggestReply> Suggest(const v1::Experiment& experiment, int count);
  // A new experiment, or the same search with other counts, if the precondition holds.
  StatusOr<experiment::Submitted> Submit(const v1::Experiment& experiment,
                                         const experiment::Precondition& precondition);
  Status Send(const ExperimentKey& key, const v1::Intent& intent);
  Status Delete(const ExperimentKey& key, absl::Duration patience, const Wait& wait);
  // The trial of an ask-and-tell experiment that the caller of this name has open, or a new one:
  // asking again after a lost answer gives the same trial. Waits for the algorithm.
  StatusOr<v1::AskReply> Ask(const ExperimentKey& key, const std::string& caller,
                             absl::Duration patience);
  // Durable when it returns; doing it again changes nothing. kPermissionDenied if the attempt is no
  // longer the current one.
  StatusOr<experiment::ReportReply> Tell(const experiment::Report& report);
};

template <class Reply>
StatusOr<Reply> Client::Get(const std::string& method, const google::protobuf::Message& request) {
  CHECK(MethodOf(method).output_type() == Reply::descriptor());
  Reply reply;
  RETURN_IF_ERROR(Call(MethodOf(method), request, [&](google::protobuf::Message& got) {
    reply = std::move(static_cast<Reply&>(got));
    return absl::OkStatus();
  }));
  return reply;
}

template <class Reply>
StatusOr<std::vector<Reply>> Client::List(const std::string& method,
                                          const google::protobuf::Message& request) {
  CHECK(MethodOf(method).output_type() == Reply::descriptor());
  std::vector<Reply> replies;
  RETURN_IF_ERROR(Call(MethodOf(method), request, [&](google::protobuf::Message& got) {
    replies.push_back(std::move(static_cast<Reply&>(got)));
    return absl::OkStatus();
  }));
  return replies;
}

}  // namespace shirabe::client
