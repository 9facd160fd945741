// How it fits together: one PostgresWriter (a thread and its connection, made by the first write),
// a pool of connections for reading, and a PostgresListener (made by the first who waits for
// changes). postgres_commit.cc has the writes, postgres_reader.cc the reads, postgres_schema.cc the
// tables.
#include "db/postgres/postgres_store.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "db/maintenance.h"
#include "db/postgres/postgres_connection.h"
#include "db/postgres/postgres_reader.h"
#include "db/postgres/postgres_schedules.h"
#include "db/postgres/postgres_snapshot.h"
#include "db/postgres/postgres_writer.h"
#include "db/store.h"

namespace shirabe::db {
namespace {

// The connections on which a PostgreSQL store reads: as many as there are reads at once, up to a
// limit, for the server has a limit of its own. A caller waits while all are taken, until one
// is given back. Lives as long as the store; thread-safe.
//
// After a restart of the server all of them are dead, which shows only when they are used. So the
// first that breaks takes all idle ones with it, and the read is made again on a new one: callers
// do not notice a server that is away for less than their patience.
class PostgresPool {
 public:
  PostgresPool(PostgresOptions options, int limit) : options_(std::move(options)), limit_(limit) {}

  // Runs `read` with a connection, and again with another one if that one breaks, until `patience`
  // has passed: a read changes nothing, so it may be repeated.
  template <class Read>
  auto Run(const Read& read, absl::Duration patience) -> decltype(read(nullptr)) {
    const absl::Duration deadline = RealClock()->Monotonic() + patience;
    for (int failures = 0;; ++failures) {
      bool again = false;
      auto db = Acquire(deadline, &again);
      if (db.ok()) {
        auto result = read(db->get());
        again = (*db)->lost();
        Release(*std::move(db));
        if (!again || !Pause(failures, deadline)) return result;
      } else if (!again || !Pause(failures, deadline)) {
        return db.status();
      }
    }
  }

 private:
  // An idle connection or a new one; `*again` if there is none but trying again may help, as it
  // does not with a wrong password.
  StatusOr<std::unique_ptr<PostgresConnection>> Acquire(absl::Duration deadline, bool* again);
  void Release(std::unique_ptr<PostgresConnection> db);
  // A moment, longer with each failure; false if the deadline has passed.
  bool Pause(int failures, absl::Duration deadline);

