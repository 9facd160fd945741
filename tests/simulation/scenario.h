// One seeded run of controller, store and executor under faults, with the invariants of the design
// checked after each step. Everything random comes from the seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiment/reconciler.h"
#include "tests/simulation/draw.h"
#include "tests/simulation/faulty_store.h"
#include "tests/simulation/invariants.h"
#include "tests/simulation/late_pool.h"
#include "tests/simulation/sim_executor.h"
#include "tests/simulation/tally.h"

namespace shirabe::simulation {

class Scenario {
 public:
  // A mirrored one has the other sense of optimisation and all values negated: nothing else may
  // come of it.
  explicit Scenario(uint64_t seed, Faults faults = Faults::kAll, bool mirrored = false);

  // Faults for a while, then none; the first broken invariant, or "".
  std::string Run();
  // As above, and nothing but what the seed does to machines and programs: no fault is drawn from
  // what has happened so far, so that two runs differ only by `crash_at`.
  std::string RunScripted();
  // F1: the controller dies at this numbered step of its passes, counted from 1, and is started
  // again; 0 = never. How many steps there were.
  int64_t crash_at = 0;
  int64_t steps() const { return steps_; }
  // Parameters of every trial, by number: to compare two runs.
  std::vector<std::string> Points() const { return invariants_.Points(); }
  // How each trial ended and what it found, as a loss, by number.
  std::vector<std::string> Results();
  // The same with every line of the ledger, but for times and tokens.
  std::vector<std::string> Ledger();
  v1::Experiment Experiment();
  // What happened in it.
  void AddTo(Tally& tally) {
    if (!deleted_) return Count(key_, *disk_, world_, tally);
    ++tally["experiments deleted"];
  }

 private:
  void Boot();         // a new controller, after a crash or at first
  std::string Step();  // one call of the reconciler, and what may happen around it
  void Disturb();
  void DisturbPlatform();
  std::string Calm();
  void SendIntent();
  bool Leave(v1::Intent intent);
  void CountStep();
  std::string Play(int steps);
  std::string PlayUntilItEnds(int steps);
  std::string GoOn(int steps);
  void Wish(int step);
  void WatchPrunes(const db::Batch& batch);
  std::string AfterDeletion();
  std::string CheckDeeds(bool cancelled);
  std::string CheckTurns();
  bool IsAskedFor(v1::Intent::Verb verb);
  void Sleep(absl::Duration most);
  std::string Describe();  // what is in the store, for a failure's message
  std::string CheckZombie();
  Training TrainingOf(int64_t trial);

  uint64_t seed_;
  Faults faults_;
  bool mirrored_;
  Wishes wishes_;
  ExperimentKey key_{"sim", "exp"};
  Rng rng_;
  ManualClock clock_;
  World world_;
  std::unique_ptr<db::Store> disk_;
  std::unique_ptr<FaultyStore> store_;
  LatePool pool_;
  Invariants invariants_;

  std::unique_ptr<SimExecutor> executor_;
  std::unique_ptr<experiment::Reconciler> reconciler_;
  int64_t epoch_ = 0;
  bool suspended_ = false;
  // An earlier controller that believes it still owns the experiment.
  std::unique_ptr<SimExecutor> zombie_executor_;
  std::unique_ptr<experiment::Reconciler> zombie_;

  absl::Duration due_;
  bool quiet_ = false;  // faults have stopped
  int64_t steps_ = 0;
  bool ended_ = false;
  bool deleted_ = false;
  int most_parallel_ = 0;
};

}  // namespace shirabe::simulation
