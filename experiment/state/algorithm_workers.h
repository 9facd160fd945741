// Runs Algorithm::Propose, Recommend and BoundRegret and Stopper::ShouldStop away from the
// reconciler, so that a slow one delays no pass. A ticket is shared by the reconciler, which may
// drop it, and the worker, which may still run.
//
// Calls wait in lanes, each with a few threads of its own: one lane for what is computed here, and
// one for each remote algorithm or webhook, so that one that hangs delays only those who ask it.
// Threads come with the calls of a lane, and go when there were none for a while. A call that waits
// for a GPU lends its turn (suggestion/processor_turn.h), so that up to kMostAway others of its
// lane wait there, too, and go with it. Those that come back go on before another call begins.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::experiment {

// One call, under way or done. What it was asked with must not change until it is done and the
// owner has let go of it: the owner copies first what is still held elsewhere.
class Ticket {
 public:
  // In the lane of a remote algorithm, "host:port"; "" = computed here.
  explicit Ticket(std::string lane = "") : lane_(std::move(lane)) {}
  virtual ~Ticket() = default;
  const std::string& lane() const { return lane_; }
  // Before it is submitted: what to call once it is done, in the worker's thread.
  void OnDone(std::function<void()> notify) { on_done_ = std::move(notify); }
  // Runs the call in this thread.
  void Run();
  // Whether it is done, after waiting at most `patience` for it. Once it is, the answer may be
  // read.
  bool Wait(absl::Duration patience);
  // Asks the call to end soon (base/cancellation.h); its answer is not waited for.
  void Cancel();

 private:
  virtual void Call() = 0;
  virtual void OnCancel() {}

  const std::string lane_;
  std::function<void()> on_done_;
  std::atomic<bool> cancelled_ = false;
  Mutex mutex_;
  CondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

struct ProposalTicket : public Ticket {
  using Ticket::Ticket;

  std::shared_ptr<suggestion::Algorithm> algorithm;    // shared: outlives a dropped experiment
  std::shared_ptr<const suggestion::History> history;  // shared: a snapshot, not copied
  int count = 0;
  uint64_t seed = 0;
  std::optional<StatusOr<suggestion::Proposal>> result;  // once it is done

 private:
  void Call() override { result = algorithm->Propose(*history, count, Rng(seed)); }
  void OnCancel() override { algorithm->Cancel(); }
};

// Which trial to use, once all have ended.
struct RecommendTicket : public Ticket {
  std::shared_ptr<const suggestion::Algorithm> algorithm;  // shared: outlives the experiment
  std::shared_ptr<const suggestion::History> history;      // shared: a snapshot, not copied
  std::optional<StatusOr<std::optional<suggestion::Recommendation>>> result;  // once it is done

 private:
  void Call() override { result = algorithm->Recommend(*history); }
};

// How far the best value may be from the optimum.
struct RegretTicket : public Ticket {
  std::shared_ptr<const suggestion::Algorithm> algorithm;  // shared: outlives the experiment
  std::shared_ptr<const suggestion::History> history;      // shared: a snapshot, not copied
  int64_t results = 0;                                     // in that history
  uint64_t seed = 0;
  std::optional<StatusOr<std::optional<double>>> result;  // once it is done

 private:
  void Call() override { result = algorithm->BoundRegret(*history, Rng(seed)); }
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

class AlgorithmWorkers {
 public:
  static constexpr int kMostAway = 16;
  // Threads for what is computed here. 0: none, Submit runs the call at once (simulations).
  explicit AlgorithmWorkers(int threads) : threads_(threads) {}
  // Cancels what runs and waits for it; what has not begun never will.
  virtual ~AlgorithmWorkers();
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
    // Workers that may have a turn, that have one, that have lent it (with those who wait for one
    // again), and that wait for a call before they end.
    int most = 0, working = 0, away = 0, returning = 0, idle = 0;
  };
  static bool MayTakeTurn(const Lane& lane);
  void Begin(Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitTurn(Lane& lane, MutexLock& lock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work(Lane& lane, Worker& worker);
  void GiveBack(Lane& lane);
  void GetAgain(Lane& lane);

  const int threads_;
  Mutex mutex_;
  CondVar turns_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Lane> lanes_ ABSL_GUARDED_BY(mutex_);  // a lane stays where it is
};

}  // namespace shirabe::experiment
