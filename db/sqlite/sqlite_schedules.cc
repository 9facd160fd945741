#include "db/sqlite/sqlite_schedules.h"

#include "db/sqlite/sqlite_commit.h"

namespace shirabe::db {
namespace {

Status ReadScheduleRow(const Statement& statement, Versioned<v1::ScheduledExperiment>* row) {
  row->revision = statement.Int(0);
  return statement.Parse(1, "a schedule", &row->record);
}

// Not of an older file that is only read.
StatusOr<bool> HasSchedules(SqliteConnection* db) {
  ASSIGN_OR_RETURN(const int64_t tables,
                   db->ReadInt("SELECT count(*) FROM sqlite_schema WHERE name = 'schedule'"));
  return tables > 0;
}

// 0 = it is not there.
StatusOr<int64_t> ScheduleRevision(const ExperimentKey& key, SqliteConnection* db) {
  Statement statement =
      db->Prepare("SELECT revision FROM schedule WHERE namespace = ? AND name = ?");
  statement.Bind(key.ns).Bind(key.name);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  return found ? statement.Int(0) : 0;
}

}  // namespace

StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key,
                                                         SqliteConnection* db) {
  ASSIGN_OR_RETURN(const bool there, HasSchedules(db));
  if (!there) return NoSchedule(key);
  Statement statement =
      db->Prepare("SELECT revision, body FROM schedule WHERE namespace = ? AND name = ?");
  statement.Bind(key.ns).Bind(key.name);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return NoSchedule(key);
  Versioned<v1::ScheduledExperiment> row;
  RETURN_IF_ERROR(ReadScheduleRow(statement, &row));
  return row;
}

StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(const std::string& ns,
                                                                        SqliteConnection* db) {
  std::vector<Versioned<v1::ScheduledExperiment>> rows;
  ASSIGN_OR_RETURN(const bool there, HasSchedules(db));
  if (!there) return rows;
  Statement statement = db->Prepare(
      "SELECT revision, body FROM schedule WHERE ?1 IN ('', namespace) ORDER BY namespace, name");
  statement.Bind(ns);
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, statement.Step());
    if (!found) return rows;
    RETURN_IF_ERROR(ReadScheduleRow(statement, &rows.emplace_back()));
  }
}

StatusOr<int64_t> WriteSchedule(const ScheduleWrite& write, WriteSession* session) {
  ASSIGN_OR_RETURN(const int64_t current, ScheduleRevision(write.key, session->db));
  RETURN_IF_ERROR(CheckScheduleRevision(write, current));
  if (write.start) RETURN_IF_ERROR(CommitBatch(*write.start, session).status());
  if (!write.put) {
    RETURN_IF_ERROR(session->db->Prepare("DELETE FROM schedule WHERE namespace = ? AND name = ?")
                        .Bind(write.key.ns)
                        .Bind(write.key.name)
                        .Run());
    return session->revision;
  }
  RETURN_IF_ERROR(session->db
                      ->Prepare("INSERT INTO schedule(namespace, name, revision, body)"
                                " VALUES (?, ?, ?, ?) ON CONFLICT (namespace, name) DO UPDATE"
                                " SET revision = excluded.revision, body = excluded.body")
                      .Bind(write.key.ns)
                      .Bind(write.key.name)
                      .Bind(++session->last_id)
                      .BindBlob(write.put->SerializeAsString())
                      .Run());
  return session->revision;
}

}  // namespace shirabe::db
