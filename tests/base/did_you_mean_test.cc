#include "base/text/did_you_mean.h"

#include <gtest/gtest.h>

namespace shirabe {
namespace {

const std::vector<std::string> kFields = {
    "parallelTrialCount", "maxTrialCount", "maxFailedTrialCount", "objective", "min", "max"};

TEST(DidYouMean, FindsOneWrongLetterASwapAndAMissingLetter) {
  EXPECT_EQ(Nearest("objectiv", kFields), "objective");
  EXPECT_EQ(Nearest("objecitve", kFields), "objective");
  EXPECT_EQ(Nearest("maxTrailCount", kFields), "maxTrialCount");
  EXPECT_EQ(Nearest("paralelTrialCount", kFields), "parallelTrialCount");
}

TEST(DidYouMean, CaseDoesNotCount) {
  EXPECT_EQ(Nearest("OBJECTIVE", kFields), "objective");
  EXPECT_EQ(Nearest("maxtrialcount", kFields), "maxTrialCount");
}

TEST(DidYouMean, TheNearestWinsAndOfEqualsTheFirst) {
  EXPECT_EQ(Nearest("mix", kFields), "min");
  EXPECT_EQ(Nearest("mix", {"max", "min"}), "max");
  EXPECT_EQ(Nearest("min", kFields), "min");
}

TEST(DidYouMean, AWordLikeNoneOfThemGetsNoGuess) {
  EXPECT_EQ(Nearest("banana", kFields), std::nullopt);
  EXPECT_EQ(Nearest("x", kFields), std::nullopt);
  EXPECT_EQ(Nearest("", kFields), std::nullopt);
  EXPECT_EQ(Nearest("objective", {}), std::nullopt);
  EXPECT_EQ(Nearest("lr", {"bs"}), std::nullopt);
}

TEST(DidYouMean, EndlessWordsAreNotCompared) {
  EXPECT_EQ(Nearest(std::string(1 << 20, 'a'), {std::string(1 << 20, 'a')}), std::nullopt);
}

}  // namespace
}  // namespace shirabe
