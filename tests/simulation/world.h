// The world of a simulation: machines in pools, with prices, that may be taken away at any moment,
// and the programs that run on them, on a manual clock. It outlives controllers that crash, as real
// machines do. What happens to an attempt is drawn from the seed and the attempt's name alone, so
// that a crash in between changes nothing of it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "tests/simulation/program.h"
#include "trial/attempt_status.h"

namespace shirabe::simulation {

// Probabilities, of an attempt where nothing else is said.
struct Hazards {
  double failure = 0;         // exits 1
  double loss = 0;            // vanishes
  double kill = 0;            // SIGKILL from nowhere
  double yield = 0;           // exits 75
  double partition = 0;       // is thought to be gone, and runs on
  double reclaim = 0;         // its machine is reclaimed…
  double zombie = 0;          // …goes away without stopping it: it runs on for minutes
  double close_call = 0;      // …within a millisecond of its end
  double infrastructure = 0;  // …but what is seen of it is a fault of the platform
  double damage = 0;          // of a checkpoint: it is found damaged later
  double refusal = 0;         // of a checkpoint: it cannot be committed
  double start_fault = 0;     // of a Start: it fails, before or after it took effect
  double slow_verify = 0;     // of a Start that resumes: not yet
  double slow_word = 0;       // it runs for a while before it is told what it resumed from
  double forget = 0;          // of an Observe: an attempt is no longer known until it is adopted
  int slots = 1000;           // programs at the same time, where there are no pools
};

class World {
 public:
  using Code = std::function<Training(int64_t trial)>;

  World(uint64_t seed, ManualClock* clock) : clock_(clock), seed_(seed), rng_(seed) {}

  // Before the first Start.
  void SetCode(Code code) { code_ = std::move(code); }
  void SetPools(const v1::NodePools& pools);

  Status Start(const trial::AttemptRequest& request);
  void Stop(const AttemptKey& key, absl::Duration grace);
  void Prune(const v1::Checkpoint& checkpoint);
  void RemoveFiles(const ExperimentKey& experiment);
  // It is killed, also where it is thought to be gone.
  void Kill(const AttemptKey& key);
  // Every machine that runs something is reclaimed at this moment.
  void Storm(absl::Duration notice);
  trial::PlacementQuote QuotePlacement(const trial::PlacementRequest& placement_request);

  // What must have happened by now happens.
  void Play();
  // When something happens next; infinite if nothing will.
  absl::Duration NextEvent();
  absl::Duration Now() { return clock_->Monotonic(); }

  Program* Find(const AttemptKey& key);
  bool Running(const Program& program) { return Now() < program.SeenEnd(); }
  // Whether it is known by now where it runs.
  bool Placed(const Program& program) {
    return Now() >= program.start + program.training.placed_after;
  }
  // How many of its points it has reported by now, also as a zombie.
  uint64_t ReportReply(const Program& program);
  // The checkpoint as its record should be.
  v1::Checkpoint Describe(const Program& program, const Save& save) const;
  bool HasPools() const { return !slots_.empty(); }
  int RunningCount();
  // Running programs of one trial: more than one means that an attempt was started too early.
  int RunningOf(const TrialKey& trial);

  Rng& rng() { return rng_; }
  Hazards& hazards() { return hazards_; }
  std::map<AttemptKey, Program>& programs() { return programs_; }
  // The first thing that was asked for and must never be; "" if there was none.
  const std::string& violation() const { return violation_; }
  void Violate(std::string what);

 private:
  struct Slot {
    std::string node;
    const v1::NodePool* pool;
    Rng trace;            // of its reclaims
    absl::Duration next;  // of them
    const Program* program = nullptr;
  };
  bool Free(const Slot& slot);
  bool MayUse(const v1::NodePool& pool, const trial::PlacementRequest& placement_request) const;
  StatusOr<Slot*> Choose(const trial::PlacementRequest& placement_request);
  void Place(Slot& slot, Program& program);
  void Resume(const trial::AttemptRequest& request, Program& program);
  std::string WhyUnusable(const v1::Checkpoint& checkpoint);
  void DrawFate(Program& program, Rng& rng);
  void DrawReclaim(Program& program, Rng& rng);
  void Reclaim(Program& program);

  ManualClock* clock_;
  uint64_t seed_;
  Rng rng_;  // of what is no attempt's own
  Hazards hazards_;
  Code code_;
  v1::NodePools pools_;
  std::vector<Slot> slots_;
  std::map<AttemptKey, Program> programs_;
  std::vector<Program*> active_;  // of programs_: not ended when last looked at
  std::string violation_;
};

}  // namespace shirabe::simulation
