#include "db/sqlite/sqlite_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "db/commit_rules.h"

namespace shirabe::db {
namespace {

constexpr size_t kMaxIdleReaders = 8;
// Pages of 4 KiB that are given back at once: a few milliseconds for those who wait to write.
constexpr char kReleasePages[] = "PRAGMA incremental_vacuum(2000)";

// FULL: a Commit is durable when it returns. The limit gives the space of a log that one great
// Commit has blown up back to the disk.
constexpr char kWriterSettings[] =
    "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864";

// No process writes and none can: the log is gone, and we may not create its files.
bool IsAtRest(const std::string& path) {
  std::error_code ignored;
  return !std::filesystem::exists(path + "-wal", ignored);
}

}  // namespace

StatusOr<std::unique_ptr<SqliteConnection>> SqliteFile::Connect(Mode mode) const {
  return SqliteConnection::Open(
      {.path = options_.path, .mode = mode, .patience = options_.patience});
}

Status SqliteFile::Open() { return options_.read_only ? OpenForReading() : OpenForWriting(); }

Status SqliteFile::OpenForWriting() {
  const std::string folder = std::filesystem::path(options_.path).parent_path().string();
  RETURN_IF_ERROR(MakeDirs(folder));
  ASSIGN_OR_RETURN(auto db, Connect(Mode::kCreate));
  // SQLite opens a file that it may not write for reading, without a word.
  if (db->read_only()) return db->Failure(SQLITE_READONLY);
  RETURN_IF_ERROR(db->Execute(kWriterSettings));
  ASSIGN_OR_RETURN(notice_, PrepareSchema(db.get(), options_.schema, false));
  // It has read the schema already, so it serves the first read.
  ReleaseReader(std::move(db));
  return absl::OkStatus();
}

Status SqliteFile::OpenForReading() {
  std::error_code error;  // a folder that may not be searched, say, which opening it tells
  if (!std::filesystem::exists(options_.path, error) && !error) {
    return absl::NotFoundError(absl::StrCat("no database at ", options_.path,
                                            ": \"shirabe run\" creates one, or name another "
                                            "with --db"));
  }
  ASSIGN_OR_RETURN(auto db, Connect(Mode::kRead));
  Status status = PrepareSchema(db.get(), options_.schema, true).status();
  if (absl::IsPermissionDenied(status) && IsAtRest(options_.path)) {
    read_mode_ = Mode::kReadImmutable;
    ASSIGN_OR_RETURN(db, Connect(read_mode_));
    status = PrepareSchema(db.get(), options_.schema, true).status();
  }
  if (status.ok()) ReleaseReader(std::move(db));
  return status;
}

StatusOr<std::unique_ptr<SqliteConnection>> SqliteFile::AcquireReader() {
  {
    const MutexLock lock(mutex_);
    if (!idle_readers_.empty()) {
      std::unique_ptr<SqliteConnection> reader = std::move(idle_readers_.back());
      idle_readers_.pop_back();
      return reader;
    }
  }
  return ConnectToRead();
}

void SqliteFile::ReleaseReader(std::unique_ptr<SqliteConnection> reader) {
  const MutexLock lock(mutex_);
  if (idle_readers_.size() < kMaxIdleReaders) idle_readers_.push_back(std::move(reader));
}

StatusOr<SqliteWriter*> SqliteFile::Writer() {
  if (options_.read_only) return ReadOnly(options_.path);
  const MutexLock lock(mutex_);
  if (writer_ == nullptr) {
    ASSIGN_OR_RETURN(auto db, Connect(Mode::kWrite));
    RETURN_IF_ERROR(db->Execute(kWriterSettings));
    const auto version = static_cast<int64_t>(options_.schema.size());
    writer_ = std::make_unique<SqliteWriter>(std::move(db), version);
  }
  return writer_.get();
}

StatusOr<std::unique_ptr<SqliteConnection>> SqliteFile::ConnectToRead() const {
  return Connect(options_.read_only ? read_mode_ : Mode::kWrite);
}

Status SqliteFile::Run(const SqliteWriter::Work& work) {
  ASSIGN_OR_RETURN(SqliteWriter * writer, Writer());
  return writer->Run(work);
}

StatusOr<bool> SqliteFile::ReleaseSpace() {
  ASSIGN_OR_RETURN(const int64_t mode,
                   Read([](SqliteConnection* db) { return db->ReadInt("PRAGMA auto_vacuum"); }));
  constexpr int64_t kIncremental = 2;
  if (mode == kIncremental) return ReleasePages();
  ASSIGN_OR_RETURN(const bool may, MayRewrite());
  if (!may) return false;
  const Status rewritten = Rewrite();
  if (rewritten.ok()) return false;
  // What was deleted is deleted; without room, or beside one who writes, the file keeps its size.
  Log(LogLevel::kWarning, "the space that was freed stays in the database, for its next rows",
      {{"database", options_.path}, {"error", Message(rewritten)}});
  return false;
}

StatusOr<bool> SqliteFile::ReleasePages() {
  return Write<bool>([](WriteSession* session) -> StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t before, session->db->ReadInt("PRAGMA freelist_count"));
    if (before == 0) return false;
    RETURN_IF_ERROR(session->db->Execute(kReleasePages));
    ASSIGN_OR_RETURN(const int64_t after, session->db->ReadInt("PRAGMA freelist_count"));
    return after > 0;
  });
}

// Whether it is worth it, and short. A file that was made without the table of pages that can be
// moved (by release 0.1) gets one by being written once more; a large one keeps its size.
StatusOr<bool> SqliteFile::MayRewrite() {
  if (options_.read_only) return false;
  return Read([this](SqliteConnection* db) -> StatusOr<bool> {
    ASSIGN_OR_RETURN(const int64_t pages, db->ReadInt("PRAGMA page_count"));
    ASSIGN_OR_RETURN(const int64_t free, db->ReadInt("PRAGMA freelist_count"));
    return free > pages / 4 && pages - free <= options_.max_rewritten_pages;
  });
}

// In one transaction of SQLite's own: readers see the file as it was, or as it is then.
Status SqliteFile::Rewrite() {
  ASSIGN_OR_RETURN(const auto db, Connect(Mode::kWrite));
  RETURN_IF_ERROR(db->Execute(kWriterSettings));
  RETURN_IF_ERROR(CheckUnchanged(db.get(), static_cast<int64_t>(options_.schema.size())));
  return db->Execute("PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
}

}  // namespace shirabe::db
