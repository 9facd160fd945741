#include "experiment/namespace_quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ExperimentKey kA{"red", "a"}, kB{"red", "b"}, kC{"red", "c"}, kOther{"blue", "a"};

TEST(RoomTest, ANamespaceHasSoMany) {
  NamespaceQuota room(10);
  EXPECT_EQ(room.Reserve(kA, 0, 6), 6);
  EXPECT_EQ(room.Reserve(kB, 0, 6), 4);
  EXPECT_EQ(room.Reserve(kC, 0, 1), 0);
  EXPECT_EQ(room.Reserve(kOther, 0, 10), 10) << "another namespace has room of its own";
  EXPECT_EQ(room.Reserve(kA, 6, 1), 0);
  EXPECT_EQ(room.Reserve(kB, 4, 0), 0);
}

TEST(RoomTest, WhatIsGrantedIsTakenUntilAnotherNumberIsSaid) {
  NamespaceQuota room(10);
  EXPECT_EQ(room.Reserve(kA, 0, 10), 10);
  EXPECT_EQ(room.Reserve(kB, 0, 1), 0);
  EXPECT_EQ(room.Reserve(kA, 3, 0), 0) << "the algorithm gave three only";
  EXPECT_EQ(room.Reserve(kB, 0, 9), 7);
}

TEST(RoomTest, TellsThoseWhoWaitWhenOthersEnd) {
  NamespaceQuota room(4);
  EXPECT_EQ(room.Reserve(kA, 0, 4), 4);
  EXPECT_EQ(room.Reserve(kB, 0, 2), 0);
  EXPECT_EQ(room.Reserve(kC, 0, 2), 0);
  EXPECT_THAT(room.Unblocked(), IsEmpty());
  EXPECT_EQ(room.Reserve(kA, 3, 0), 0);
  EXPECT_THAT(room.Unblocked(), ElementsAre(kB)) << "one place, for the longest waiting";
  EXPECT_THAT(room.Unblocked(), IsEmpty());
  EXPECT_EQ(room.Reserve(kB, 0, 2), 1);
  room.Leave(kA);
  EXPECT_THAT(room.Unblocked(), ElementsAre(kC, kB));
}

TEST(RoomTest, MoreThanAreAllowedMayRunOn) {
  NamespaceQuota room(2);
  EXPECT_EQ(room.Reserve(kA, 5, 1), 0) << "they ran before there was a limit";
  EXPECT_EQ(room.Reserve(kB, 0, 1), 0);
  EXPECT_EQ(room.Reserve(kA, 1, 0), 0);
  EXPECT_EQ(room.Reserve(kB, 0, 1), 1);
}

TEST(RoomTest, ZeroIsAnyNumber) {
  NamespaceQuota room(0);
  EXPECT_EQ(room.Reserve(kA, 0, 1'000'000), 1'000'000);
}

}  // namespace
}  // namespace shirabe::experiment
