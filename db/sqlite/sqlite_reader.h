// The reads of the SQLite store. Each is one statement, so that it sees one snapshot, and takes a
// connection for as long as it lasts; concurrent reads take different ones. The contract of each is
// that of the method of the same name in db/store.h. Called by db/sqlite/sqlite_store, and FindName
// by db/sqlite/sqlite_commit inside its transaction.
#pragma once

#include <string>
#include <vector>

#include "db/sqlite/sqlite.h"
#include "db/store.h"

namespace shirabe::db {

// A name's row: the integer key of its experiment, its lease, and whether it exists at present.
struct NameRow {
  int64_t id = 0;        // 0: the name was never used
  int64_t revision = 0;  // of the experiment; 0: there is none now
  v1::Lease lease;
};
StatusOr<NameRow> FindName(const ExperimentKey& key, SqliteConnection* db);
// All that it holds.
StatusOr<std::vector<LeaseClaim>> ListLeases(const std::string& holder, SqliteConnection* db);
StatusOr<int64_t> CountExperiments(const std::string& ns, SqliteConnection* db);

StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key, SqliteConnection* db);
StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns,
                                                                 SqliteConnection* db);
StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key, SqliteConnection* db);
StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query,
                                                       SqliteConnection* db);
StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query,
                                                           SqliteConnection* db);
StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key,
                                                                 SqliteConnection* db);
StatusOr<std::vector<StoredObservation>> ListObservations(const ObservationQuery& query,
                                                          SqliteConnection* db);
StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query, SqliteConnection* db);
StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key, SqliteConnection* db);
StatusOr<std::vector<Change>> ListChanges(int64_t after, int64_t limit, SqliteConnection* db);

}  // namespace shirabe::db
