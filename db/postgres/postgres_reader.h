// The reads of the PostgreSQL store. Each is one statement, so that it sees one snapshot. The
// contract of each is that of the method of the same name in db/store.h; errors that are not the
// caller's leave the connection unusable. Called by db/postgres/postgres_store, on a connection of
// its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/postgres/postgres_connection.h"
#include "db/store.h"

namespace shirabe::db {

StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key, PostgresConnection* db);
StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns,
                                                                 PostgresConnection* db);
StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key, PostgresConnection* db);
StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query,
                                                       PostgresConnection* db);
StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query,
                                                           PostgresConnection* db);
StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key,
                                                                 PostgresConnection* db);
StatusOr<std::vector<StoredObservation>> ListObservations(const ObservationQuery& query,
                                                          PostgresConnection* db);
StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query, PostgresConnection* db);
StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key, PostgresConnection* db);
StatusOr<int64_t> CountExperiments(const std::string& ns, PostgresConnection* db);
// Whether any rows belong to it.
StatusOr<bool> HasRows(const ExperimentKey& key, PostgresConnection* db);
// All that it holds.
StatusOr<std::vector<LeaseClaim>> ListLeases(const std::string& holder, PostgresConnection* db);
StatusOr<v1::Lease> GetLease(const ExperimentKey& key, PostgresConnection* db);
StatusOr<int64_t> Revision(PostgresConnection* db);
StatusOr<std::vector<Change>> ListChanges(int64_t after, int64_t limit, PostgresConnection* db);

// A lease as its row has it; the expiry is in nanoseconds.
v1::Lease LeaseOfRow(const ExperimentKey& key, int64_t epoch, const std::string& holder,
                     int64_t expiry);

// Every statement above, for tests.
std::vector<PostgresStatement> PostgresReadStatements();

}  // namespace shirabe::db
