#include "db/postgres/postgres_schedules.h"

#include <utility>

#include "db/commit_rules.h"

namespace shirabe::db {
namespace {

constexpr char kSchedule[] =
    "SELECT revision, body FROM schedule WHERE namespace = $1::text AND name = $2::text";
constexpr char kSchedules[] =
    "SELECT revision, body FROM schedule WHERE $1::text IN ('', namespace) ORDER BY namespace, "
    "name";
constexpr char kScheduleRevision[] =
    "SELECT revision FROM schedule WHERE namespace = $1::text AND name = $2::text";
constexpr char kScheduleRevisions[] =
    "SELECT s.namespace, s.name, s.revision FROM unnest($1::text[], $2::text[]) q(namespace, name)"
    " JOIN schedule s ON s.namespace = q.namespace AND s.name = q.name";
constexpr char kWriteSchedule[] =
    "INSERT INTO schedule(namespace, name, revision, body)"
    " VALUES ($1::text, $2::text, $3::int8, $4::bytea) ON CONFLICT (namespace, name)"
    " DO UPDATE SET revision = excluded.revision, body = excluded.body";
constexpr char kDeleteSchedule[] =
    "DELETE FROM schedule WHERE namespace = $1::text AND name = $2::text";

PostgresParams NameParams(const ExperimentKey& key) {
  PostgresParams params;
  return params.Text(key.ns).Text(key.name);
}

Status ReadScheduleRow(const PostgresResult& rows, int i, Versioned<v1::ScheduledExperiment>* row) {
  row->revision = rows.Int(i, 0);
  return rows.Parse(i, 1, &row->record);
}

// Not of an older database that is only read.
StatusOr<bool> HasSchedules(PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult found,
                   db->Query("SELECT to_regclass('shirabe.schedule') IS NOT NULL"));
  return found.Int(0, 0) != 0;
}

}  // namespace

StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key,
                                                         PostgresConnection* db) {
  ASSIGN_OR_RETURN(const bool there, HasSchedules(db));
  if (!there) return NoSchedule(key);
  ASSIGN_OR_RETURN(const PostgresResult rows, db->Query(kSchedule, NameParams(key)));
  if (rows.rows() == 0) return NoSchedule(key);
  Versioned<v1::ScheduledExperiment> row;
  RETURN_IF_ERROR(ReadScheduleRow(rows, 0, &row));
  return row;
}

StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(const std::string& ns,
                                                                        PostgresConnection* db) {
  std::vector<Versioned<v1::ScheduledExperiment>> list;
  ASSIGN_OR_RETURN(const bool there, HasSchedules(db));
  if (!there) return list;
  ASSIGN_OR_RETURN(const PostgresResult rows, db->Query(kSchedules, PostgresParams().Text(ns)));
  list.resize(rows.rows());
  for (int i = 0; i < rows.rows(); ++i) RETURN_IF_ERROR(ReadScheduleRow(rows, i, &list[i]));
  return list;
}

void ScheduleState::Want(const ScheduleWrite& write, PostgresState* state) {
  revisions_[write.key] = 0;
  if (write.start) state->Want(*write.start);
}

void ScheduleState::Send(PostgresConnection* db) const {
  if (revisions_.empty()) return;
  PostgresArray namespaces(PostgresArray::Type::kText), names(PostgresArray::Type::kText);
  for (const auto& [key, revision] : revisions_) {
    namespaces.AddBytes(key.ns);
    names.AddBytes(key.name);
  }
  db->Send(kScheduleRevisions, PostgresParams().Array(namespaces).Array(names));
}

void ScheduleState::ParseResults(const std::vector<PostgresResult>& results, size_t* next) {
  if (revisions_.empty()) return;
  const PostgresResult& rows = results[(*next)++];
  for (int i = 0; i < rows.rows(); ++i) {
    revisions_[{rows.Bytes(i, 0), rows.Bytes(i, 1)}] = rows.Int(i, 2);
  }
}

int64_t ScheduleState::RevisionOf(const ExperimentKey& key) const {
  const auto found = revisions_.find(key);
  return found == revisions_.end() ? 0 : found->second;
}

void ScheduleState::Write(const ScheduleWrite& write, int64_t revision, PostgresConnection* db) {
  revisions_[write.key] = revision;
  PostgresParams params = NameParams(write.key);
  if (!write.put) return db->Send(kDeleteSchedule, params);
  params.Int(revision).Text(write.put->SerializeAsString());
  db->Send(kWriteSchedule, params);
}

StatusOr<int64_t> ScheduleState::ReadRevision(const ExperimentKey& key, PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult rows, db->Query(kScheduleRevision, NameParams(key)));
  return rows.rows() == 0 ? 0 : rows.Int(0, 0);
}

}  // namespace shirabe::db
