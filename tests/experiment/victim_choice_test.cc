#include "experiment/state/victim_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::experiment {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kMost = absl::Seconds(15);

std::vector<int64_t> TrialsOf(const std::vector<Victim>& victims) {
  std::vector<int64_t> trials;
  for (const Victim& victim : victims) trials.push_back(victim.trial);
  return trials;
}

TEST(VictimChoiceTest, TheLeastUnsavedTimeGoesFirst) {
  const std::vector<VictimCandidate> all = {
      {1, absl::Seconds(5)}, {2, absl::Seconds(1)}, {3, absl::Seconds(9)}};
  EXPECT_THAT(TrialsOf(ChooseVictims(all, 1, kMost)), ElementsAre(2));
  EXPECT_THAT(TrialsOf(ChooseVictims(all, 2, kMost)), ElementsAre(2, 1));
  EXPECT_THAT(TrialsOf(ChooseVictims(all, 9, kMost)), ElementsAre(2, 1, 3));
  EXPECT_THAT(ChooseVictims(all, 0, kMost), IsEmpty());
  EXPECT_THAT(ChooseVictims(all, -3, kMost), IsEmpty());
  EXPECT_THAT(ChooseVictims({}, 2, kMost), IsEmpty());
}

// One second of eight GPUs is worth more than five of one.
TEST(VictimChoiceTest, TimeCountsByWhatItCosts) {
  const auto victims =
      ChooseVictims({{1, absl::Seconds(1), 32.0}, {2, absl::Seconds(5), 4.0}}, 1, kMost);
  ASSERT_THAT(TrialsOf(victims), ElementsAre(2));
  EXPECT_EQ(victims[0].why,
            "5.0 s of its work are not saved, worth 0.0056, the least of 2 that run");
}

TEST(VictimChoiceTest, OfEachItSaysWhatIsTrueOfIt) {
  const auto victims = ChooseVictims(
      {{1, absl::Seconds(5)}, {2, absl::Seconds(1)}, {3, absl::Seconds(9)}}, 2, kMost);
  ASSERT_THAT(TrialsOf(victims), ElementsAre(2, 1));
  EXPECT_EQ(victims[0].why, "1.0 s of its work are not saved, the least of 3 that run");
  EXPECT_EQ(victims[1].why, "5.0 s of its work are not saved, the least of the 2 that are left");
}

TEST(VictimChoiceTest, OfEqualsTheNewestGoes) {
  EXPECT_THAT(TrialsOf(ChooseVictims(
                  {{1, absl::ZeroDuration()}, {7, absl::ZeroDuration()}, {3, absl::ZeroDuration()}},
                  2, kMost)),
              ElementsAre(7, 3));
  // Free machines lose nothing in money: by time, then.
  EXPECT_THAT(TrialsOf(ChooseVictims(
                  {{1, absl::Seconds(2), 0}, {2, absl::Seconds(1), 0}, {3, absl::Seconds(1), 9}}, 3,
                  kMost)),
              ElementsAre(2, 1, 3));
}

TEST(VictimChoiceTest, NoneThatLosesMuchAndNoneThatIsNotKnown) {
  EXPECT_THAT(
      TrialsOf(ChooseVictims({{1, kMost}, {2, kMost + absl::Milliseconds(1)}, {3}}, 3, kMost)),
      ElementsAre(1));
}

// A clock that was set back is no credit.
TEST(VictimChoiceTest, TimeBeforeNothingIsNothing) {
  const auto victims =
      ChooseVictims({{1, absl::Seconds(-50)}, {2, absl::ZeroDuration()}}, 1, kMost);
  ASSERT_THAT(TrialsOf(victims), ElementsAre(2));
  EXPECT_EQ(victims[0].why, "0.0 s of its work are not saved, the least of 2 that run");
}

}  // namespace
}  // namespace shirabe::experiment
