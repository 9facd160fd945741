// One seeded run of controller, store and executor under faults, with the invariants of the design
// checked after each step. Everything random comes from the seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/reconciler.h"
#include "tests/simulation/faulty_store.h"
#include "tests/simulation/world.h"

namespace shirabe::simulation {

class Scenario {
 public:
  explicit Scenario(uint64_t seed);

  // Faults for a while, then none; the first broken invariant, or "".
  std::string Run();
  // Parameters of every trial, by number: to compare two runs.
  std::vector<std::string> Points();
  v1::Experiment Experiment();

  bool faults = true;  // false: the same experiment, undisturbed

 private:
  v1::Experiment MakeExperiment();
  void Boot();         // a new controller, after a crash or at first
  std::string Step();  // one call of the reconciler, and what may happen around it
  void Disturb();
  void SendIntent();
  void Sleep(absl::Duration most);
  std::string Describe();  // what is in the store, for a failure's message
  std::string CheckZombie();
  std::string CheckInvariants();
  std::string CheckTrial(const v1::Trial& trial);
  std::string CheckEnd();
  std::string CheckRows(const v1::Trial& trial);

  uint64_t seed_;
  Rng rng_;
  ManualClock clock_;
  World world_;
  std::unique_ptr<db::Store> disk_;
  std::unique_ptr<FaultyStore> store_;
  ExperimentKey key_{"sim", "exp"};
  experiment::Proposer proposer_{0};

  std::unique_ptr<SimExecutor> executor_;
  std::unique_ptr<experiment::Reconciler> reconciler_;
  int64_t epoch_ = 0;
  bool suspended_ = false;
  // An earlier controller that believes it still owns the experiment.
  std::unique_ptr<SimExecutor> zombie_executor_;
  std::unique_ptr<experiment::Reconciler> zombie_;

  absl::Duration due_;
  bool quiet_ = false;  // faults have stopped
  bool ended_ = false;
  int most_parallel_ = 0;
  std::map<int64_t, v1::TrialPhase> terminal_;
  std::map<int64_t, std::string> points_;
  std::optional<double> best_;
};

}  // namespace shirabe::simulation
