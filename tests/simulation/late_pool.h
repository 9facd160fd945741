// A pool whose answers come when the seed says: within the call, or some steps later, when the
// trials that were asked about may have ended, or begun anew. One thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "experiment/state/algorithm_workers.h"

namespace shirabe::simulation {

class LatePool : public experiment::AlgorithmWorkers {
 public:
  // For some seeds an answer takes so long that what was asked about is over.
  explicit LatePool(uint64_t seed)
      : AlgorithmWorkers(0), rng_(seed), patience_(seed % 3 == 0 ? 20 : 3) {}

  bool late = false;  // whether answers may be

  void Submit(std::shared_ptr<experiment::Ticket> ticket) override {  // shared, as in the base
    if (late && rng_.Below(2) == 0) {
      waiting_.push_back(std::move(ticket));
    } else {
      Run(*ticket);
    }
  }

  // Answers one of those that wait, now and then; all of them where nothing may be late.
  void Answer() {
    while (!waiting_.empty() && (!late || rng_.Below(patience_) == 0)) {
      std::swap(waiting_[rng_.Below(waiting_.size())], waiting_.back());
      const auto ticket = std::move(waiting_.back());
      waiting_.pop_back();
      Run(*ticket);
    }
  }

  // Whether anybody was told to stop the attempt, for the reason that it gives.
  bool HasCondemned(const v1::Attempt& attempt) const {
    return condemned_.contains({attempt.trial(), attempt.number(), attempt.stop().reason()});
  }

 private:
  void Run(experiment::Ticket& ticket) {
    ticket.Run();
    const auto* stops = dynamic_cast<const experiment::StopTicket*>(&ticket);
    if (stops == nullptr) return;
    for (const auto& [trial, attempt, reason] : stops->questions) {
      if (reason.ok() && *reason) condemned_.insert({trial, attempt, **reason});
    }
  }

  Rng rng_;
  uint64_t patience_;
  std::vector<std::shared_ptr<experiment::Ticket>> waiting_;       // shared, as in the base
  std::set<std::tuple<int64_t, int32_t, std::string>> condemned_;  // trial, attempt, reason
};

}  // namespace shirabe::simulation
