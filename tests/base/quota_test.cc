#include "base/rate_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe {
namespace {

using testing::HasSubstr;

TEST(QuotaTest, EachCallerHasHisOwn) {
  Quota quota({.what = "waiting calls", .caller = 2});
  auto first = Quota::Acquire(&quota, "red");
  auto second = Quota::Acquire(&quota, "red");
  ASSERT_TRUE(first.ok() && second.ok());
  const Status third = Quota::Acquire(&quota, "red").status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(third.message()), HasSubstr("2 waiting calls"));
  EXPECT_TRUE(Quota::Acquire(&quota, "blue").ok());
  first->Release();
  EXPECT_TRUE(Quota::Acquire(&quota, "red").ok());
}

TEST(QuotaTest, AllTogetherHaveALimitToo) {
  Quota quota({.what = "bytes", .caller = 100, .all = 150});
  auto red = Quota::Acquire(&quota, "red", 0);
  auto blue = Quota::Acquire(&quota, "blue", 0);
  ASSERT_TRUE(red.ok() && blue.ok());
  EXPECT_TRUE(red->Add(100).ok());
  EXPECT_EQ(red->Add(1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(blue->Add(50).ok());
  EXPECT_EQ(blue->Add(1).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(quota.held(), 150);
  *red = Quota::Share();
  EXPECT_EQ(quota.held(), 50);
  EXPECT_TRUE(blue->Add(50).ok());
  blue->Release();
  EXPECT_EQ(quota.held(), 0);
}

TEST(QuotaTest, NoQuotaIsNoLimit) {
  auto share = Quota::Acquire(nullptr, "anybody", 1 << 30);
  ASSERT_TRUE(share.ok());
  EXPECT_TRUE(share->Add(1 << 30).ok());
}

}  // namespace
}  // namespace shirabe
