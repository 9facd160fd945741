// Runs Algorithm::Propose and Recommend and Stopper::ShouldStop away from the reconciler, so that a
// slow one delays no pass. A ticket is shared by the reconciler, which may drop it, and the worker,
// which may still run.
//
// Calls wait in lanes, each with a few threads of its own: one lane for what is computed here, and
// one for each remote algorithm, so that a service that hangs delays only those who ask it. Threads
// come with the first call of a lane and go when it has none left.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/rng.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::experiment {

// One call, under way or done. What it was asked with must not change until it is done and the
// owner has let go of it: the owner copies first what is still held elsewhere.
class Ticket {
 public:
  virtual ~Ticket() = default;
  // Runs the call in this thread.
  void Run();
  // Whether it is done, after waiting at most `patience` for it. Once it is, the answer may be
  // read.
  bool Wait(absl::Duration patience);
  // Asks the call to end soon; its answer is not waited for.
  virtual void Cancel() {}

  std::function<void()> on_done;  // from the worker's thread
  std::string lane;               // "host:port" of a remote algorithm; "" = computed here

 private:
  virtual void Call() = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // guarded by mutex_
};

struct ProposalTicket : public Ticket {
  std::shared_ptr<suggestion::Algorithm> algorithm;    // shared: outlives a dropped experiment
  std::shared_ptr<const suggestion::History> history;  // shared: a snapshot, not copied
  int count = 0;
  uint64_t seed = 0;
  std::optional<StatusOr<suggestion::Proposal>> result;  // once it is done

  void Cancel() override { algorithm->Cancel(); }

 private:
  void Call() override { result = algorithm->Propose(*history, count, Rng(seed)); }
};

// Which trial to use, once all have ended.
struct RecommendTicket : public Ticket {
  std::shared_ptr<const suggestion::Algorithm> algorithm;  // shared: outlives the experiment
  std::shared_ptr<const suggestion::History> history;      // shared: a snapshot, not copied
  std::optional<StatusOr<std::optional<suggestion::Recommendation>>> result;  // once it is done

 private:
  void Call() override { result = algorithm->Recommend(*history); }
};

// Whether these trials, each in this attempt of it, should be stopped early.
struct StopTicket : public Ticket {
  struct Question {
    int64_t trial = 0;
    int32_t attempt = 0;
    StatusOr<std::optional<std::string>> reason = std::nullopt;  // once it is done
  };
  std::shared_ptr<suggestion::Stopper> stopper;        // shared: outlives a dropped experiment
  std::shared_ptr<const suggestion::History> history;  // shared: snapshots, not copied
  std::shared_ptr<const suggestion::Curves> curves;    // shared
  std::vector<Question> questions;

 private:
  void Call() override;
};

class Proposer {
 public:
  // So many threads for what is computed here. 0: none at all, Submit runs the call at once
  // (simulations, tests, the command line's dry runs).
  explicit Proposer(int threads) : threads_(threads) {}
  // Cancels what runs and waits for it; what has not begun never will.
  virtual ~Proposer();
  virtual void Submit(std::shared_ptr<Ticket> ticket);  // shared: see above

 private:
  struct Worker {
    bool done = false;    // guarded by mutex_: it touches nothing any more
    std::jthread thread;  // last: joined before the rest goes
  };
  struct Lane {
    std::deque<std::shared_ptr<Ticket>> queue;   // shared: see above
    std::list<std::shared_ptr<Ticket>> running;  // shared: see above
    std::list<Worker> workers;
  };
  void Work(Lane& lane, Worker& worker);

  const int threads_;
  std::mutex mutex_;
  std::map<std::string, Lane> lanes_;  // guarded by mutex_; a lane stays where it is
};

}  // namespace shirabe::experiment
