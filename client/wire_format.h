// Plain values as the messages of proto/shirabe/v1/api.proto, and back: keys, the queries and rows
// of db/store.h, reports, and what is imported. Pure functions, any thread.
#pragma once

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "client/import_batch.h"
#include "db/store.h"
#include "experiment/report_queue.h"
#include "google/protobuf/duration.pb.h"
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
v1::TellRequest ToWire(const experiment::Report& report);
v1::ImportRequest ToWire(const std::string& ns, const Imported& imported);

// Keys as they come: the server checks them where they enter, the command line as well.
ExperimentKey FromWire(const v1::ExperimentRef& ref);
TrialKey FromWire(const v1::TrialRef& ref);
db::TrialQuery FromWire(const v1::ListTrialsRequest& request);
db::AttemptQuery FromWire(const v1::ListAttemptsRequest& request);
db::ObservationQuery FromWire(const v1::ListObservationsRequest& request);
db::EventQuery FromWire(const v1::ListEventsRequest& request);
experiment::Report FromWire(const v1::TellRequest& request);
// kInvalidArgument for what is no JSON, and for a trial that has not ended.
StatusOr<Imported> FromWire(const v1::ImportRequest& request);

// What a server answers.
db::StoredObservation FromWire(v1::ObservationRecord&& record);
db::Change FromWire(const v1::ChangeRecord& record);

// At least zero; what is no duration is zero.
absl::Duration FromWire(const google::protobuf::Duration& duration);

}  // namespace shirabe::client
