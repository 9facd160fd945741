#include "base/delaying_queue.h"

#include <gtest/gtest.h>

#include <string>

#include "base/backoff.h"

namespace shirabe {
namespace {

TEST(DelayingQueueTest, TakesWhatIsDueFirst) {
  DelayingQueue<std::string> queue;
  EXPECT_EQ(queue.NextDue(), absl::InfiniteDuration());
  queue.Set("a", absl::Seconds(3));
  queue.Set("b", absl::Seconds(2));
  queue.Set("c", absl::InfiniteDuration());
  EXPECT_EQ(queue.NextDue(), absl::Seconds(2));
  queue.Set("a", absl::Seconds(1));
  EXPECT_EQ(queue.Pop(), "a");
  EXPECT_EQ(queue.Pop(), "b");
  EXPECT_EQ(queue.NextDue(), absl::InfiniteDuration());
  queue.Remove("b");
  queue.Remove("c");
  queue.Set("c", absl::ZeroDuration());
  EXPECT_EQ(queue.Pop(), "c");
}

TEST(DelayingQueueTest, SetEarlierNeverDelays) {
  DelayingQueue<std::string> queue;
  queue.SetEarlier("a", absl::Seconds(3));
  queue.SetEarlier("a", absl::Seconds(5));
  EXPECT_EQ(queue.NextDue(), absl::Seconds(3));
  queue.SetEarlier("a", absl::Seconds(1));
  EXPECT_EQ(queue.NextDue(), absl::Seconds(1));
}

TEST(BackoffTest, DoublesUpToItsMaximum) {
  constexpr Backoff kBackoff{absl::Milliseconds(50), absl::Seconds(5)};
  EXPECT_EQ(kBackoff.Delay(-1), absl::Milliseconds(50));
  EXPECT_EQ(kBackoff.Delay(0), absl::Milliseconds(50));
  EXPECT_EQ(kBackoff.Delay(3), absl::Milliseconds(400));
  EXPECT_EQ(kBackoff.Delay(1'000'000), absl::Seconds(5));
}

}  // namespace
}  // namespace shirabe
