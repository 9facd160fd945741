// What the writes of one transaction are checked against: the present revisions, leases and tokens
// of all that they name, read in one round trip while the store is locked, so that nothing of it
// can change before the transaction ends. What earlier writes of the same transaction do is added
// to it as they are accepted. Used by db/postgres/postgres_commit on the writer's thread; lives as
// long as the transaction.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "db/postgres/postgres_connection.h"
#include "db/store.h"

namespace shirabe::db {

// A name, and the experiment that bears it at present.
struct NameState {
  ExperimentKey key;
  int64_t id = 0;        // 0: the name was never used
  int64_t revision = 0;  // of the experiment; 0: there is none now
  v1::Lease lease;
  // For conditional intents only.
  bool conditional = false;
  int64_t generation = 0;
  std::vector<v1::Intent> waiting;
};

class PostgresState {
 public:
  // Ids of metrics outlast a transaction, so their cache belongs to the session.
  explicit PostgresState(std::unordered_map<std::string, int64_t>* metrics) : metrics_(metrics) {}

  // First: what will be asked about.
  void Want(const ExperimentKey& key) { IndexOf(key); }
  void Want(const Batch& batch);

  // Then: the statements that read it, and their results, which begin at `*next`.
  void Send(PostgresConnection* db) const;
  Status ParseResults(const std::vector<PostgresResult>& results, size_t* next);

  // Then, for each write in its turn. The refusals, and their order, are those of
  // db/commit_rules.h.
  NameState& Name(const ExperimentKey& key);
  Status Check(const Batch& batch);
  // The batch was accepted: its records are at `revision` from here on.
  void Apply(const Batch& batch, int64_t revision);

  // Metrics that are not in the database yet; the writer gives them their ids.
  std::vector<std::string> new_metrics(const Batch& batch) const;
  int64_t MetricId(const std::string& name) const;  // 0: unknown
  void SetMetricId(const std::string& name, int64_t id) { (*metrics_)[name] = id; }

  static std::vector<PostgresStatement> Statements();  // for tests

 private:
  struct AttemptState {
    int64_t revision = 0;
    bool fenced = false;                  // its record is wanted, too
    std::optional<v1::Attempt> record{};  // if there is one
  };
  // The experiment by its place in names_, then the rest of the key.
  using TrialId = std::tuple<int, int64_t>;
  using AttemptId = std::tuple<int, int64_t, int32_t>;
  using CheckpointId = std::tuple<int, int64_t, int32_t, int64_t>;

  int IndexOf(const ExperimentKey& key);
  void ParseNames(const PostgresResult& result);
  std::vector<int> Conditional() const;
  Status ParseGenerations(const PostgresResult& result);
  Status ParseIntents(const PostgresResult& result);
  Status ParseAttempts(const PostgresResult& result);
  Status CheckExperiment(const Batch& batch, const NameState& name) const;
  Status CheckFences(const Batch& batch, int which) const;
  void ApplyIntents(const Batch& batch, NameState* name);
  Status CheckRevisions(const Batch& batch, int which) const;
  Status CheckParents(const Batch& batch, int which) const;
  void Forget(int which);

  std::unordered_map<std::string, int64_t>* const metrics_;
  std::vector<NameState> names_;
  std::map<ExperimentKey, int> indexes_;
  // By key; 0 = does not exist.
  std::map<TrialId, int64_t> trials_;
  std::map<AttemptId, AttemptState> attempts_;
  std::map<CheckpointId, int64_t> checkpoints_;
  std::vector<std::string> unknown_metrics_;
};

}  // namespace shirabe::db
