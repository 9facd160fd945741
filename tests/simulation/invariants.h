// The invariants of the design, checked on what the store holds against what happened in the
// world. Each check returns the first that is broken, in words, or "". One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/store.h"
#include "tests/simulation/world.h"

namespace shirabe::simulation {

class Invariants {
 public:
  Invariants(ExperimentKey key, db::Store* store, World* world)
      : key_(std::move(key)), store_(store), world_(world) {}

  std::string AfterStep(int most_parallel);
  // After a pass of the owner that went well.
  std::string AfterPass();
  std::string AtEnd();

  // The parameters of every trial, by number: to compare two runs.
  std::vector<std::string> Points() const;

 private:
  struct Sums {
    double seconds = 0, cost = 0, wasted_seconds = 0, wasted_cost = 0, on_demand_cost = 0;
  };
  using Attempts = std::vector<db::Versioned<v1::Attempt>>;

  std::string CheckTrial(const v1::Trial& trial);
  std::string CheckPhase(const v1::Trial& trial, const Attempts& attempts);
  std::string CheckEarlyStop(const v1::Trial& trial, const Attempts& attempts);
  std::string CheckLedger(const v1::Trial& trial, const Attempts& attempts);
  std::string CheckClosed(const v1::Attempt& attempt);
  std::string CheckCause(const v1::Attempt& attempt, const Program& program);
  std::string CheckResume(const v1::Attempt& attempt, const Program& program);
  std::string CheckLineage(const v1::Trial& trial);
  int64_t NewestGood(const TrialKey& of, const v1::Attempt& before, int64_t at_most) const;
  std::string CheckStatus(const v1::Experiment& experiment);
  // The trial's counts, against what befell its attempts.
  std::string CheckBudgets(const v1::Trial& trial, const Attempts& attempts);
  std::string CheckObjective(const v1::Trial& trial);
  std::string CheckStop(const v1::Attempt& attempt, const v1::Trial& trial);
  std::string CheckGivenUp(const v1::Attempt& attempt);
  // At the end.
  std::string CheckRows(const v1::Trial& trial);
  std::string CheckRecommended(const v1::ExperimentStatus& status);
  std::string CheckCheckpoints(const v1::Trial& trial);
  std::string CheckCounts(const v1::ExperimentStatus& status);
  std::string CheckBudget(const v1::Experiment& experiment);
  std::string CheckEvents();
  double Committed(const v1::Experiment& experiment, bool with_reserve);

  ExperimentKey key_;
  db::Store* store_;
  World* world_;
  int64_t seen_ = 0;  // revision
  std::map<int64_t, v1::TrialPhase> terminal_;
  std::set<int64_t> infeasible_;
  std::map<int64_t, std::string> points_;
  std::set<std::pair<int64_t, std::string>> promoted_;  // trial, to which rung
  std::map<AttemptKey, int64_t> first_seen_;            // their revision then
  std::map<AttemptKey, std::string> closed_;            // as they were when first seen closed
  std::map<int64_t, Sums> sums_;                        // by trial, of its closed attempts
  std::map<int64_t, int> open_;                         // by trial
  std::optional<double> best_;                          // as a loss
  // What was spent and reserved when everything was first told to end, where that ever was.
  std::optional<double> committed_at_end_;
};

}  // namespace shirabe::simulation
