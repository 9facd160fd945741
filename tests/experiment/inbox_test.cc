// What experiment/inbox.h promises: bounded, in order, and nothing is said to count that was not
// committed.
#include "experiment/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace shirabe::experiment {
namespace {

using ::testing::HasSubstr;

LetterPtr Letter(size_t points) {
  auto letter = std::make_shared<struct Letter>();  // shared: see the header
  letter->report.points.resize(points);
  return letter;
}

TEST(Inbox, TakesTheOldestUpToItsPointsButAtLeastOne) {
  Inbox inbox;
  std::vector<LetterPtr> letters;
  for (const size_t points : {60'000, 60'000, 10, 100'000, 0, 1}) {
    letters.push_back(Letter(points));
    ASSERT_TRUE(inbox.Put(letters.back()).ok());
  }
  using Batch = std::vector<LetterPtr>;
  EXPECT_EQ(inbox.Take(), Batch(letters.begin(), letters.begin() + 2)) << "100,000 points and more";
  EXPECT_EQ(inbox.Take(), Batch(letters.begin() + 2, letters.begin() + 4));
  EXPECT_EQ(inbox.Take(), Batch(letters.begin() + 4, letters.end()));
  EXPECT_TRUE(inbox.empty());
}

TEST(Inbox, IsFullAt4096AndHasRoomAgainOnceSomeWereTaken) {
  Inbox inbox;
  for (int i = 0; i < 4096; ++i) ASSERT_TRUE(inbox.Put(Letter(1)).ok()) << i;
  const Status full = inbox.Put(Letter(1));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr("4096 reports of this experiment are waiting"));
  EXPECT_EQ(inbox.Take().size(), 4096u);
  EXPECT_TRUE(inbox.Put(Letter(1)).ok());
}

TEST(Inbox, WhatWasNotCommittedIsNotAnsweredOk) {
  Inbox inbox;
  const LetterPtr counts = Letter(1), fails = Letter(1);
  counts->answer = Reported{.stop = "it is poor"};
  inbox.Answer({counts}, absl::OkStatus());
  inbox.Answer({fails}, absl::ResourceExhaustedError("disk full"));
  const auto first = inbox.Await(counts, absl::ZeroDuration());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->stop, "it is poor");
  const Status second = inbox.Await(fails, absl::ZeroDuration()).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_THAT(Message(second), HasSubstr("was not stored (disk full): send it again"));
}

TEST(Inbox, WhoeverWaitsIsWokenAndGivesUpInTime) {
  Inbox inbox;
  const LetterPtr letter = Letter(1);
  EXPECT_TRUE(absl::IsUnavailable(inbox.Await(letter, absl::Milliseconds(1)).status()));
  std::thread answers([&] { inbox.Answer({letter}, absl::OkStatus()); });
  EXPECT_TRUE(inbox.Await(letter, absl::Seconds(20)).ok());
  answers.join();
}

}  // namespace
}  // namespace shirabe::experiment
