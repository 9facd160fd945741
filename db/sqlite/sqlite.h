// SQLite's C interface with owners, statuses and names: a Connection and the Statements prepared on
// it. Used by db/sqlite/*.cc, and by import/import_optuna.cc for another program's file, so that no
// other file sees a result code.
//
// A Connection and its statements belong to one thread at a time. A Statement is a use of a
// prepared statement: bind, step, read columns; it resets itself at the end of its scope and must
// not outlive its connection. Errors of preparing and binding are kept and come out of Step.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"
#include "db/commit_rules.h"

namespace shirabe::db {

class SqliteConnection;

class Statement {
 public:
  // By SqliteConnection::Prepare. `statement` is null if `status` is an error.
  Statement(SqliteConnection* connection, sqlite3_stmt* statement, Status status);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // The parameters, from the first to the last. Text may hold any bytes.
  Statement& Bind(int64_t value);
  Statement& Bind(const std::string& text);
  Statement& BindBlob(const std::string& bytes);
  // NaN becomes NULL: SQLite has no other place for it.
  Statement& BindDouble(double value);

  // True if there is a row; false once there are none left.
  StatusOr<bool> Step();
  // For statements without rows. Ready to be bound again afterwards.
  Status Run();

  // The columns of the row, from 0.
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Double(int column) const;  // NaN for NULL
  std::string Text(int column) const;
  // The message in a blob; kDataLoss, naming it `what`, if it cannot be read, and kUnimplemented
  // if a newer version wrote values into it that this one does not know.
  template <class Record>
  Status Parse(int column, const char* what, Record* record) const {
    const void* bytes = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return record->ParseFromArray(bytes, size) ? CheckRecord(*record) : Unreadable(what);
  }

 private:
  Statement& Keep(int code);
  Status Unreadable(const char* what) const;

  SqliteConnection* connection_;
  sqlite3_stmt* statement_;
  int bound_ = 0;
  Status status_;
};

struct ConnectOptions {
  enum class Mode {
    kRead,
    kReadImmutable,  // without locks: no process can write, ours included
    kWrite,
    kCreate,  // kWrite, and makes the file if there is none
  };
  std::string path;  // absolute: some builds of SQLite read a relative file:… as a URI
  Mode mode = Mode::kWrite;
  absl::Duration patience = absl::Seconds(5);  // how long to wait for other processes
};

class SqliteConnection {
 public:
  static StatusOr<std::unique_ptr<SqliteConnection>> Open(const ConnectOptions& options);
  // By Open. Takes `db`.
  SqliteConnection(ConnectOptions options, sqlite3* db) : options_(std::move(options)), db_(db) {}

  // Statements without results, separated by semicolons.
  Status Execute(const std::string& sql);
  // Each text is compiled once a connection. One use of a text at a time.
  Statement Prepare(const std::string& sql);
  // The first column of the first row.
  StatusOr<int64_t> ReadInt(const std::string& sql);
  // Rows written by the last statement.
  int64_t changes() const { return sqlite3_changes64(db_.get()); }
  // False once SQLite has given the transaction up by itself, as it does on a full disk.
  bool in_transaction() const { return sqlite3_get_autocommit(db_.get()) == 0; }
  // The file cannot be written, whatever we asked for.
  bool read_only() const { return sqlite3_db_readonly(db_.get(), "main") == 1; }
  const std::string& path() const { return options_.path; }
  const ConnectOptions& options() const { return options_; }
  // What a result code means to the user.
  Status Failure(int code) const;

 private:
  struct Closer {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  Status CannotOpen(int error) const;
  // The errno behind the last failure; 0 if it is not known.
  int SystemError() const;

  const ConnectOptions options_;
  std::unique_ptr<sqlite3, Closer> db_;
  std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Closer>> statements_;
};

}  // namespace shirabe::db
