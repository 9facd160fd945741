// Runs Algorithm::Propose away from the reconciler, so that a slow algorithm delays nobody. A
// ticket is shared by the reconciler, which may drop it, and the worker, which may still run.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/rng.h"
#include "suggestion/algorithm.h"

namespace shirabe::experiment {

// One call of Propose, under way or done. The history must not change while it is under way: the
// owner copies it first if somebody else still holds it.
struct ProposalTicket {
  std::shared_ptr<suggestion::Algorithm> algorithm;    // shared: outlives a dropped experiment
  std::shared_ptr<const suggestion::History> history;  // shared: a snapshot, not copied
  int count = 0;
  uint64_t seed = 0;
  std::function<void()> on_done;  // from the worker's thread

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<StatusOr<suggestion::Proposal>> result;  // guarded by mutex

  // Runs the call in this thread.
  void Run();
  // Whether the result is there, after waiting at most `patience` for it.
  bool Wait(absl::Duration patience);
};

class Proposer {
 public:
  // No threads: Submit runs the call at once (simulations, tests, the command line's dry runs).
  explicit Proposer(int threads);
  ~Proposer();
  void Submit(std::shared_ptr<ProposalTicket> ticket);  // shared: see above

 private:
  void Work(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<ProposalTicket>> queue_;  // guarded by mutex_; shared: see above
  std::vector<std::jthread> threads_;                  // last: joined before the rest goes
};

}  // namespace shirabe::experiment
