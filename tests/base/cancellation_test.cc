#include "base/cancellation.h"

#include <gtest/gtest.h>

#include <thread>

namespace shirabe {
namespace {

TEST(CancellationTest, NothingIsCancelledOutsideOfAScope) {
  EXPECT_FALSE(IsCancelled());
  {
    const CancelScope scope([] { return true; });
  }
  EXPECT_FALSE(IsCancelled());
}

TEST(CancellationTest, StaysCancelledWithinItsScope) {
  bool cancelled = false;
  const CancelScope scope([&] { return cancelled; });
  EXPECT_FALSE(IsCancelled());
  cancelled = true;
  EXPECT_TRUE(IsCancelled());
  cancelled = false;
  EXPECT_TRUE(IsCancelled());
}

TEST(CancellationTest, TheInnerScopeEndsWithTheOuterAndNotTheReverse) {
  bool outer_over = false, inner_over = true;
  const CancelScope outer([&] { return outer_over; });
  {
    const CancelScope inner([&] { return inner_over; });
    EXPECT_TRUE(IsCancelled());
  }
  EXPECT_FALSE(IsCancelled());
  outer_over = true;
  inner_over = false;
  const CancelScope inner([&] { return inner_over; });
  EXPECT_TRUE(IsCancelled());
}

TEST(CancellationTest, EachThreadHasItsOwn) {
  const CancelScope scope([] { return true; });
  bool elsewhere = true;
  std::thread([&] { elsewhere = IsCancelled(); }).join();
  EXPECT_FALSE(elsewhere);
}

}  // namespace
}  // namespace shirabe
