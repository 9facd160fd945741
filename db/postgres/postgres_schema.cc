#include "db/postgres/postgres_schema.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shirabe::db {
namespace {

// Any two numbers that no other program is likely to lock.
constexpr char kLockSchema[] = "SELECT pg_advisory_xact_lock(x'53687262'::int, 1)";

// The same tables as in SQLite (see sqlite_schema.cc), in PostgreSQL's types. Messages lie in
// `body`; beside it are only the columns that a query filters on. Names are compared byte by byte,
// as everywhere in the store, whatever language the database was created for.
//
// `store` is one row that every transaction which writes locks first and updates last: see
// postgres_commit.h. Its last_id numbers names, metrics, events and intents. A writer is one
// session that writes, with the number of the last transaction it has committed.
//
// The name of a metric can be any bytes of any length; an index holds at most 2.7 KB, so it holds
// their hash.
constexpr char kVersion1[] = R"sql(
CREATE TABLE store(
  id int PRIMARY KEY CHECK (id = 1),
  version int NOT NULL,
  revision bigint NOT NULL,
  last_id bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO store VALUES (1, 0, 0, 0);

CREATE TABLE writer(
  id bigint PRIMARY KEY,
  sequence bigint NOT NULL,
  used timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE name(
  id bigint PRIMARY KEY,
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  holder text NOT NULL DEFAULT '',
  expiry bigint NOT NULL DEFAULT 0,
  deleted bigint NOT NULL DEFAULT 0,
  UNIQUE (namespace, name)
) WITH (fillfactor = 50);
CREATE INDEX name_by_deletion ON name(deleted) WHERE deleted > 0;

CREATE TABLE experiment(
  id bigint PRIMARY KEY,
  revision bigint NOT NULL,
  body bytea NOT NULL
);
CREATE INDEX experiment_by_revision ON experiment(revision);

CREATE TABLE trial(
  experiment bigint NOT NULL,
  number bigint NOT NULL,
  live boolean NOT NULL,
  revision bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (experiment, number)
);
CREATE INDEX trial_live ON trial(experiment, number) WHERE live;
CREATE INDEX trial_by_revision ON trial(revision);

CREATE TABLE attempt(
  experiment bigint NOT NULL,
  trial bigint NOT NULL,
  number int NOT NULL,
  open boolean NOT NULL,
  revision bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (experiment, trial, number)
);
CREATE INDEX attempt_open ON attempt(experiment, trial, number) WHERE open;
CREATE INDEX attempt_by_revision ON attempt(revision);

CREATE TABLE checkpoint(
  experiment bigint NOT NULL,
  trial bigint NOT NULL,
  attempt int NOT NULL,
  step bigint NOT NULL,
  revision bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (experiment, trial, attempt, step)
);

CREATE TABLE metric(
  id bigint PRIMARY KEY,
  name bytea NOT NULL
);
CREATE UNIQUE INDEX metric_by_name ON metric(sha256(name));

CREATE TABLE observation(
  experiment bigint NOT NULL,
  trial bigint NOT NULL,
  step bigint NOT NULL,
  metric bigint NOT NULL,
  value double precision NOT NULL,
  time bigint NOT NULL,
  attempt int NOT NULL,
  implicit boolean NOT NULL,
  superseded boolean NOT NULL,
  PRIMARY KEY (experiment, trial, attempt, step, metric)
);

CREATE TABLE event(
  experiment bigint NOT NULL,
  id bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (experiment, id)
);

CREATE TABLE intent(
  experiment bigint NOT NULL,
  id bigint NOT NULL,
  revision bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (experiment, id)
);
CREATE INDEX intent_by_revision ON intent(revision);
)sql";

// With this a step begins that only adds what reads can do without: an older database may be read
// as it is.
constexpr char kOnlyAdds[] = "-- only adds\n";

// Schedules are few, and belong to no experiment: see db/schedules.h.
constexpr char kVersion2[] = R"sql(-- only adds
CREATE TABLE schedule(
  namespace text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  revision bigint NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (namespace, name)
);
)sql";

struct SchemaState {
  bool schema = false;  // there is one of our name
  bool table = false;   // with the table that says its version
  int64_t version = 0;

