// The rows that a transaction writes, gathered by table, so that each table takes one statement
// however many Commits share the transaction. All of it has been checked (postgres_state.h): what
// is here is written. Used by db/postgres/postgres_commit on the writer's thread; lives as long as
// the transaction.
//
// The order in which calls were made is kept where it matters: a deletion or a supersession, or a
// second write of one row, first sends what was gathered before it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "db/postgres/postgres_connection.h"
#include "db/store.h"

namespace shirabe::db {

// Where records belong, and the revision that they get.
struct RowPlace {
  int64_t experiment = 0;
  int64_t revision = 0;
};

// An observation as its row is; `metric` is an id.
struct PostgresObservation {
  int64_t experiment = 0, trial = 0;
  int32_t attempt = 0;
  int64_t step = 0, metric = 0;
  double value = 0;
  int64_t time = 0;
  bool implicit = false, superseded = false;
};

class PostgresWrites {
 public:
  explicit PostgresWrites(PostgresConnection* db) : db_(db) {}

  // Each adds one row, or replaces it: the caller has checked which is right.
  void AddName(int64_t id, const ExperimentKey& key);
  void AddMetric(int64_t id, const std::string& name);
  void SaveLease(int64_t id, const v1::Lease& lease);
  void Put(const RowPlace& place, const v1::Experiment& experiment);
  void Put(const RowPlace& place, const v1::Trial& trial);
  void Put(const RowPlace& place, const v1::Attempt& attempt);
  void Put(const RowPlace& place, const v1::Checkpoint& checkpoint);
  void Add(const RowPlace& place, const v1::Event& event);    // with its id
  void Add(const RowPlace& place, const v1::Intent& intent);  // with its id
  void Remove(int64_t experiment, int64_t intent);
  void Observe(const PostgresObservation& row) { observations_.push_back(row); }
  // `counts` is by the ids of metrics.
  void Supersede(int64_t experiment, const Batch::Supersede& supersede,
                 const std::map<int64_t, int64_t>& counts);
  void Delete(const RowPlace& place);
  // Of each table so many, the newest trials first.
  void RemoveRows(int64_t experiment, int64_t most);
  // Sends what was gathered; its results come with the connection's next Receive.
  void Flush();

 private:
  using Columns = std::vector<PostgresArray>;
  using RowKey = std::array<int64_t, 5>;  // table, then the key

  void Once(const RowKey& key);
  void Write(const char* sql, Columns* columns);
  void FlushObservations();

  PostgresConnection* const db_;
  std::set<RowKey> put_;  // gathered
  Columns names_ = MakeColumns("ltt"), metrics_ = MakeColumns("lb"), leases_ = MakeColumns("lltl"),
          experiments_ = MakeColumns("llb"), trials_ = MakeColumns("llolb"),
          attempts_ = MakeColumns("lliolb"), checkpoints_ = MakeColumns("llillb"),
          events_ = MakeColumns("llb"), intents_ = MakeColumns("lllb"),
          removals_ = MakeColumns("ll");
  std::vector<PostgresObservation> observations_;

  // One letter a column: b for bytes, d double, i int4, l int8, o bool, t text.
  static Columns MakeColumns(const std::string& types);
};

}  // namespace shirabe::db
