// The plain values of client.h as the messages of proto/shirabe/v1/api.proto, and back: what the
// remote client sends and the server's gRPC service reads. Pure functions, any thread.
#pragma once

#include "client/client.h"
#include "client/import_batch.h"
#include "proto/shirabe/v1/api.pb.h"

namespace shirabe::client {

v1::ExperimentRef ToWire(const ExperimentKey& key);
v1::TrialRef ToWire(const TrialKey& key);
v1::ListTrialsRequest ToWire(const db::TrialQuery& query);
v1::ListAttemptsRequest ToWire(const db::AttemptQuery& query);
v1::ListObservationsRequest ToWire(const db::ObservationQuery& query);
v1::ListEventsRequest ToWire(const db::EventQuery& query);
v1::ObservationRecord ToWire(const db::StoredObservation& row);
v1::ChangeRecord ToWire(const db::Change& change);
v1::LogChunk ToWire(const LogChunk& chunk);
v1::SuggestReply ToWire(const Candidates& candidates);
v1::AskReply ToWire(const Asked& asked);
v1::TellRequest ToWire(const experiment::Report& report);
v1::ImportRequest ToWire(const Imported& imported);

// What a caller asks for; kInvalidArgument if it carries a key that no record can have.
StatusOr<ExperimentKey> FromWire(const v1::ExperimentRef& ref);
StatusOr<TrialKey> FromWire(const v1::TrialRef& ref);
StatusOr<AttemptKey> FromWire(const v1::ReadLogRequest& request);
StatusOr<ExperimentKey> FromWire(const v1::Intent& intent);
StatusOr<db::TrialQuery> FromWire(const v1::ListTrialsRequest& request);
StatusOr<db::AttemptQuery> FromWire(const v1::ListAttemptsRequest& request);
StatusOr<db::ObservationQuery> FromWire(const v1::ListObservationsRequest& request);
StatusOr<db::EventQuery> FromWire(const v1::ListEventsRequest& request);
StatusOr<experiment::Report> FromWire(const v1::TellRequest& request);
// And for what is no JSON.
StatusOr<Imported> FromWire(const v1::ImportRequest& request);
// A namespace, or "" for all of them.
StatusOr<std::string> NamespaceFromWire(const std::string& ns);

// What a server answers.
db::StoredObservation FromWire(const v1::ObservationRecord& record);
db::Change FromWire(const v1::ChangeRecord& record);
LogChunk FromWire(const v1::LogChunk& chunk);
Candidates FromWire(const v1::SuggestReply& reply);
Asked FromWire(const v1::AskReply& reply);

// At least zero; what is no duration is zero.
absl::Duration FromWire(const google::protobuf::Duration& duration);

}  // namespace shirabe::client
