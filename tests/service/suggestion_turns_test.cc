// Whose turn it is: one caller takes neither all turns, nor all memory, nor for ever.
#include "service/common/suggestion_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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
