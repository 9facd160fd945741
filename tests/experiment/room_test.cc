#include "experiment/room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/due_queue.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ExperimentKey kA{"red", "a"}, kB{"red", "b"}, kC{"red", "c"}, kOther{"blue", "a"};

TEST(RoomTest, ANamespaceHasSoMany) {
  Room room(10);
  EXPECT_EQ(room.Take(kA, 0, 6), 6);
  EXPECT_EQ(room.Take(kB, 0, 6), 4);
  EXPECT_EQ(room.Take(kC, 0, 1), 0);
  EXPECT_EQ(room.Take(kOther, 0, 10), 10) << "another namespace has room of its own";
  EXPECT_EQ(room.Take(kA, 6, 1), 0);
  EXPECT_EQ(room.Take(kB, 4, 0), 0);
}

TEST(RoomTest, WhatIsGrantedIsTakenUntilAnotherNumberIsSaid) {
  Room room(10);
  EXPECT_EQ(room.Take(kA, 0, 10), 10);
  EXPECT_EQ(room.Take(kB, 0, 1), 0);
  EXPECT_EQ(room.Take(kA, 3, 0), 0) << "the algorithm gave three only";
  EXPECT_EQ(room.Take(kB, 0, 9), 7);
}

TEST(RoomTest, TellsThoseWhoWaitWhenOthersEnd) {
  Room room(4);
  EXPECT_EQ(room.Take(kA, 0, 4), 4);
  EXPECT_EQ(room.Take(kB, 0, 2), 0);
  EXPECT_EQ(room.Take(kC, 0, 2), 0);
  EXPECT_THAT(room.Freed(), IsEmpty());
  EXPECT_EQ(room.Take(kA, 3, 0), 0);
  EXPECT_THAT(room.Freed(), ElementsAre(kB)) << "one place, for the longest waiting";
  EXPECT_THAT(room.Freed(), IsEmpty());
  EXPECT_EQ(room.Take(kB, 0, 2), 1);
  room.Leave(kA);
  EXPECT_THAT(room.Freed(), ElementsAre(kC, kB));
}

TEST(RoomTest, MoreThanAreAllowedMayRunOn) {
  Room room(2);
  EXPECT_EQ(room.Take(kA, 5, 1), 0) << "they ran before there was a limit";
  EXPECT_EQ(room.Take(kB, 0, 1), 0);
  EXPECT_EQ(room.Take(kA, 1, 0), 0);
  EXPECT_EQ(room.Take(kB, 0, 1), 1);
}

TEST(RoomTest, ZeroIsAnyNumber) {
  Room room(0);
  EXPECT_EQ(room.Take(kA, 0, 1'000'000), 1'000'000);
}

TEST(DueQueueTest, TakesWhatIsDueFirst) {
  DueQueue queue;
  EXPECT_EQ(queue.NextDue(), absl::InfiniteDuration());
  queue.Set(kA, absl::Seconds(3));
  queue.Set(kB, absl::Seconds(2));
  queue.Set(kC, absl::InfiniteDuration());
  EXPECT_EQ(queue.NextDue(), absl::Seconds(2));
  queue.Set(kA, absl::Seconds(1));
  EXPECT_EQ(queue.Take(), kA);
  EXPECT_EQ(queue.Take(), kB);
  EXPECT_EQ(queue.NextDue(), absl::InfiniteDuration());
  queue.Remove(kB);
  queue.Remove(kC);
  queue.Set(kC, absl::ZeroDuration());
  EXPECT_EQ(queue.Take(), kC);
}

}  // namespace
}  // namespace shirabe::experiment