  bool empty() const { return !schema; }
};

const std::string& ShownVersion(const PostgresConnection& db) { return db.options().address.shown; }

Status Foreign(const PostgresConnection& db) {
  return absl::InvalidArgumentError(
      absl::StrCat("database ", ShownVersion(db),
                   " has a schema shirabe that is another program's (it has no table store with a "
                   "version): choose another database with --db"));
}

StatusOr<SchemaState> ReadSchemaState(PostgresConnection* db) {
  ASSIGN_OR_RETURN(const PostgresResult names,
                   db->Query("SELECT to_regnamespace('shirabe') IS NOT NULL, EXISTS"
                             " (SELECT FROM pg_attribute WHERE attname = 'version'"
                             " AND attrelid = to_regclass('shirabe.store'))"));
  SchemaState found{.schema = names.Int(0, 0) != 0, .table = names.Int(0, 1) != 0};
  if (!found.schema) return found;
  if (!found.table) return Foreign(*db);
  ASSIGN_OR_RETURN(const PostgresResult version,
                   db->Query("SELECT version::int8 FROM shirabe.store WHERE id = 1"));
  if (version.rows() != 1) {
    return absl::DataLossError(absl::StrCat("database ", ShownVersion(*db),
                                            " is damaged: the row of shirabe.store is gone: "
                                            "restore it from a backup"));
  }
  found.version = version.Int(0, 0);
  return found;
}

bool OnlyAdds(const PostgresSteps& steps, int64_t from) {
  return std::all_of(steps.begin() + from, steps.end(), [](const std::string& step) {
    return step.compare(0, sizeof kOnlyAdds - 1, kOnlyAdds) == 0;
  });
}

Status CheckReadable(const PostgresConnection& db, const SchemaState& found,
                     const PostgresSteps& steps) {
  const auto newest = static_cast<int64_t>(steps.size());
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("database ", ShownVersion(db), " is empty: \"shirabe run\" fills it"));
  }
  if (found.version == newest) return absl::OkStatus();
  if (found.version > 0 && OnlyAdds(steps, found.version)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("database ", ShownVersion(db), " has the older schema version ", found.version,
                   " (now ", newest,
                   ") and is open for reading only: run a command that writes, "
                   "such as \"shirabe run\", once; it migrates the database"));
}

Status ApplySteps(PostgresConnection* db, const PostgresSteps& steps) {
  RETURN_IF_ERROR(db->Query(kLockSchema).status());
  // Another server may have been faster, so look again, now that no other process can change it.
  ASSIGN_OR_RETURN(const SchemaState found, ReadSchemaState(db));
  const auto newest = static_cast<int64_t>(steps.size());
  RETURN_IF_ERROR(CheckPostgresVersion(*db, found.version, newest));
  if (found.empty()) RETURN_IF_ERROR(db->Execute("CREATE SCHEMA shirabe"));
  for (size_t i = found.version; i < steps.size(); ++i) {
    RETURN_IF_ERROR(Prefix(absl::StrCat("schema version ", i + 1), db->Execute(steps[i])));
  }
  return db->Execute(absl::StrCat("UPDATE shirabe.store SET version = ", newest));
}

Status Migrate(PostgresConnection* db, const PostgresSteps& steps) {
  RETURN_IF_ERROR(db->Execute("BEGIN"));
  const Status status = ApplySteps(db, steps);
  if (status.ok()) return db->Execute("COMMIT");
  if (db->usable()) db->Execute("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace

const PostgresSteps& CurrentPostgresSchema() {
  static const PostgresSteps steps = {kVersion1, kVersion2};
  return steps;
}

Status CheckPostgresVersion(const PostgresConnection& db, int64_t found, int64_t version) {
  if (found <= version) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "database ", ShownVersion(db), " has schema version ", found, ", but this program (",
      SHIRABE_VERSION, ") knows only up to ", version, ": use the newer shirabe that wrote it"));
}

Status PreparePostgresSchema(PostgresConnection* db, const PostgresSteps& steps) {
  const auto newest = static_cast<int64_t>(steps.size());
  ASSIGN_OR_RETURN(const SchemaState found, ReadSchemaState(db));
  RETURN_IF_ERROR(CheckPostgresVersion(*db, found.version, newest));
  if (db->options().read_only) return CheckReadable(*db, found, steps);
  if (found.version == newest && !found.empty()) return absl::OkStatus();
  return Migrate(db, steps);
}

}  // namespace shirabe::db
