#include "db/sqlite/sqlite_schema.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "db/sqlite/sqlite.h"

namespace shirabe::db {
namespace {

// The copy of an SQLite file that is made before its schema is changed, so that the program which
// wrote it can go on with it. Made while the lock for writing is held, so that nothing is committed
// between copy and change, and no one else makes one.

constexpr int kMaxCopies = 1000;

Status Flush(const std::string& path, int flags) {
  const Fd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return ErrnoStatus("cannot write " + path, errno);
  return absl::OkStatus();
}

// Empty, new, and its owner's alone: SQLite takes such a file, and would make a public one.
Status MakeEmpty(const std::string& path) {
  // Left by a process that was killed while it had the lock that we have.
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return ErrnoStatus("cannot remove " + path, errno);
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return fd.valid() ? absl::OkStatus() : ErrnoStatus("cannot make " + path, errno);
}

// A connection of its own: in a transaction nothing can be copied, and the one that has the lock is
// in one. It sees what was committed before.
Status CopyInto(const SqliteConnection& db, const std::string& path) {
  ASSIGN_OR_RETURN(auto source, SqliteConnection::Open({.path = db.path()}));
  RETURN_IF_ERROR(source->Prepare("VACUUM INTO ?").Bind(path).Run());
  return Flush(path, O_RDWR);
}

// Under the first name that is free; a link never replaces what is there.
StatusOr<std::string> Publish(const std::string& partial, const std::string& name) {
  for (int i = 1; i <= kMaxCopies; ++i) {
    const std::string path = i == 1 ? name : absl::StrCat(name, "-", i);
    if (link(partial.c_str(), path.c_str()) == 0) {
      const std::string folder = std::filesystem::path(path).parent_path().string();
      RETURN_IF_ERROR(Flush(folder, O_RDONLY | O_DIRECTORY));
      return path;
    }
    if (errno != EEXIST) return ErrnoStatus("cannot make " + path, errno);
  }
  return absl::AlreadyExistsError(absl::StrCat("there are ", kMaxCopies, " copies ", name, "…"));
}

// Makes PATH.schema-VERSION, or PATH.schema-VERSION-2 and so on if that is there, readable by its
// owner alone and on the disk when this returns; its path. What is committed is in it, and nothing
// else. kResourceExhausted, saying how much room it needs, if there is none: then nothing is left
// of it.
StatusOr<std::string> CopyBeforeMigration(const SqliteConnection& db, int64_t version) {
  const std::string name = absl::StrCat(db.path(), ".schema-", version);
  const std::string partial = name + ".partial";
  const auto copy = [&]() -> StatusOr<std::string> {
    RETURN_IF_ERROR(MakeEmpty(partial));
    RETURN_IF_ERROR(CopyInto(db, partial));
    return Publish(partial, name);
  };
  auto published = copy();
  unlink(partial.c_str());
  if (published.ok()) return published;
  std::error_code ignored;
  const uintmax_t bytes = std::filesystem::file_size(db.path(), ignored);
  return Prefix(absl::StrCat("database ", db.path(), " has the older schema version ", version,
                             ", and before it is changed it is copied to ", name,
                             ", for which about ", bytes, " bytes must be free beside it; it was ",
                             "not changed, and the program that wrote it can go on with it"),
                published.status());
}

// "Shrb": file(1) and we know our files by it.
constexpr int64_t kApplicationId = 0x53687262;

// One row a name ever used: the lease and the deletion outlive the experiment, and the integer key
// that all other tables begin with stays the same if the name is used again.
//
// Names of the namespace "", which no user has, are the store's own: one for each holder of leases,
// "holder:" and who that is, with the time until which all leases of theirs are renewed.
//
// Messages lie in `body`; beside it are only the columns that a query filters on. Tables whose
// rows can be large have a rowid and an index (a table without one spills rows above 1 KB), the
// narrow ones are clustered by their key. Foreign keys would be checked row by row; the writer
// checks each parent once a batch instead.
//
// observation.value is ANY, not REAL: a REAL column stores 0 for -0. NULL is NaN.
constexpr char kVersion1[] = R"sql(
CREATE TABLE store(
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL,
  last_id INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (1, 0, 0);

CREATE TABLE name(
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  epoch INTEGER NOT NULL DEFAULT 0,
  holder TEXT NOT NULL DEFAULT '',
  expiry INTEGER NOT NULL DEFAULT 0,
  deleted INTEGER NOT NULL DEFAULT 0,
  UNIQUE (namespace, name)
) STRICT;
CREATE INDEX name_by_deletion ON name(deleted) WHERE deleted > 0;

CREATE TABLE experiment(
  id INTEGER PRIMARY KEY,
  revision INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX experiment_by_revision ON experiment(revision);

CREATE TABLE trial(
  experiment INTEGER NOT NULL,
  number INTEGER NOT NULL,
  live INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (experiment, number)
) STRICT;
CREATE INDEX trial_live ON trial(experiment, number) WHERE live = 1;
CREATE INDEX trial_by_revision ON trial(revision);

CREATE TABLE attempt(
  experiment INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  number INTEGER NOT NULL,
  open INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (experiment, trial, number)
) STRICT;
CREATE INDEX attempt_open ON attempt(experiment, trial, number) WHERE open = 1;
CREATE INDEX attempt_by_revision ON attempt(revision);

CREATE TABLE checkpoint(
  experiment INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (experiment, trial, attempt, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE metric(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE observation(
  experiment INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  step INTEGER NOT NULL,
  metric INTEGER NOT NULL,
  value ANY,
  time INTEGER NOT NULL,
  implicit INTEGER NOT NULL,
  superseded INTEGER NOT NULL,
  PRIMARY KEY (experiment, trial, attempt, step, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE event(
  experiment INTEGER NOT NULL,
  id INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (experiment, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE intent(
  id INTEGER PRIMARY KEY,
  experiment INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
)sql";

// With this a step begins that only adds what reads can do without: an older database may be read
// as it is.
constexpr char kOnlyAdds[] = "-- only adds\n";

// Schedules are few, and belong to no experiment: see db/schedules.h.
constexpr char kVersion2[] = R"sql(-- only adds
CREATE TABLE schedule(
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (namespace, name)
) STRICT;
)sql";

// What the header of a file says.
struct Header {
  int64_t application = 0;
  int64_t version = 0;
  int64_t tables = 0;

  bool empty() const { return application == 0 && version == 0 && tables == 0; }
};

// In one statement, so that all of it is from before or all from after another process made the
// file its own.
StatusOr<Header> ReadHeader(SqliteConnection* db) {
  Statement statement = db->Prepare(
      "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
      " FROM pragma_application_id, pragma_user_version");
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return db->Failure(SQLITE_CORRUPT);
  return Header{
      .application = statement.Int(0), .version = statement.Int(1), .tables = statement.Int(2)};
}

Status CheckOwner(const SqliteConnection& db, const Header& header) {
  if (header.empty() || header.application == kApplicationId) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(db.path(), " is the database of another program (application id ",
                   header.application, "): choose another file with --db"));
}

Status CheckNotNewer(const SqliteConnection& db, const Header& header, int64_t newest) {
  if (header.version <= newest) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "database ", db.path(), " has schema version ", header.version, ", but this program (",
      SHIRABE_VERSION, ") knows only up to ", newest, ": use the newer shirabe that wrote it"));
}

bool OnlyAdds(const SchemaSteps& steps, int64_t from) {
  return std::all_of(steps.begin() + from, steps.end(), [](const std::string& step) {
    return step.compare(0, sizeof kOnlyAdds - 1, kOnlyAdds) == 0;
  });
}

Status CheckReadable(const SqliteConnection& db, const Header& header, const SchemaSteps& steps) {
  const auto newest = static_cast<int64_t>(steps.size());
  if (header.version == newest) return absl::OkStatus();
  if (header.version > 0 && OnlyAdds(steps, header.version)) return absl::OkStatus();
  if (header.empty()) {
    return absl::NotFoundError(
        absl::StrCat("database ", db.path(), " is empty: \"shirabe run\" fills it"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "database ", db.path(), " has the older schema version ", header.version, " (now ", newest,
      ") and is open for reading only: run a command that writes, "
      "such as \"shirabe run\", once; it migrates the database"));
}

// What there was is copied first, to `*copy`.
Status ApplySteps(SqliteConnection* db, const SchemaSteps& steps, std::string* copy) {
  // Another process may have been faster, so look again, now that no other process can write.
  ASSIGN_OR_RETURN(const Header header, ReadHeader(db));
  const auto newest = static_cast<int64_t>(steps.size());
  RETURN_IF_ERROR(CheckOwner(*db, header));
  RETURN_IF_ERROR(CheckNotNewer(*db, header, newest));
  if (!header.empty() && header.version < newest) {
    ASSIGN_OR_RETURN(*copy, CopyBeforeMigration(*db, header.version));
  }
  for (size_t i = header.version; i < steps.size(); ++i) {
    RETURN_IF_ERROR(Prefix(absl::StrCat("schema version ", i + 1), db->Execute(steps[i])));
  }
  return db->Execute(absl::StrCat("PRAGMA application_id = ", kApplicationId,
                                  "; PRAGMA user_version = ", steps.size()));
}

// What its users should know of it.
StatusOr<std::string> Migrate(SqliteConnection* db, const SchemaSteps& steps) {
  std::string copy;
  RETURN_IF_ERROR(db->Execute("BEGIN IMMEDIATE"));
  Status status = ApplySteps(db, steps, &copy);
  if (status.ok()) status = db->Execute("COMMIT");
  if (!status.ok()) {
    if (db->in_transaction()) db->Execute("ROLLBACK").IgnoreError();
    if (!copy.empty()) unlink(copy.c_str());  // it was not needed, and each attempt makes one
    return status;
  }
  if (copy.empty()) return copy;
  return absl::StrCat("database ", db->path(), " was changed to schema version ", steps.size(),
                      "; as it was before it lies in ", copy,
                      ", which may be deleted once all is well");
}

StatusOr<std::string> JournalMode(SqliteConnection* db, const char* sql) {
  Statement statement = db->Prepare(sql);
  RETURN_IF_ERROR(statement.Step().status());
  return statement.Text(0);
}

// Write-ahead logging is a property of the file, kept once set. The switch fails at once, without
// patience, if another process is at the file; so the lock is taken first, and kept between
// transactions. (To keep locks before having this one, or on a file that is switched already, would
// be to wait for processes that wait for us.)
Status UseWriteAheadLog(SqliteConnection* db) {
  RETURN_IF_ERROR(db->Execute("BEGIN EXCLUSIVE"));
  ASSIGN_OR_RETURN(std::string mode, JournalMode(db, "PRAGMA journal_mode"));
  if (mode == "wal") return db->Execute("COMMIT");
  RETURN_IF_ERROR(db->Execute("PRAGMA locking_mode = EXCLUSIVE; COMMIT"));
  ASSIGN_OR_RETURN(mode, JournalMode(db, "PRAGMA journal_mode = WAL"));
  if (mode == "wal") return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("database ", db->path(),
                                             " lies on a file system without shared memory (mode ",
                                             mode, "): put it on a local disk with --db"));
}

// Makes an empty file ours, with a connection of its own since that may keep the lock.
StatusOr<std::string> Initialise(const ConnectOptions& options, const SchemaSteps& steps) {
  ASSIGN_OR_RETURN(auto db, SqliteConnection::Open(options));
  // Before the first page is written: so that what is deleted can give its space back in pieces.
  RETURN_IF_ERROR(db->Execute("PRAGMA auto_vacuum = INCREMENTAL"));
  RETURN_IF_ERROR(UseWriteAheadLog(db.get()));
  return Migrate(db.get(), steps);
}

}  // namespace

const SchemaSteps& CurrentSchema() {
  static const SchemaSteps steps = {kVersion1, kVersion2};
  return steps;
}

StatusOr<std::string> PrepareSchema(SqliteConnection* db, const SchemaSteps& steps,
                                    bool read_only) {
  const int64_t newest = static_cast<int64_t>(steps.size());
  ASSIGN_OR_RETURN(const Header header, ReadHeader(db));
  RETURN_IF_ERROR(CheckOwner(*db, header));
  RETURN_IF_ERROR(CheckNotNewer(*db, header, newest));
  if (read_only) {
    RETURN_IF_ERROR(CheckReadable(*db, header, steps));
    return "";
  }
  if (header.version == newest) return "";
  return header.empty() ? Initialise(db->options(), steps) : Migrate(db, steps);
}

Status CheckUnchanged(SqliteConnection* db, int64_t version) {
  Header header;
  ASSIGN_OR_RETURN(header.version, db->ReadInt("PRAGMA user_version"));
  return CheckNotNewer(*db, header, version);
}

}  // namespace shirabe::db
