#include "db/sqlite/sqlite.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"

namespace shirabe::db {
namespace {

constexpr absl::Duration kLook = absl::Microseconds(500);

// Whether SQLite is to look once more whether another process has let go of the file. The handler
// of sqlite3_busy_timeout soon looks every 100 ms only, and may miss for seconds the moments
// between two commits of a process that writes all the time.
int LooksAgain(void* patience_ms, int looks) {
  if (looks * kLook >= absl::Milliseconds(reinterpret_cast<intptr_t>(patience_ms))) return 0;
  Pause(kLook);
  return 1;
}

bool IsSpace(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

Status DiskFull(const std::string& path) {
  return absl::ResourceExhaustedError(
      absl::StrCat("disk full: cannot write database ", path,
                   ": free some space and try again; nothing half-written is kept"));
}

Status Damaged(const std::string& path, const std::string& detail) {
  return absl::DataLossError(absl::StrCat("database ", path, " is damaged (", detail,
                                          "): restore a backup, or save what can be read with "
                                          "\"sqlite3 ",
                                          path, " .recover\""));
}

Status Denied(const std::string& path, const std::string& detail) {
  return absl::PermissionDeniedError(
      absl::StrCat("cannot open or write database ", path, " as uid ", geteuid(), " (", detail,
                   "): make the file and its folder writable, or choose another with --db"));
}

Status IoFailure(int code, int error, const std::string& path) {
  if (IsSpace(error)) return DiskFull(path);
  if (code == SQLITE_IOERR_NOMEM) return absl::ResourceExhaustedError("out of memory");
  if (code == SQLITE_IOERR_CORRUPTFS) return Damaged(path, "by its file system");
  return absl::UnavailableError(absl::StrCat("cannot read or write database ", path, ": ",
                                             error == 0 ? "I/O error" : std::strerror(error), " (",
                                             code, "): check the disk"));
}

// The path as a URI: what would have a meaning there is escaped.
std::string Uri(const std::string& path, const std::string& query) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool special = c == '?' || c == '#' || c == '%';
    uri += special ? absl::StrFormat("%%%02X", static_cast<int>(c)) : std::string(1, c);
  }
  return uri + "?" + query;
}

int FlagsOf(ConnectOptions::Mode mode) {
  switch (mode) {
    case ConnectOptions::Mode::kRead: return SQLITE_OPEN_READONLY;
    case ConnectOptions::Mode::kReadImmutable: return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    case ConnectOptions::Mode::kWrite: return SQLITE_OPEN_READWRITE;
    case ConnectOptions::Mode::kCreate: return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  }
  return 0;
}

// It holds the tokens of attempts, so a new one is its owner's alone, as SQLite then makes the
// files beside it. If this fails, opening the database fails too, and says why.
void CreatePrivate(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
}

}  // namespace

Statement::Statement(SqliteConnection* connection, sqlite3_stmt* statement, Status status)
    : connection_(connection), statement_(statement), status_(std::move(status)) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::Keep(int code) {
  if (status_.ok() && code != SQLITE_OK) status_ = connection_->Failure(code);
  return *this;
}

Statement& Statement::Bind(int64_t value) {
  return Keep(sqlite3_bind_int64(statement_, ++bound_, value));
}

Statement& Statement::Bind(const std::string& text) {
  return Keep(sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                                  SQLITE_UTF8));
}

