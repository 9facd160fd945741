// The connections of an SQLite store to its file: one SqliteWriter (a thread and its connection,
// made by the first write) and a pool of connections for reading (made as concurrent reads need
// them). Write-ahead logging lets each read see a snapshot, whatever the writer does meanwhile.
// Held by db/sqlite/sqlite_store, and lives as long; thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "db/sqlite/sqlite_schema.h"
#include "db/sqlite/sqlite_writer.h"

namespace shirabe::db {

struct SqliteOptions {
  std::string path;
  bool read_only = false;
  absl::Duration patience = absl::Seconds(5);  // with other processes that hold the file
  SchemaSteps schema = CurrentSchema();
  // Up to which a file of an older release is rewritten to give space back: a second, in which no
  // one else can write.
  int64_t max_rewritten_pages = 1 << 14;
};

class SqliteFile {
 public:
  explicit SqliteFile(const SqliteOptions& options) : options_(options) {}

  // Before any other call.
  Status Open();
  // What Open has changed, in a sentence; "" = nothing.
  const std::string& notice() const { return notice_; }
  const std::string& path() const { return options_.path; }

  template <class Function>
  auto Read(const Function& read) -> decltype(read(nullptr)) {
    ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> reader, AcquireReader());
    auto result = read(reader.get());
    // After a real failure the next read begins with a new connection.
    if (result.ok() || absl::IsNotFound(result.status())) ReleaseReader(std::move(reader));
    return result;
  }

  Status Run(const SqliteWriter::Work& work);
  template <class Result>
  StatusOr<Result> Write(const std::function<StatusOr<Result>(WriteSession*)>& write) {
    StatusOr<Result> result = absl::UnknownError("not run");
    const Status status = Run([&](WriteSession* session) {
      result = write(session);
      return result.status();
    });
    if (!status.ok()) return status;
    return result;
  }

  // As Maintenance::ReleaseSpace.
  StatusOr<bool> ReleaseSpace();

  // One that is in no pool.
  StatusOr<std::unique_ptr<SqliteConnection>> ConnectToRead() const;

 private:
  using Mode = ConnectOptions::Mode;

  StatusOr<std::unique_ptr<SqliteConnection>> Connect(Mode mode) const;
  Status OpenForReading();
  Status OpenForWriting();
  StatusOr<std::unique_ptr<SqliteConnection>> AcquireReader();
  void ReleaseReader(std::unique_ptr<SqliteConnection> reader);
  StatusOr<SqliteWriter*> Writer();
  StatusOr<bool> ReleasePages();
  StatusOr<bool> MayRewrite();
  Status Rewrite();

  const SqliteOptions options_;
  Mode read_mode_ = Mode::kRead;  // fixed by Open, as is the notice
  std::string notice_;
  Mutex mutex_;
  std::vector<std::unique_ptr<SqliteConnection>> idle_readers_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SqliteWriter> writer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::db
