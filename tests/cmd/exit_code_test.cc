#include "cmd/terminal.h"

#include <gtest/gtest.h>

#include "cmd/options.h"

namespace shirabe::cmd {
namespace {

TEST(ExitCodeTest, EachStatusHasItsCode) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::DataLossError("")), 1);
  EXPECT_EQ(ExitCodeOf(absl::UnimplementedError("")), 1);
  EXPECT_EQ(ExitCodeOf(UsageError("")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeOf(absl::AlreadyExistsError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::AbortedError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), 5);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), 6);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 7);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("")), 7);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), 124);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), 130);
}

TEST(ExitCodeTest, OnlyInvalidArgumentsBecomeUsageErrors) {
  EXPECT_EQ(ExitCodeOf(AsUsage(absl::InvalidArgumentError("x"))), 2);
  EXPECT_EQ(ExitCodeOf(AsUsage(absl::NotFoundError("x"))), 3);
  EXPECT_TRUE(AsUsage(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace shirabe::cmd
