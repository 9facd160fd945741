// How it fits together: one SqliteWriter (a thread and its connection, made by the first write)
// and a pool of connections for reading (made as concurrent reads need them). Write-ahead logging
// lets each read see a snapshot, whatever the writer does meanwhile. sqlite_commit.cc has the
// writes, sqlite_reader.cc the reads, sqlite_schema.cc the tables.
#include "db/sqlite/sqlite_store.h"

#include <filesystem>
#include <functional>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "db/commit_rules.h"
#include "db/sqlite/sqlite_commit.h"
#include "db/sqlite/sqlite_reader.h"
#include "db/sqlite/sqlite_writer.h"
#include "db/store.h"

namespace shirabe::db {
namespace {

using Mode = ConnectOptions::Mode;

constexpr size_t kMaxIdleReaders = 8;

// FULL: a Commit is durable when it returns. The limit gives the space of a log that one great
// Commit has blown up back to the disk.
constexpr char kWriterSettings[] =
    "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864";

class SqliteStore : public Store, public Bulk {
 public:
  explicit SqliteStore(const SqliteOptions& options) : options_(options) {}

  // Before any other call.
  Status Open();

  StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) override {
    return Read([&](SqliteConnection* db) { return db::GetExperiment(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns) override {
    return Read([&](SqliteConnection* db) { return db::ListExperiments(ns, db); });
  }
  StatusOr<int64_t> CountExperiments(const std::string& ns) override {
    return Read([&](SqliteConnection* db) { return db::CountExperiments(ns, db); });
  }
  StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key) override {
    return Read([&](SqliteConnection* db) { return db::GetTrial(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query) override {
    return Read([&](SqliteConnection* db) { return db::ListTrials(query, db); });
  }
  StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query) override {
    return Read([&](SqliteConnection* db) { return db::ListAttempts(query, db); });
  }
  StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key) override {
    return Read([&](SqliteConnection* db) { return db::ListCheckpoints(key, db); });
  }
  StatusOr<std::vector<StoredObservation>> ListObservations(
      const ObservationQuery& query) override {
    return Read([&](SqliteConnection* db) { return db::ListObservations(query, db); });
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query) override {
    return Read([&](SqliteConnection* db) { return db::ListEvents(query, db); });
  }
  StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) override {
    return Read([&](SqliteConnection* db) { return db::ListIntents(key, db); });
  }
  StatusOr<int64_t> Revision() override {
    return Read([](SqliteConnection* db) { return db->ReadInt("SELECT revision FROM store"); });
  }
  StatusOr<std::vector<Change>> Changes(int64_t after, int64_t limit) override {
    return Read([&](SqliteConnection* db) { return ListChanges(after, limit, db); });
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    return AwaitByPolling(this, &signal_, after, timeout);
  }
  StatusOr<int64_t> Commit(const Batch& batch) override {
    RETURN_IF_ERROR(ValidateBatch(batch));
    const auto revision =
        Write<int64_t>([&](WriteSession* session) { return CommitBatch(batch, session); });
    if (revision.ok()) signal_.Notify(*revision);
    return revision;
  }
  StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request) override {
    return Write<v1::Lease>(
        [&](WriteSession* session) { return db::AcquireLease(request, session); });
  }
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override;
  StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) override {
    ASSIGN_OR_RETURN(SqliteWriter * writer, Writer());
    RETURN_IF_ERROR(
        writer->Run([&](WriteSession* session) { return db::RenewLeases(renewal, session); }));
    return Read([&](SqliteConnection* db) { return ListLeases(renewal.holder, db); });
  }
  StatusOr<bool> RemoveRows(const LeaseClaim& claim, int64_t most) override {
    return Write<bool>([&](WriteSession* session) { return db::RemoveRows(claim, most, session); });
  }
  Status ReleaseLease(const LeaseClaim& claim) override { return ReleaseLeases({claim}); }
  Status ReleaseLeases(const std::vector<LeaseClaim>& claims) override {
    ASSIGN_OR_RETURN(SqliteWriter * writer, Writer());
    return writer->Run([&](WriteSession* session) { return db::ReleaseLeases(claims, session); });
  }

 private:
  template <class Function>
  auto Read(const Function& read) -> decltype(read(nullptr));
  template <class Result>
  StatusOr<Result> Write(const std::function<StatusOr<Result>(WriteSession*)>& write);

  StatusOr<std::unique_ptr<SqliteConnection>> Connect(Mode mode) const;
  Status OpenForReading();
  Status OpenForWriting();
  // No process writes and none can: the log is gone, and we may not create its files.
  bool IsAtRest() const;
  StatusOr<std::unique_ptr<SqliteConnection>> AcquireReader();
  void ReleaseReader(std::unique_ptr<SqliteConnection> reader);
  StatusOr<SqliteWriter*> Writer();

