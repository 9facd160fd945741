// An executor over the world, and the collector of what its programs report. A new executor after
// each crash, which knows nothing until it adopts.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/world.h"
#include "trial/executor.h"

namespace shirabe::simulation {

class SimExecutor : public trial::Executor {
 public:
  explicit SimExecutor(World* world) : world_(world) {}

  Status Start(const trial::AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<trial::AttemptStatus> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override {
    known_.erase(key);
    deeds_.forgot = deeds_.forgot || world_->Find(key) != nullptr;
  }
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  trial::AttemptPaths Paths(const AttemptKey& key) const override;
  trial::PlacementQuote QuotePlacement(const ExperimentKey& experiment,
                                       const google::protobuf::Struct& trial_spec,
                                       const trial::PlacementRequest& placement_request) override;
  void Prune(const v1::Checkpoint& checkpoint) override;

  // As after a kill -9: nothing that is still called has any effect.
  void Die() { dead_ = true; }

  // What was done since the last Observe.
  struct Deeds {
    std::set<AttemptKey> shown_running;
    std::set<AttemptKey> asked_for;  // a Start of them, whatever its answer
    std::set<AttemptKey> started;
    bool forgot = false;
  };
  const Deeds& deeds() const { return deeds_; }
  // Whether its owner holds the lease, and whether the attempt is not closed.
  std::function<bool()> owns = [] { return true; };
  std::function<bool(const AttemptKey&)> is_open = [](const AttemptKey&) { return true; };

 private:
  trial::AttemptStatus Look(const AttemptKey& key);
  void LookAtCheckpoints(const Program& program, trial::AttemptStatus& observed);

  World* world_;
  bool SeenAgain(const Program& program) const;

  bool dead_ = false;
  Deeds deeds_;
  std::set<AttemptKey> known_;
  std::set<AttemptKey> verified_;  // attempts whose checkpoint need not be waited for again
};

// The world whose programs the collector "Custom" of this program reads.
void SetCollectedWorld(World* world);

}  // namespace shirabe::simulation
