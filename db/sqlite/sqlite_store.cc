// How it fits together: sqlite_file.cc has the connections, sqlite_commit.cc the writes,
// sqlite_reader.cc the reads, sqlite_snapshot.cc and sqlite_load.cc backup and restore,
// sqlite_schema.cc the tables.
#include "db/sqlite/sqlite_store.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "db/maintenance.h"
#include "db/sqlite/sqlite_commit.h"
#include "db/sqlite/sqlite_file.h"
#include "db/sqlite/sqlite_reader.h"
#include "db/sqlite/sqlite_schedules.h"
#include "db/sqlite/sqlite_snapshot.h"
#include "db/store.h"

namespace shirabe::db {
namespace {

class SqliteStore : public Store, public Bulk, public Maintenance, public Schedules {
 public:
  // Of a file that is open.
  explicit SqliteStore(std::unique_ptr<SqliteFile> file) : owned_(std::move(file)) {}

  StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) override {
    return file_.Read([&](SqliteConnection* db) { return db::GetExperiment(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListExperiments(ns, db); });
  }
  StatusOr<int64_t> CountExperiments(const std::string& ns) override {
    return file_.Read([&](SqliteConnection* db) { return db::CountExperiments(ns, db); });
  }
  StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key) override {
    return file_.Read([&](SqliteConnection* db) { return db::GetTrial(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListTrials(query, db); });
  }
  StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListAttempts(query, db); });
  }
  StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListCheckpoints(key, db); });
  }
  StatusOr<std::vector<StoredObservation>> ListObservations(
      const ObservationQuery& query) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListObservations(query, db); });
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListEvents(query, db); });
  }
  StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListIntents(key, db); });
  }
  StatusOr<int64_t> Revision() override {
    return file_.Read(
        [](SqliteConnection* db) { return db->ReadInt("SELECT revision FROM store"); });
  }
  StatusOr<std::vector<Change>> Changes(int64_t after, int64_t limit) override {
    return file_.Read([&](SqliteConnection* db) { return ListChanges(after, limit, db); });
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    return AwaitByPolling(this, &signal_, after, timeout);
  }
  void EndWaits() override { signal_.EndWaits(); }
  StatusOr<int64_t> Commit(const Batch& batch) override {
    RETURN_IF_ERROR(ValidateBatch(batch));
    const auto revision =
        file_.Write<int64_t>([&](WriteSession* session) { return CommitBatch(batch, session); });
    if (revision.ok()) signal_.Notify(*revision);
    return revision;
  }
  StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request) override {
    return file_.Write<v1::Lease>(
        [&](WriteSession* session) { return db::AcquireLease(request, session); });
  }
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override;
  StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) override {
    RETURN_IF_ERROR(
        file_.Run([&](WriteSession* session) { return db::RenewLeases(renewal, session); }));
    return file_.Read([&](SqliteConnection* db) { return ListLeases(renewal.holder, db); });
  }
  StatusOr<bool> RemoveRows(const LeaseClaim& claim, int64_t most) override {
    return file_.Write<bool>(
        [&](WriteSession* session) { return db::RemoveRows(claim, most, session); });
  }
  Status ReleaseLease(const LeaseClaim& claim) override { return ReleaseLeases({claim}); }
  Status ReleaseLeases(const std::vector<LeaseClaim>& claims) override {
    return file_.Run([&](WriteSession* session) { return db::ReleaseLeases(claims, session); });
  }

  StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() override {
    ASSIGN_OR_RETURN(auto db, file_.ConnectToRead());
    return TakeSqliteSnapshot(std::move(db));
  }
  StatusOr<int64_t> Load(const LoadOptions& options, const LoadSource& source) override {
    const auto revision = file_.Write<int64_t>(
        [&](WriteSession* session) { return LoadParts(options, source, session); });
    if (revision.ok()) signal_.Notify(*revision);
    return revision;
  }
  Status RemoveObservations(const Removal& removal) override {
    return file_.Run(
        [&](WriteSession* session) { return db::RemoveObservations(removal, session); });
  }
  StatusOr<bool> ReleaseSpace() override { return file_.ReleaseSpace(); }
  StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key) override {
    return file_.Read([&](SqliteConnection* db) { return db::GetSchedule(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(
      const std::string& ns) override {
    return file_.Read([&](SqliteConnection* db) { return db::ListSchedules(ns, db); });
  }
  Status WriteSchedule(const ScheduleWrite& write) override {
    RETURN_IF_ERROR(ValidateScheduleWrite(write));
    const auto revision = file_.Write<int64_t>(
        [&](WriteSession* session) { return db::WriteSchedule(write, session); });
    if (revision.ok() && write.start) signal_.Notify(*revision);
    return revision.status();
  }
  std::string OpeningNotice() const override { return file_.notice(); }

 private:
  const std::unique_ptr<SqliteFile> owned_;
  SqliteFile& file_ = *owned_;
  ChangeSignal signal_;
};

StatusOr<v1::Lease> SqliteStore::GetLease(const ExperimentKey& key) {
  ASSIGN_OR_RETURN(NameRow row,
                   file_.Read([&](SqliteConnection* db) { return FindName(key, db); }));
  if (row.revision == 0) return NoExperiment(key);
  return std::move(row.lease);
}

StatusOr<std::unique_ptr<Store>> OpenAddress(const std::string& path, bool read_only) {
  return OpenSqlite({.path = path, .read_only = read_only});
}

std::optional<std::string> Scratch(const std::string& folder) { return folder + "/scratch.db"; }

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenSqlite(const SqliteOptions& options) {
  if (options.path.empty() || options.path == ":memory:") {
    return absl::InvalidArgumentError(
        "database sqlite: needs the path of a file, such as sqlite:/data/shirabe.db "
        "(memory: keeps records in memory only)");
  }
  SqliteOptions absolute = options;
  std::error_code error;
  absolute.path = std::filesystem::absolute(options.path, error).string();
  if (error) return ErrnoStatus("cannot find database " + options.path, error.value());
  auto file = std::make_unique<SqliteFile>(absolute);
  RETURN_IF_ERROR(file->Open());
  return std::make_unique<SqliteStore>(std::move(file));
}

SHIRABE_REGISTER(StoreInfo, {.name = "sqlite",
                             .help = "one file on this machine",
                             .open = OpenAddress,
                             .scratch = Scratch});

}  // namespace shirabe::db
