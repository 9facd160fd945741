#include "db/sqlite/sqlite_load.h"

#include "db/commit_rules.h"
#include "db/load_rules.h"
#include "db/sqlite/sqlite_commit.h"
#include "db/sqlite/sqlite_reader.h"
#include "db/sqlite/sqlite_snapshot.h"

namespace shirabe::db {
namespace {

Status DeleteEverything(const std::vector<v1::Lease>& names, WriteSession* session) {
  for (const v1::Lease& lease : names) {
    const ExperimentKey key = ExperimentKeyOf(lease);
    ASSIGN_OR_RETURN(const NameRow name, FindName(key, session->db));
    if (name.revision == 0) continue;
    Batch deletion{.experiment = key, .epoch = name.lease.epoch()};
    deletion.delete_experiment = true;
    RETURN_IF_ERROR(CommitBatch(deletion, session).status());
  }
  return absl::OkStatus();
}

// For a name that no experiment has, so that its epoch is not reached again.
Status KeepName(const ExperimentKey& key, SqliteConnection* db) {
  return db->Prepare("INSERT INTO name(namespace, name) VALUES (?, ?) ON CONFLICT DO NOTHING")
      .Bind(key.ns)
      .Bind(key.name)
      .Run();
}

Status LoadOne(LoadPart part, WriteSession* session) {
  ASSIGN_OR_RETURN(NameRow name, FindName(part.experiment, session->db));
  if (part.batch) {
    part.batch->epoch = name.lease.epoch();
    RETURN_IF_ERROR(ValidateBatch(*part.batch));
    RETURN_IF_ERROR(CommitBatch(*part.batch, session).status());
  }
  // The experiment that is there already, of a name that the loaded store once had, is another one.
  if (!part.epoch || (!part.batch && name.revision != 0)) return absl::OkStatus();
  if (name.id == 0) {
    RETURN_IF_ERROR(KeepName(part.experiment, session->db));
    ASSIGN_OR_RETURN(name, FindName(part.experiment, session->db));
  }
  return SaveLease(LeaseAfterLoad(name.lease, *part.epoch), name.id, session->db);
}

}  // namespace

StatusOr<int64_t> LoadParts(const LoadOptions& options, const LoadSource& source,
                            WriteSession* session) {
  ASSIGN_OR_RETURN(const std::vector<v1::Lease> names, ListNames(session->db));
  ASSIGN_OR_RETURN(const int64_t experiments, CountExperiments("", session->db));
  RETURN_IF_ERROR(CheckLoad(options, names, experiments));
  if (options.mode == LoadOptions::Mode::kReplace) {
    RETURN_IF_ERROR(DeleteEverything(names, session));
  }
  for (;;) {
    LoadPart part;
    ASSIGN_OR_RETURN(const bool more, source(&part));
    if (!more) return session->revision;
    RETURN_IF_ERROR(LoadOne(std::move(part), session));
  }
}

Status RemoveObservations(const Maintenance::Removal& removal, WriteSession* session) {
  const TrialKey& key = removal.trial;
  ASSIGN_OR_RETURN(const auto stored, GetTrial(key, session->db));
  RETURN_IF_ERROR(CheckRemovable(removal, stored));
  ASSIGN_OR_RETURN(const NameRow name, FindName(key.experiment, session->db));
  Statement remove = session->db->Prepare(
      "DELETE FROM observation WHERE experiment = ? AND trial = ? AND attempt = ? AND step = ?"
      " AND metric = (SELECT id FROM metric WHERE name = ?)");
  for (const auto& [attempt, step, metric] : removal.rows) {
    remove.Bind(name.id).Bind(key.number).Bind(int64_t{attempt}).Bind(step).Bind(metric);
    RETURN_IF_ERROR(remove.Run());
  }
  return absl::OkStatus();
}

}  // namespace shirabe::db
