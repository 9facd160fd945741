#include "client/client.h"

#include <algorithm>
#include <utility>

#include "base/timestamp.h"
#include "client/wire_format.h"

namespace shirabe::client {
namespace {

using google::protobuf::DescriptorPool;

constexpr absl::Duration kMaxAwait = absl::Seconds(50);  // the server waits a minute at most

}  // namespace

const Method& MethodOf(const std::string& name) {
  static const auto& service =
      *DescriptorPool::generated_pool()->FindServiceByName("shirabe.v1.Shirabe");
  const Method* method = service.FindMethodByName(name);
  CHECK(method != nullptr);
  return *method;
}

StatusOr<v1::Experiment> Client::GetExperiment(const ExperimentKey& key) {
  return Get<v1::Experiment>("GetExperiment", ToWire(key));
}

StatusOr<std::vector<v1::Experiment>> Client::ListExperiments(const std::string& ns) {
  return List<v1::Experiment>("ListExperiments", ToWire(ExperimentKey{ns, ""}));
}

StatusOr<v1::Trial> Client::GetTrial(const TrialKey& key) {
  return Get<v1::Trial>("GetTrial", ToWire(key));
}

StatusOr<std::vector<v1::Trial>> Client::ListTrials(const db::TrialQuery& query) {
  return List<v1::Trial>("ListTrials", ToWire(query));
}

StatusOr<std::vector<v1::Attempt>> Client::ListAttempts(const db::AttemptQuery& query) {
  return List<v1::Attempt>("ListAttempts", ToWire(query));
}

StatusOr<std::vector<v1::Checkpoint>> Client::ListCheckpoints(const TrialKey& key) {
  return List<v1::Checkpoint>("ListCheckpoints", ToWire(key));
}

StatusOr<std::vector<db::StoredObservation>> Client::ListObservations(
    const db::ObservationQuery& query) {
  std::vector<db::StoredObservation> rows;
  RETURN_IF_ERROR(EachObservation(query, [&](db::StoredObservation row) {
    rows.push_back(std::move(row));
    return absl::OkStatus();
  }));
  return rows;
}

Status Client::EachObservation(const db::ObservationQuery& query,
                               const std::function<Status(db::StoredObservation row)>& row) {
  return Call(MethodOf("ListObservations"), ToWire(query), [&](auto& block) -> Status {
    for (v1::ObservationRecord& record :
         *static_cast<v1::ObservationBlock&>(block).mutable_rows()) {
      RETURN_IF_ERROR(row(FromWire(std::move(record))));
    }
    return absl::OkStatus();
  });
}

StatusOr<std::vector<v1::Event>> Client::ListEvents(const db::EventQuery& query) {
  return List<v1::Event>("ListEvents", ToWire(query));
}

StatusOr<std::vector<db::Change>> Client::Changes(int64_t after) {
  v1::Revision request;
  request.set_revision(after);
  std::vector<db::Change> changes;
  RETURN_IF_ERROR(Call(MethodOf("ListChanges"), request, [&](auto& record) {
    changes.push_back(FromWire(static_cast<const v1::ChangeRecord&>(record)));
    return absl::OkStatus();
  }));
  return changes;
}

StatusOr<int64_t> Client::AwaitChange(int64_t after, absl::Duration timeout) {
  v1::AwaitChangeRequest request;
  request.set_after(after);
  *request.mutable_patience() = ToProto(std::min(timeout, kMaxAwait));
  ASSIGN_OR_RETURN(const auto reply, Get<v1::Revision>("AwaitChange", request));
  return reply.revision();
}

StatusOr<std::string> Client::Holder(const ExperimentKey& key) {
  ASSIGN_OR_RETURN(const auto reply, Get<v1::Text>("GetHolder", ToWire(key)));
  return reply.text();
}

StatusOr<v1::LogChunk> Client::ReadLog(const AttemptKey& key, int64_t offset, int64_t max_bytes) {
  v1::ReadLogRequest request;
  *request.mutable_trial() = ToWire(key.trial);
  request.set_attempt(key.number);
  request.set_offset(offset);
  request.set_max_bytes(max_bytes);
  return Get<v1::LogChunk>("ReadLog", request);
}

StatusOr<v1::SuggestReply> Client::Suggest(const v1::Experiment& experiment, int count) {
  v1::SuggestRequest request;
  *request.mutable_experiment() = experiment;
  request.set_count(count);
  return Get<v1::SuggestReply>("Suggest", request);
}

StatusOr<experiment::Submitted> Client::Submit(const v1::Experiment& experiment,
                                               const experiment::Precondition& precondition) {
  v1::SubmitRequest request;
  *request.mutable_experiment() = experiment;
  request.set_generation(precondition.generation);
  request.set_absent(precondition.absent);
  request.set_present(precondition.present);
  ASSIGN_OR_RETURN(const auto reply, Get<v1::SubmitReply>("SubmitExperiment", request));
  return experiment::Submitted{.created = reply.created(), .changed = reply.changed()};
}

Status Client::Send(const ExperimentKey& key, const v1::Intent& intent) {
  v1::Intent request = intent;
  request.set_namespace_(key.ns);
  request.set_experiment(key.name);
  return Get<v1::Done>("SendIntent", request).status();
}

Status Client::Delete(const ExperimentKey& key, absl::Duration patience, const Wait& wait) {
  v1::DeleteRequest request;
  *request.mutable_experiment() = ToWire(key);
  *request.mutable_patience() = ToProto(patience);
  return DeleteExperiment(request, wait);
}

StatusOr<v1::AskReply> Client::Ask(const ExperimentKey& key, const std::string& caller,
                                   absl::Duration patience) {
  v1::AskRequest request;
  *request.mutable_experiment() = ToWire(key);
  request.set_caller(caller);
  *request.mutable_patience() = ToProto(patience);
  return Get<v1::AskReply>("Ask", request);
}

StatusOr<experiment::ReportReply> Client::Tell(const experiment::Report& report) {
  ASSIGN_OR_RETURN(auto reply, Get<v1::TellReply>("Tell", ToWire(report)));
  return experiment::ReportReply{.stop = std::move(*reply.mutable_stop()),
                                 .ignored = reply.ignored()};
}

}  // namespace shirabe::client
