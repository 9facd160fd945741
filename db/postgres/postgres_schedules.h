// The schedules of the PostgreSQL store: reads, each one statement, as in postgres_reader.h; and
// what the writes of one transaction are checked against, as in postgres_state.h. The contracts are
// those of db/schedules.h. Called by db/postgres/postgres_store and postgres_commit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/postgres/postgres_connection.h"
#include "db/postgres/postgres_state.h"
#include "db/schedules.h"

namespace shirabe::db {

StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key,
                                                         PostgresConnection* db);
StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(const std::string& ns,
                                                                        PostgresConnection* db);

class ScheduleState {
 public:
  // First: what will be written.
  void Want(const ScheduleWrite& write, PostgresState* state);
  // Then: the statement that reads it, if anything is wanted, and its result, at `*next`.
  void Send(PostgresConnection* db) const;
  void ParseResults(const std::vector<PostgresResult>& results, size_t* next);
  // Then, for each write in its turn. 0 = it is not there.
  int64_t RevisionOf(const ExperimentKey& key) const;
  // Sends it; its result comes with the connection's next Receive. Revision 0: it is deleted.
  void Write(const ScheduleWrite& write, int64_t revision, PostgresConnection* db);

  // As the connection sees it now.
  static StatusOr<int64_t> ReadRevision(const ExperimentKey& key, PostgresConnection* db);

 private:
  std::map<ExperimentKey, int64_t> revisions_;
};

}  // namespace shirabe::db
