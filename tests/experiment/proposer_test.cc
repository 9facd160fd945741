// Calls to one remote algorithm that hang delay neither what is computed here nor another one.
#include "experiment/state/algorithm_workers.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

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

TEST(AlgorithmWorkers, WithoutThreadsACallIsDoneAtOnce) {
  AlgorithmWorkers workers(0);
  const auto quick = std::make_shared<Blocking>("far:1", false);  // shared: as above
  workers.Submit(quick);
  EXPECT_TRUE(quick->Wait(absl::ZeroDuration()));
}

}  // namespace
}  // namespace shirabe::experiment
