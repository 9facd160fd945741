// Whose turn it is: one caller takes neither all turns, nor all memory, nor for ever.
#include "service/common/suggestion_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "suggestion/processor_turn.h"

namespace shirabe::service {
namespace {

constexpr SuggestionLimits kLimits{.running = 2,
                                   .running_of_one = 1,
                                   .of_one = 3,
                                   .bytes_of_one = 100,
                                   .longest = absl::Minutes(1)};

// Work that lasts until it is told to end.
class Work {
 public:
  explicit Work(SuggestionScheduler& turns) : turns_(turns) {}
  ~Work() { End(); }
  void Start(const std::string& caller, int64_t bytes = 1) {
    threads_.emplace_back([this, caller, bytes] {
      const Status status = turns_.Run(caller, bytes, [this] {
        ++running_;
        while (!over_) absl::SleepFor(absl::Milliseconds(1));
        --running_;
        return absl::OkStatus();
      });
      status.ok() ? ++done_ : ++refused_;
    });
  }
  void End() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  static bool Await(const std::atomic<int>& number, int wanted) {
    for (int i = 0; i < 5000 && number != wanted; ++i) absl::SleepFor(absl::Milliseconds(1));
    return number == wanted;
  }
  std::atomic<int> running_ = 0, done_ = 0, refused_ = 0;

 private:
  SuggestionScheduler& turns_;
  std::atomic<bool> over_ = false;
  std::vector<std::thread> threads_;
};

TEST(SuggestionTurnsTest, OneCallerLeavesTurnsToOthers) {
  SuggestionScheduler turns(kLimits, RealClock());
  Work work(turns);
  for (int i = 0; i < 3; ++i) work.Start("greedy");
  ASSERT_TRUE(Work::Await(work.running_, 1));
  work.Start("honest");
  EXPECT_TRUE(Work::Await(work.running_, 2));
  work.Start("third");  // has to wait: all turns are taken
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(work.running_, 2);
  work.End();
  EXPECT_EQ(work.done_, 5);
}

// As where a GPU computes in its place: others have its turn, and it waits for one to go on.
TEST(SuggestionTurnsTest, WhatWaitsForAnotherDeviceLeavesItsTurn) {
  SuggestionLimits limits = kLimits;
  limits.running = 1;
  limits.away = 1;
  SuggestionScheduler turns(limits, RealClock());
  std::atomic<int> away = 0, ended = 0, back = 0;
  std::atomic<bool> answered = false;
  std::thread first([&] {
    const Status status = turns.Run("first", 1, [&] {
      {
        const suggestion::LentTurn lent;
        ++away;
        while (!answered) absl::SleepFor(absl::Milliseconds(1));
      }
      back = ended + 1;
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  });
  ASSERT_TRUE(Work::Await(away, 1));
  Work work(turns);
  work.Start("second");
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(work.running_, 0) << "so many wait for the device as may";
  answered = true;
  first.join();
  EXPECT_EQ(back, 1);
  EXPECT_TRUE(Work::Await(work.running_, 1));
  work.End();
  // With room, the second one computes while the first waits, and the first goes on after it.
  limits.away = 2;
  SuggestionScheduler wide(limits, RealClock());
  answered = false;
  std::thread waits([&] {
    const Status status = wide.Run("first", 1, [&] {
      const suggestion::LentTurn lent;
      ++away;
      while (!answered) absl::SleepFor(absl::Milliseconds(1));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    ++ended;
  });
  ASSERT_TRUE(Work::Await(away, 2));
  Work other(wide);
  other.Start("second");
  EXPECT_TRUE(Work::Await(other.running_, 1));
  answered = true;
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(ended, 0) << "the only turn is taken";
  other.End();
  waits.join();
  EXPECT_EQ(ended, 1);
}

TEST(SuggestionTurnsTest, AQueueHasALimitAndASize) {
  SuggestionScheduler turns(kLimits, RealClock());
  Work work(turns);
  for (int i = 0; i < 3; ++i) work.Start("greedy", 30);
  ASSERT_TRUE(Work::Await(work.running_, 1));
  absl::SleepFor(absl::Milliseconds(100));  // the other two wait now
  const auto never = [] { return absl::UnknownError("it was done"); };
  const Status fourth = turns.Run("greedy", 1, never);
  EXPECT_TRUE(absl::IsResourceExhausted(fourth)) << fourth;
  const Status large = turns.Run("other", 101, never);
  EXPECT_TRUE(absl::IsResourceExhausted(large)) << large;
  EXPECT_THAT(large.message(), testing::HasSubstr("101 bytes"));
  work.End();
  // What is refused and what has ended counts no more.
  EXPECT_TRUE(turns.Run("greedy", 100, [] { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(turns.Run("other", 100, [] { return absl::OkStatus(); }).ok());
}

TEST(SuggestionTurnsTest, WhoHasGoneWaitsForNoTurn) {
  SuggestionScheduler turns(kLimits, RealClock());
  Work work(turns);
  work.Start("caller");
  ASSERT_TRUE(Work::Await(work.running_, 1));
  const CancelScope scope([] { return true; });
  bool done = false;
  const Status status = turns.Run("caller", 1, [&] {
    done = true;
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_FALSE(done);
}

TEST(SuggestionTurnsTest, NoComputationLastsForEver) {
  ManualClock clock;
  SuggestionScheduler turns(kLimits, &clock);
  const Status status = turns.Run("caller", 1, [&] {
    EXPECT_FALSE(IsCancelled());
    clock.Advance(absl::Minutes(2));
    EXPECT_TRUE(IsCancelled());
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(turns.Run("caller", 1, [] { return absl::OkStatus(); }).ok());
}

TEST(SuggestionTurnsTest, AnAnswerCutShortIsNone) {
  SuggestionScheduler turns(kLimits, RealClock());
  bool gone = false;
  const CancelScope scope([&] { return gone; });
  const Status status = turns.Run("caller", 1, [&] {
    gone = true;
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace shirabe::service
