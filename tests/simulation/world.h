// The world of a simulation: programs that run, report, end or vanish on a manual clock, as seeded.
// It outlives controllers that crash, as real processes do.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "metrics/collector.h"
#include "trial/executor.h"

namespace shirabe::simulation {

// What one program will do, drawn when it starts.
struct Program {
  std::string token;
  absl::Duration start;  // monotonic, like all times of the world
  absl::Duration end;    // of its own accord, or when killed
  absl::Time wall_start;
  int exit_code = 0;
  int signal = 0;
  bool vanishes = false;                 // nobody will see how it ended
  std::vector<metrics::Point> points;    // what it reports…
  std::vector<absl::Duration> reported;  // …and when
};

// Probabilities.
struct Hazards {
  double failure = 0.1;    // exits 1
  double loss = 0.05;      // vanishes
  double kill = 0.05;      // SIGKILL from nowhere
  double yield = 0.02;     // exits 75
  double nan = 0.05;       // reports only NaN
  double silent = 0.03;    // reports nothing
  double start_fault = 0;  // Start fails, before or after it took effect
  int slots = 1000;        // programs at the same time
};

class World {
 public:
  World(uint64_t seed, ManualClock* clock, Hazards hazards)
      : clock_(clock), rng_(seed), hazards_(hazards) {}

  Status Start(const trial::AttemptRequest& request);
  void Stop(const AttemptKey& key, absl::Duration grace);
  Program* Find(const AttemptKey& key);
  bool Running(const Program& program) { return clock_->Monotonic() < program.end; }
  // How many of its points it has reported by now.
  uint64_t Reported(const Program& program);
  // When the next program ends; infinite if none runs.
  absl::Duration NextEnd();
  int RunningCount();
  // Running programs of one trial: more than one means that an attempt was started too early.
  int RunningOf(const TrialKey& trial);

  Rng& rng() { return rng_; }
  Hazards& hazards() { return hazards_; }
  std::map<AttemptKey, Program>& programs() { return programs_; }

 private:
  void DrawFate(Program& program);
  void DrawPoints(Program& program);

  ManualClock* clock_;
  Rng rng_;
  Hazards hazards_;
  std::map<AttemptKey, Program> programs_;
};

// An executor over the world; a new one after each crash, which knows nothing until it adopts.
class SimExecutor : public trial::Executor {
 public:
  explicit SimExecutor(World* world) : world_(world) {}

  Status Start(const trial::AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<trial::Sighting> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override { known_.erase(key); }
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  trial::AttemptPaths Paths(const AttemptKey& key) const override;
  trial::Offer Quote(const google::protobuf::Struct& trial_spec,
                     const trial::Placing& placing) override;
  void Prune(const v1::Checkpoint&) override {}

 private:
  World* world_;
  std::map<AttemptKey, bool> known_;
};

// The world whose programs the collector "Custom" of this test program reads.
void SetCollectedWorld(World* world);

}  // namespace shirabe::simulation