  const PostgresOptions options_;
  const int limit_;
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;  // it had a connection before
};

StatusOr<std::unique_ptr<PostgresConnection>> PostgresPool::Acquire(absl::Duration deadline,
                                                                    bool* again) {
  {
    MutexLock lock(mutex_);
    const absl::Duration left =
        std::max(deadline - RealClock()->Monotonic(), absl::Milliseconds(1));
    if (!returned_.WaitFor(lock, left, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return taken_ < limit_;
        })) {
      return absl::UnavailableError(absl::StrCat("database ", options_.address.shown, ": all ",
                                                 limit_, " connections are busy: try again"));
    }
    ++taken_;
    if (!idle_.empty()) {
      std::unique_ptr<PostgresConnection> db = std::move(idle_.back());
      idle_.pop_back();
      return db;
    }
  }
  PostgresError why;
  auto db = PostgresConnection::Open(options_, &why);
  const MutexLock lock(mutex_);
  reached_ = reached_ || db.ok();
  if (db.ok()) return db;
  *again = absl::IsUnavailable(db.status()) && IsConnectionLost(why);
  --taken_;
  returned_.NotifyOne();
  return reached_ ? AsOutage(db.status()) : db.status();
}

void PostgresPool::Release(std::unique_ptr<PostgresConnection> db) {
  std::vector<std::unique_ptr<PostgresConnection>> dead;  // closed without the lock
  const MutexLock lock(mutex_);
  --taken_;
  if (db->usable()) {
    idle_.push_back(std::move(db));
  } else if (db->lost()) {
    dead.swap(idle_);
  }
  returned_.NotifyOne();
}

bool PostgresPool::Pause(int failures, absl::Duration deadline) {
  const absl::Duration left = deadline - RealClock()->Monotonic();
  if (left <= absl::ZeroDuration()) return false;
  if (failures == 0) return true;  // a new connection may do at once
  MutexLock lock(mutex_);
  const absl::Duration pause = std::min(left, PostgresBackoff(failures));
  returned_.WaitFor(lock, pause, [] { return false; });
  return true;
}

// Servers allow 100 connections by default, and there may be several of us.
constexpr int kMaxReaders = 8;
// To delete or tidy up a table of many gigabytes.
constexpr absl::Duration kLongStatement = absl::Hours(1);

// The store as db/schedules.h has it, and what all of its sides use.
class PostgresSchedules : public Schedules {
 public:
  StatusOr<Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key) override {
    return Read([&](PostgresConnection* db) { return db::GetSchedule(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::ScheduledExperiment>>> ListSchedules(
      const std::string& ns) override {
    return Read([&](PostgresConnection* db) { return db::ListSchedules(ns, db); });
  }
  Status WriteSchedule(const ScheduleWrite& write) override {
    RETURN_IF_ERROR(ValidateScheduleWrite(write));
    PostgresRequest request{.schedule = &write};
    RETURN_IF_ERROR(Write(&request));
    if (write.start) signal_.Notify(request.revision);
    return absl::OkStatus();
  }

 protected:
  PostgresSchedules(const PostgresOptions& connection, absl::Duration patience)
      : pool_(connection, kMaxReaders), patience_(patience) {}

  template <class Function>
  auto Read(const Function& read) -> decltype(read(nullptr)) {
    return pool_.Run(read, patience_);
  }
  virtual Status Write(PostgresRequest* request) = 0;

  PostgresPool pool_;
  const absl::Duration patience_;
  ChangeSignal signal_;
};

class PostgresStore : public Store, public Bulk, public Maintenance, public PostgresSchedules {
 public:
  PostgresStore(PostgresStoreOptions options, PostgresOptions connection)
      : PostgresSchedules(connection, options.patience),
        options_(std::move(options)),
        connection_(connection) {}

  // Before any other call.
  Status Open() {
    return Read([&](PostgresConnection* db) { return PreparePostgresSchema(db, options_.schema); });
  }

  StatusOr<Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) override {
    return Read([&](PostgresConnection* db) { return db::GetExperiment(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::Experiment>>> ListExperiments(const std::string& ns) override {
    return Read([&](PostgresConnection* db) { return db::ListExperiments(ns, db); });
  }
  StatusOr<int64_t> CountExperiments(const std::string& ns) override {
    return Read([&](PostgresConnection* db) { return db::CountExperiments(ns, db); });
  }
  StatusOr<Versioned<v1::Trial>> GetTrial(const TrialKey& key) override {
    return Read([&](PostgresConnection* db) { return db::GetTrial(key, db); });
  }
  StatusOr<std::vector<Versioned<v1::Trial>>> ListTrials(const TrialQuery& query) override {
    return Read([&](PostgresConnection* db) { return db::ListTrials(query, db); });
  }
  StatusOr<std::vector<Versioned<v1::Attempt>>> ListAttempts(const AttemptQuery& query) override {
    return Read([&](PostgresConnection* db) { return db::ListAttempts(query, db); });
  }
  StatusOr<std::vector<Versioned<v1::Checkpoint>>> ListCheckpoints(const TrialKey& key) override {
    return Read([&](PostgresConnection* db) { return db::ListCheckpoints(key, db); });
  }
  StatusOr<std::vector<StoredObservation>> ListObservations(
      const ObservationQuery& query) override {
    return Read([&](PostgresConnection* db) { return db::ListObservations(query, db); });
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const EventQuery& query) override {
    return Read([&](PostgresConnection* db) { return db::ListEvents(query, db); });
  }
  StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) override {
    return Read([&](PostgresConnection* db) { return db::ListIntents(key, db); });
  }
  StatusOr<int64_t> Revision() override {
    return Read([](PostgresConnection* db) { return db::Revision(db); });
  }
  StatusOr<std::vector<Change>> Changes(int64_t after, int64_t limit) override {
    return Read([&](PostgresConnection* db) { return ListChanges(after, limit, db); });
  }
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override {
    return Read([&](PostgresConnection* db) { return db::GetLease(key, db); });
  }

  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override;
  void EndWaits() override { signal_.EndWaits(); }
  StatusOr<int64_t> Commit(const Batch& batch) override;
  StatusOr<v1::Lease> AcquireLease(const LeaseRequest& request) override;
  StatusOr<std::vector<LeaseClaim>> RenewLeases(const LeaseRenewal& renewal) override;
  Status ReleaseLeases(const std::vector<LeaseClaim>& claims) override;
  StatusOr<bool> RemoveRows(const LeaseClaim& claim, int64_t most) override;
  Status ReleaseLease(const LeaseClaim& claim) override { return ReleaseLeases({claim}); }
  StatusOr<std::unique_ptr<Snapshot>> TakeSnapshot() override;
  StatusOr<int64_t> Load(const LoadOptions& options, const LoadSource& source) override;
  Status RemoveObservations(const Removal& removal) override;
  StatusOr<bool> ReleaseSpace() override;

 private:
  Status Write(PostgresRequest* request) override;
  PostgresWriter* Writer();
  // For what takes longer than a read or a write does.
  StatusOr<std::unique_ptr<PostgresConnection>> Connect() const;

  const PostgresStoreOptions options_;
  const PostgresOptions connection_;
  Mutex mutex_;
  std::unique_ptr<PostgresWriter> writer_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PostgresListener> listener_ ABSL_GUARDED_BY(mutex_);
};

PostgresWriter* PostgresStore::Writer() {
  const MutexLock lock(mutex_);
  if (writer_ == nullptr) {
    writer_ = std::make_unique<PostgresWriter>(
        PostgresWriterOptions{.connection = connection_,
                              .version = static_cast<int64_t>(options_.schema.size()),
                              .patience = options_.patience,
                              .resolve_timeout = options_.resolve_timeout});
  }
  return writer_.get();
}

Status PostgresStore::Write(PostgresRequest* request) {
  if (options_.read_only) return ReadOnly(connection_.address.shown);
  Writer()->Run(request);
  return request->status;
}

StatusOr<int64_t> PostgresStore::Commit(const Batch& batch) {
  RETURN_IF_ERROR(ValidateBatch(batch));
  PostgresRequest request{.batch = &batch};
  RETURN_IF_ERROR(Write(&request));
  signal_.Notify(request.revision);
  return request.revision;
}

StatusOr<v1::Lease> PostgresStore::AcquireLease(const LeaseRequest& lease) {
  PostgresRequest request{.acquire = &lease};
  RETURN_IF_ERROR(Write(&request));
  return std::move(request.lease);
}

StatusOr<std::vector<LeaseClaim>> PostgresStore::RenewLeases(const LeaseRenewal& renewal) {
  PostgresRequest request{.renew = &renewal};
  RETURN_IF_ERROR(Write(&request));
  return Read([&](PostgresConnection* db) { return ListLeases(renewal.holder, db); });
}

StatusOr<bool> PostgresStore::RemoveRows(const LeaseClaim& claim, int64_t most) {
  PostgresRequest request{.remove = &claim, .most = most};
  RETURN_IF_ERROR(Write(&request));
  return Read([&](PostgresConnection* db) { return HasRows(claim.experiment, db); });
}

Status PostgresStore::ReleaseLeases(const std::vector<LeaseClaim>& claims) {
  PostgresRequest request{.release = &claims};
  return Write(&request);
}

StatusOr<std::unique_ptr<PostgresConnection>> PostgresStore::Connect() const {
  PostgresOptions patient = connection_;
  patient.response_timeout = kLongStatement;
  auto db = PostgresConnection::Open(patient);
  return db.ok() ? std::move(db) : AsOutage(db.status());
}

StatusOr<std::unique_ptr<Snapshot>> PostgresStore::TakeSnapshot() {
  ASSIGN_OR_RETURN(auto db, Connect());
  return TakePostgresSnapshot(std::move(db));
}

StatusOr<int64_t> PostgresStore::Load(const LoadOptions& options, const LoadSource& source) {
  if (options_.read_only) return ReadOnly(connection_.address.shown);
  PostgresSession session{.id = RandomSessionId(),
                          .version = static_cast<int64_t>(options_.schema.size())};
  ASSIGN_OR_RETURN(session.db, Connect());
  auto revision = LoadParts(options, source, &session);
  if (!revision.ok() && session.sequence > 0 && session.db->lost()) {
    // The connection broke during COMMIT.
    ASSIGN_OR_RETURN(auto db, Connect());
    ASSIGN_OR_RETURN(const bool took_effect, WasCommitted(session.id, session.sequence, db.get()));
    if (took_effect) revision = Revision();
  }
  if (revision.ok()) signal_.Notify(*revision);
  return revision;
}

Status PostgresStore::RemoveObservations(const Removal& removal) {
  if (options_.read_only) return ReadOnly(connection_.address.shown);
  return Read([&](PostgresConnection* db) { return db::RemoveObservations(removal, db); });
}

// The server does the same by itself now and then; no one waits for it.
StatusOr<bool> PostgresStore::ReleaseSpace() {
  if (options_.read_only) return ReadOnly(connection_.address.shown);
  ASSIGN_OR_RETURN(auto db, Connect());
  RETURN_IF_ERROR(db->Execute("VACUUM observation, event, checkpoint, attempt, trial, experiment"));
  return false;
}

StatusOr<int64_t> PostgresStore::AwaitChange(int64_t after, absl::Duration timeout) {
  if (timeout <= absl::ZeroDuration()) return Revision();  // what is told of may be older
  {
    const MutexLock lock(mutex_);
    if (listener_ == nullptr) {
      listener_ = std::make_unique<PostgresListener>(connection_, &signal_);
    }
  }
  const int64_t newest = signal_.Await(after, timeout);
  if (newest > after) return newest;
  return Revision();  // which also says if the database is gone
}

StatusOr<std::unique_ptr<Store>> OpenAddress(const std::string& address, bool read_only) {
  return OpenPostgres({.address = address, .read_only = read_only});
}

// A new database on the server that the environment names, and its address; it is left behind.
StatusOr<std::string> MakeScratch(const std::string& server) {
  ASSIGN_OR_RETURN(const PostgresLibrary* pq, LoadPostgresLibrary());
  ASSIGN_OR_RETURN(const PostgresAddress address, ParsePostgresAddress(*pq, server));
  ASSIGN_OR_RETURN(const auto db, PostgresConnection::Open({.address = address}));
  const std::string name = "scratch_" + absl::BytesToHexString(RandomBytes(8));
  RETURN_IF_ERROR(db->Execute("CREATE DATABASE " + name));
  std::string scratch;
  for (auto [keyword, value] : address.options) {
    if (keyword == "dbname") continue;
    absl::StrAppend(&scratch, keyword, "='",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"'", "\\'"}}), "' ");
  }
  return absl::StrCat(scratch, "dbname=", name);
}

std::optional<std::string> Scratch(const std::string&) {
  const char* server = std::getenv(kScratchServer);
  if (server == nullptr) return std::nullopt;
  const auto address = MakeScratch(server);
  return address.ok() ? std::optional(*address) : std::nullopt;
}

}  // namespace

StatusOr<std::unique_ptr<Store>> OpenPostgres(const PostgresStoreOptions& options) {
  ASSIGN_OR_RETURN(const PostgresLibrary* pq, LoadPostgresLibrary());
  ASSIGN_OR_RETURN(const PostgresAddress address, ParsePostgresAddress(*pq, options.address));
  const PostgresOptions connection{.address = address, .read_only = options.read_only};
  auto store = std::make_unique<PostgresStore>(options, connection);
  RETURN_IF_ERROR(store->Open());
  return store;
}

SHIRABE_REGISTER(StoreInfo, {.name = "postgres",
                             .help = "a PostgreSQL database, for several servers",
                             .aliases = {"postgresql"},
                             .open = OpenAddress,
                             .scratch = Scratch});

}  // namespace shirabe::db
