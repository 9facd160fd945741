// Calls to one remote algorithm that hang delay neither what is computed here nor another one.
#include "experiment/state/algorithm_workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/cancellation.h"
#include "suggestion/processor_turn.h"

namespace shirabe::experiment {
namespace {

// Blocks until it is cancelled, or not at all.
class Blocking : public Ticket {
 public:
  Blocking(const std::string& in, bool blocks) : Ticket(in), blocked_(blocks) {}
  void OnCancel() override {
    std::lock_guard lock(mutex_);
    blocked_ = false;
    changed_.notify_all();
  }

 private:
  void Call() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !blocked_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool blocked_;  // guarded by mutex_
};

constexpr absl::Duration kSoon = absl::Seconds(30);

TEST(AlgorithmWorkers, AHangingLaneDelaysNoOther) {
  AlgorithmWorkers workers(2);
  std::vector<std::shared_ptr<Blocking>> hanging;  // shared: as the workers has it
  for (int i = 0; i < 20; ++i) {
    hanging.push_back(std::make_shared<Blocking>("far:1", true));  // shared: as above
    workers.Submit(hanging.back());
  }
  for (const char* lane : {"", "far:2", ""}) {
    const auto quick = std::make_shared<Blocking>(lane, false);  // shared: as above
    workers.Submit(quick);
    EXPECT_TRUE(quick->Wait(kSoon)) << lane;
  }
  EXPECT_FALSE(hanging[0]->Wait(absl::ZeroDuration()));
  // As soon as some of them end, the others get their turn.
  for (const auto& one : hanging) one->Cancel();
  for (const auto& one : hanging) EXPECT_TRUE(one->Wait(kSoon));
}

TEST(AlgorithmWorkers, EndsWhatRunsAndNeverBeginsTheRest) {
  const auto running = std::make_shared<Blocking>("far:1", true);  // shared: as above
  std::vector<std::shared_ptr<Blocking>> waiting;                  // shared: as above
  {
    AlgorithmWorkers workers(1);
    workers.Submit(running);
    for (int i = 0; i < 10; ++i) {
      waiting.push_back(std::make_shared<Blocking>("", true));  // shared: as above
      workers.Submit(waiting.back());
    }
  }
  // Whatever had begun has ended; of the lane of one thread at most one had.
  int ended = 0;
  for (const auto& one : waiting) ended += one->Wait(absl::ZeroDuration()) ? 1 : 0;
  EXPECT_LE(ended, 1);
}

TEST(AlgorithmWorkers, ThreadsComeAgainAfterALaneWasIdle) {
  AlgorithmWorkers workers(2);
  for (int i = 0; i < 200; ++i) {
    const auto quick = std::make_shared<Blocking>(i % 2 == 0 ? "" : "far:1", false);  // shared
    workers.Submit(quick);
    ASSERT_TRUE(quick->Wait(kSoon));
  }
}

// As a suggestion that waits for a GPU: it lends its turn, waits, and computes on.
class Away : public Ticket {
 public:
  explicit Away(std::atomic<int>& computing) : computing_(computing) {}
  void Answer() { answered_ = true; }
  bool waits() const { return waits_; }
  int most() const { return most_; }

 private:
  void Compute() {
    most_ = std::max<int>(most_, ++computing_);
    absl::SleepFor(absl::Milliseconds(5));
    --computing_;
  }
  void Call() override {
    Compute();
    {
      const suggestion::LentTurn lent;
      waits_ = true;
      while (!answered_ && !IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
      waits_ = false;
    }
    Compute();
  }

  std::atomic<int>& computing_;
  std::atomic<bool> waits_ = false, answered_ = false;
  std::atomic<int> most_ = 0;
};

int CountWaiting(const std::vector<std::shared_ptr<Away>>& all) {  // shared: as the workers has it
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [](const auto& one) { return one->waits(); }));
}

bool AwaitWaiting(const std::vector<std::shared_ptr<Away>>& all, int wanted) {  // shared: as above
  for (int i = 0; i < 30'000 && CountWaiting(all) != wanted; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  return CountWaiting(all) == wanted;
}

TEST(AlgorithmWorkers, CallsThatWaitForAGpuGatherThere) {
  constexpr int kThreads = 2, kCalls = AlgorithmWorkers::kMostAway + kThreads + 6;
  AlgorithmWorkers workers(kThreads);
  std::atomic<int> computing = 0;
  std::vector<std::shared_ptr<Away>> calls;  // shared: as above
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_shared<Away>(computing));  // shared: as above
    workers.Submit(calls.back());
  }
  // As many as may, whatever the threads; a call at work when the bound is reached comes as well.
  ASSERT_TRUE(AwaitWaiting(calls, AlgorithmWorkers::kMostAway) ||
              AwaitWaiting(calls, AlgorithmWorkers::kMostAway + 1));
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_LT(CountWaiting(calls), AlgorithmWorkers::kMostAway + kThreads);
  // A remote algorithm's lane and its own are not in each other's way.
  const auto far = std::make_shared<Blocking>("far:1", false);  // shared: as above
  workers.Submit(far);
  EXPECT_TRUE(far->Wait(kSoon));
  for (const auto& call : calls) call->Answer();
  for (const auto& call : calls) {
    EXPECT_TRUE(call->Wait(kSoon));
    EXPECT_LE(call->most(), kThreads);
  }
}

TEST(AlgorithmWorkers, ItsEndAndAnOwnersEndCutShortWhatWaits) {
  std::atomic<int> computing = 0;
  std::vector<std::shared_ptr<Away>> calls;  // shared: as above
  {
    AlgorithmWorkers workers(1);
    for (int i = 0; i < 5; ++i) {
      calls.push_back(std::make_shared<Away>(computing));  // shared: as above
      workers.Submit(calls.back());
    }
    ASSERT_TRUE(AwaitWaiting(calls, 5));
    calls[3]->Cancel();
    EXPECT_TRUE(calls[3]->Wait(kSoon));
    EXPECT_EQ(CountWaiting(calls), 4);
  }
  for (const auto& call : calls) EXPECT_TRUE(call->Wait(absl::ZeroDuration()));
}

TEST(AlgorithmWorkers, WithoutThreadsACallIsDoneAtOnce) {
  AlgorithmWorkers workers(0);
  const auto quick = std::make_shared<Blocking>("far:1", false);  // shared: as above
  workers.Submit(quick);
  EXPECT_TRUE(quick->Wait(absl::ZeroDuration()));
}

}  // namespace
}  // namespace shirabe::experiment