  const SqliteOptions options_;
  Mode read_mode_ = Mode::kRead;  // fixed by Open
  ChangeSignal signal_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_readers_;
  std::unique_ptr<SqliteWriter> writer_;
};

StatusOr<std::unique_ptr<SqliteConnection>> SqliteStore::Connect(Mode mode) const {
  return SqliteConnection::Open(
      {.path = options_.path, .mode = mode, .patience = options_.patience});
}

Status SqliteStore::Open() { return options_.read_only ? OpenForReading() : OpenForWriting(); }

Status SqliteStore::OpenForWriting() {
  const std::string folder = std::filesystem::path(options_.path).parent_path().string();
  RETURN_IF_ERROR(MakeDirs(folder));
  ASSIGN_OR_RETURN(auto db, Connect(Mode::kCreate));
  // SQLite opens a file that it may not write for reading, without a word.
  if (db->read_only()) return db->Failure(SQLITE_READONLY);
  RETURN_IF_ERROR(db->Execute(kWriterSettings));
  RETURN_IF_ERROR(PrepareSchema(db.get(), options_.schema, false));
  // It has read the schema already, so it serves the first read.
  ReleaseReader(std::move(db));
  return absl::OkStatus();
}

Status SqliteStore::OpenForReading() {
  std::error_code ignored;
  if (!std::filesystem::exists(options_.path, ignored)) {
    return absl::NotFoundError(absl::StrCat("no database at ", options_.path,
                                            ": \"shirabe run\" creates one, or name another "
                                            "with --db"));
  }
  ASSIGN_OR_RETURN(auto db, Connect(Mode::kRead));
  Status status = PrepareSchema(db.get(), options_.schema, true);
  if (absl::IsPermissionDenied(status) && IsAtRest()) {
    read_mode_ = Mode::kReadImmutable;
    ASSIGN_OR_RETURN(db, Connect(read_mode_));
    status = PrepareSchema(db.get(), options_.schema, true);
  }
  if (status.ok()) ReleaseReader(std::move(db));
  return status;
}

bool SqliteStore::IsAtRest() const {
  std::error_code ignored;
  return !std::filesystem::exists(options_.path + "-wal", ignored);
}

StatusOr<std::unique_ptr<SqliteConnection>> SqliteStore::AcquireReader() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<SqliteConnection> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  return Connect(options_.read_only ? read_mode_ : Mode::kWrite);
}

void SqliteStore::ReleaseReader(std::unique_ptr<SqliteConnection> reader) {
  std::lock_guard lock(mutex_);
  if (idle_readers_.size() < kMaxIdleReaders) idle_readers_.push_back(std::move(reader));
}

template <class Function>
auto SqliteStore::Read(const Function& read) -> decltype(read(nullptr)) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, AcquireReader());
  auto result = read(reader.get());
  // After a real failure the next read begins with a new connection.
  if (result.ok() || absl::IsNotFound(result.status())) ReleaseReader(std::move(reader));
  return result;
}

StatusOr<SqliteWriter*> SqliteStore::Writer() {
  if (options_.read_only) return ReadOnly(options_.path);
  std::lock_guard lock(mutex_);
  if (writer_ == nullptr) {
    ASSIGN_OR_RETURN(auto db, Connect(Mode::kWrite));
    RETURN_IF_ERROR(db->Execute(kWriterSettings));
    const auto version = static_cast<int64_t>(options_.schema.size());
    writer_ = std::make_unique<SqliteWriter>(std::move(db), version);
  }
  return writer_.get();
}

template <class Result>
StatusOr<Result> SqliteStore::Write(const std::function<StatusOr<Result>(WriteSession*)>& write) {
  ASSIGN_OR_RETURN(SqliteWriter * writer, Writer());
  StatusOr<Result> result = absl::UnknownError("not run");
  const Status status = writer->Run([&](WriteSession* session) {
    result = write(session);
    return result.status();
  });
  if (!status.ok()) return status;
  return result;
}

StatusOr<v1::Lease> SqliteStore::GetLease(const ExperimentKey& key) {
  ASSIGN_OR_RETURN(NameRow row, Read([&](SqliteConnection* db) { return FindName(key, db); }));
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
  auto store = std::make_unique<SqliteStore>(absolute);
  RETURN_IF_ERROR(store->Open());
  return store;
}

SHIRABE_REGISTER(StoreInfo, {.name = "sqlite",
                             .help = "one file on this machine",
                             .open = OpenAddress,
                             .scratch = Scratch});

}  // namespace shirabe::db
