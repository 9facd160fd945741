#include "db/sqlite/sqlite_writer.h"

#include <algorithm>
#include <utility>

#include "db/sqlite/sqlite_schema.h"

namespace shirabe::db {
namespace {

// So that no write waits behind an endless transaction.
constexpr size_t kMaxGroup = 512;

}  // namespace

SqliteWriter::SqliteWriter(std::unique_ptr<SqliteConnection> db, int64_t version)
    : db_(std::move(db)), version_(version) {
  session_.db = db_.get();
  thread_ = std::thread([this] { Loop(); });
}

SqliteWriter::~SqliteWriter() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  queued_.NotifyOne();
  thread_.join();
}

Status SqliteWriter::Run(const Work& work) {
  Request request{.work = &work, .status = absl::OkStatus()};
  MutexLock lock(mutex_);
  queue_.push_back(&request);
  queued_.NotifyOne();
  finished_.Wait(lock, [&] { return request.done; });
  return request.status;
}

void SqliteWriter::Loop() {
  for (;;) {
    const std::vector<Request*> group = NextGroup();
    if (group.empty()) return;
    Execute(group);
    {
      const MutexLock lock(mutex_);
      for (Request* request : group) request->done = true;
    }
    finished_.NotifyAll();
  }
}

// Empty once the writer is to stop and nothing is left.
std::vector<SqliteWriter::Request*> SqliteWriter::NextGroup() {
  MutexLock lock(mutex_);
  queued_.Wait(lock,
               [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !queue_.empty(); });
  const auto end = queue_.begin() + static_cast<int64_t>(std::min(queue_.size(), kMaxGroup));
  std::vector<Request*> group(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  return group;
}

void SqliteWriter::Execute(const std::vector<Request*>& group) {
  const Status status = ExecuteAll(group);
  if (status.ok()) return;
  if (db_->in_transaction()) db_->Execute("ROLLBACK").IgnoreError();
  session_.metrics.clear();
  for (Request* request : group) {
    if (request->status.ok()) request->status = status;
  }
}

// The status is that of the transaction: an error undoes all of the work in it.
Status SqliteWriter::ExecuteAll(const std::vector<Request*>& group) {
  RETURN_IF_ERROR(Begin());
  for (Request* request : group) RETURN_IF_ERROR(RunOne(request));
  return End(group);
}

Status SqliteWriter::Begin() {
  RETURN_IF_ERROR(db_->Prepare("BEGIN IMMEDIATE").Run());
  // Other processes write, too, and a newer one may have migrated the file meanwhile.
  RETURN_IF_ERROR(CheckUnchanged(db_.get(), version_));
  Statement counters = db_->Prepare("SELECT revision, last_id FROM store");
  ASSIGN_OR_RETURN(const bool found, counters.Step());
  if (!found) return db_->Failure(SQLITE_CORRUPT);
  session_.revision = counters.Int(0);
  session_.last_id = counters.Int(1);
  return absl::OkStatus();
}

Status SqliteWriter::RunOne(Request* request) {
  RETURN_IF_ERROR(db_->Prepare("SAVEPOINT work").Run());
  const int64_t revision = session_.revision;
  const int64_t last_id = session_.last_id;
  request->status = (*request->work)(&session_);
  // SQLite gives the whole transaction up by itself on a full disk or a failing one.
  if (!db_->in_transaction()) {
    CHECK(!request->status.ok());
    return request->status;
  }
  if (!request->status.ok()) {
    session_.revision = revision;
    session_.last_id = last_id;
    session_.metrics.clear();
    RETURN_IF_ERROR(db_->Prepare("ROLLBACK TO work").Run());
  }
  return db_->Prepare("RELEASE work").Run();
}

Status SqliteWriter::End(const std::vector<Request*>& group) {
  const bool any = std::any_of(group.begin(), group.end(),
                               [](const Request* request) { return request->status.ok(); });
  if (!any) return db_->Prepare("ROLLBACK").Run();
  RETURN_IF_ERROR(db_->Prepare("UPDATE store SET revision = ?, last_id = ?")
                      .Bind(session_.revision)
                      .Bind(session_.last_id)
                      .Run());
  return db_->Prepare("COMMIT").Run();
}

}  // namespace shirabe::db