Statement& Statement::BindBlob(const std::string& bytes) {
  return Keep(
      sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
}

Statement& Statement::BindDouble(double value) {
  return Keep(sqlite3_bind_double(statement_, ++bound_, value));
}

StatusOr<bool> Statement::Step() {
  RETURN_IF_ERROR(status_);
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return connection_->Failure(code);
}

Status Statement::Run() {
  Status status = Step().status();
  if (statement_ != nullptr) sqlite3_reset(statement_);
  bound_ = 0;
  return status;
}

double Statement::Double(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_, column);
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

Status Statement::Unreadable(const char* what) const {
  return Damaged(connection_->path(), absl::StrCat("a record cannot be read: ", what));
}

StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const ConnectOptions& options) {
  const bool immutable = options.mode == ConnectOptions::Mode::kReadImmutable;
  const std::string name = immutable ? Uri(options.path, "immutable=1") : options.path;
  sqlite3* db = nullptr;
  // Serialisation by SQLite is not needed: a connection has one user at a time.
  if ((FlagsOf(options.mode) & SQLITE_OPEN_CREATE) != 0) CreatePrivate(options.path);
  const int flags = FlagsOf(options.mode) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(name.c_str(), &db, flags, nullptr);
  auto connection = std::make_unique<SqliteConnection>(options, db);
  if (code != SQLITE_OK) return connection->Failure(code);
  // Else a statement may be planned again for the values that are bound to it.
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, nullptr);
  const intptr_t patience_ms = absl::ToInt64Milliseconds(options.patience);
  sqlite3_busy_handler(db, &LooksAgain, reinterpret_cast<void*>(patience_ms));
  return connection;
}

Status SqliteConnection::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Failure(code);
}

Statement SqliteConnection::Prepare(const std::string& sql) {
  std::unique_ptr<sqlite3_stmt, Closer>& cached = statements_[sql];
  if (cached == nullptr) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Statement(this, nullptr, Failure(code));
    cached.reset(statement);
  }
  CHECK(!sqlite3_stmt_busy(cached.get()));
  return Statement(this, cached.get(), absl::OkStatus());
}

StatusOr<int64_t> SqliteConnection::ReadInt(const std::string& sql) {
  Statement statement = Prepare(sql);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  CHECK(found);
  return statement.Int(0);
}

int SqliteConnection::SystemError() const {
  if (db_ == nullptr) return 0;
  if (const int error = sqlite3_system_errno(db_.get()); error != 0) return error;
  // A COMMIT that fails leaves its errno only in the file that it wrote to, mostly the log.
  sqlite3_file* log = nullptr;
  int error = 0;
  sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
  }
  if (error == 0) sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_LAST_ERRNO, &error);
  return error;
}

Status SqliteConnection::CannotOpen(int error) const {
  if (IsSpace(error)) return DiskFull(path());
  if (error == ENOENT && options_.mode == ConnectOptions::Mode::kWrite) {
    return absl::UnavailableError(
        absl::StrCat("database ", path(), " is gone: it was moved or deleted"));
  }
  // SQLite tries to read what it could not create, and keeps the error of the second attempt.
  if (error == ENOENT && options_.mode == ConnectOptions::Mode::kCreate) error = EACCES;
  return Denied(path(), error == 0 ? "no reason given" : std::strerror(error));
}

Status SqliteConnection::Failure(int code) const {
  const std::string detail = db_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db_.get());
  const int error = SystemError();
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat("database ", path(), " is locked by another process: try again"));
    case SQLITE_FULL: return DiskFull(path());
    case SQLITE_READONLY:
      if (code != SQLITE_READONLY_DBMOVED) return Denied(path(), "it is read-only");
      return absl::UnavailableError(absl::StrCat("database ", path(), " was moved or deleted"));
    case SQLITE_CANTOPEN: return CannotOpen(error);
    case SQLITE_PERM:
    case SQLITE_AUTH: return Denied(path(), detail);
    case SQLITE_CORRUPT: return Damaged(path(), detail);
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(
          path(), " is not a database: choose another file with --db, or move it away"));
    case SQLITE_IOERR: return IoFailure(code, error, path());
    case SQLITE_NOMEM: return absl::ResourceExhaustedError("out of memory");
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError("a record is larger than a database row may be (1 GB)");
    default:
      return absl::InternalError(absl::StrCat("database ", path(), ": ", detail, " (", code, ")"));
  }
}

}  // namespace shirabe::db
