// Workers and waits: nobody holds up the others.
#include "service/common/long_polls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>

#include "tests/service/http_fixture.h"
#include "tests/support/eventually.h"

namespace shirabe::service {
namespace {

TEST(WorkersTest, OneCallerTakesOnlyAPartOfTheThreads) {
  std::latch gate(1);
  std::atomic<int> stuck = 0, others = 0;
  Workers workers({.threads = 4, .queue = 100, .caller_threads = 2, .caller_queue = 50});
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(workers.Run("red", [&] {
      ++stuck;
      gate.wait();
    }));
  }
  ASSERT_TRUE(Eventually([&] { return stuck == 2; }));
  EXPECT_TRUE(workers.Run("blue", [&] { ++others; }));
  EXPECT_TRUE(workers.Run("green", [&] { ++others; }));
  EXPECT_TRUE(Eventually([&] { return others == 2; }));
  EXPECT_EQ(stuck, 2);
  gate.count_down();
  EXPECT_TRUE(Eventually([&] { return stuck == 50; }));
}

TEST(WorkersTest, QueuesHaveLimits) {
  std::latch gate(1);
  Workers workers({.threads = 1, .queue = 4, .caller_threads = 1, .caller_queue = 2});
  std::atomic<bool> begun = false;
  ASSERT_TRUE(workers.Run("a", [&] {
    begun = true;
    gate.wait();
  }));
  ASSERT_TRUE(Eventually([&] { return begun.load(); }));
  std::atomic<int> done = 0;
  const auto work = [&] { ++done; };
  EXPECT_TRUE(workers.Run("a", work));
  EXPECT_TRUE(workers.Run("a", work));
  EXPECT_FALSE(workers.Run("a", work));  // of one caller
  EXPECT_TRUE(workers.Run("b", work));
  EXPECT_TRUE(workers.Run("c", work));
  EXPECT_FALSE(workers.Run("d", work));  // of all
  gate.count_down();
  EXPECT_TRUE(Eventually([&] { return done == 4; }));
}

TEST(WaitsTest, LooksWhenItsExperimentHasChanged) {
  HttpFixture http;
  http.Create("a", "one");
  http.Create("a", "two");
  LongPollQueue waits(&http.hub(), RealClock());
  std::atomic<int> one = 0, two = 0;
  std::atomic<bool> over = false;
  waits.Add(
      {.caller = "x", .experiment = {"a", "one"}, .patience = absl::Hours(1), .check = [&](bool) {
         ++one;
         return over.load();
       }});
  waits.Add({.caller = "x",
             .experiment = {"a", "two"},
             .patience = absl::Hours(1),
             .check = [&](bool last) {
               ++two;
               return last;
             }});
  ASSERT_TRUE(Eventually([&] { return one > 0 && two > 0; }));
  Pause(absl::Milliseconds(100));  // what has been before
  const int before = two;
  over = true;
  const int seen = one;
  http.RunTrials("a", "one", 1);
  EXPECT_TRUE(Eventually([&] { return one > seen; }));
  EXPECT_LE(two, before + 1);
  waits.End();
  EXPECT_TRUE(Eventually([&] { return two > before; }));
}

TEST(WaitsTest, EndsWhenTimeIsUpOrSomebodyHasGone) {
  HttpFixture http;
  LongPollQueue waits(&http.hub(), RealClock());
  std::atomic<int> looks = 0;
  std::atomic<bool> last_seen = false, gone = false, left = false;
  waits.Add({.caller = "x", .patience = absl::Milliseconds(50), .check = [&](bool last) {
               ++looks;
               last_seen = last;
               return last;
             }});
  const int64_t id = waits.Add({.caller = "x", .patience = absl::Hours(1), .check = [&](bool) {
                                  left = gone.load();
                                  return left.load();
                                }});
  EXPECT_TRUE(Eventually([&] { return last_seen.load(); }));
  gone = true;
  waits.CheckNow(id);
  EXPECT_TRUE(Eventually([&] { return left.load(); }));
}

// A request that a worker has just handed over when the server ends: without its last look its
// connection would be waited for without end.
TEST(WaitsTest, WhatIsAddedAfterTheEndIsLookedAtOnce) {
  HttpFixture http;
  LongPollQueue waits(&http.hub(), RealClock());
  waits.End();
  Pause(absl::Milliseconds(50));
  std::atomic<int> looks = 0, last_looks = 0;
  waits.Add({.caller = "x", .patience = absl::Hours(1), .check = [&](bool last) {
               ++looks;
               if (last) ++last_looks;
               return last;
             }});
  EXPECT_TRUE(Eventually([&] { return last_looks == 1; }));
  EXPECT_EQ(looks, 1);
}

TEST(WaitsTest, ManyWaitAndHoldNoThread) {
  HttpFixture http;
  http.Create("a", "one");
  LongPollQueue waits(&http.hub(), RealClock());
  std::atomic<int> done = 0;
  std::atomic<bool> over = false;
  for (int i = 0; i < 5000; ++i) {
    waits.Add({.caller = std::to_string(i % 50), .patience = absl::Hours(1), .check = [&](bool) {
                 if (over) ++done;
                 return over.load();
               }});
  }
  over = true;
  http.RunTrials("a", "one", 1);
  EXPECT_TRUE(Eventually([&] { return done == 5000; }));
}

}  // namespace
}  // namespace shirabe::service
