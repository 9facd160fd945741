#include "view/record_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/records.h"

namespace shirabe::view {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<v1::Trial> Trials() {
  std::vector<v1::Trial> trials = {
      MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5, {.lr = 0.1, .bs = 16, .opt = "sgd"}),
      MakeTrial(2, v1::TRIAL_FAILED),
      MakeTrial(3, v1::TRIAL_SUCCEEDED, 0.25, {.lr = 1e-4, .bs = 32, .opt = "Adam, new"}),
      MakeTrial(4, v1::TRIAL_RUNNING, 0.75, {.lr = 1e-3, .bs = 64, .opt = "sgd"}),
  };
  return trials;
}

std::vector<int64_t> Select(const std::string& filter, const std::string& sort_by,
                            int64_t limit = -1) {
  const auto selection =
      Selection<v1::Trial>::Create(TrialFields(MakeExperiment()), filter, sort_by);
  EXPECT_TRUE(selection.ok()) << selection.status();
  std::vector<int64_t> numbers;
  if (!selection.ok()) return numbers;
  std::vector<v1::Trial> trials = Trials();
  selection->Apply(trials, limit);
  for (const v1::Trial& trial : trials) numbers.push_back(trial.number());
  return numbers;
}

std::string Refusal(const std::string& filter, const std::string& sort_by = "") {
  const auto selection =
      Selection<v1::Trial>::Create(TrialFields(MakeExperiment()), filter, sort_by);
  EXPECT_TRUE(absl::IsInvalidArgument(selection.status())) << selection.status();
  return Message(selection.status());
}

TEST(FilterTest, NoFilterAndNoOrderKeepsEverythingAsItIs) {
  EXPECT_THAT(Select("", ""), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Select("", "", 2), ElementsAre(1, 2));
  EXPECT_THAT(Select("", "", 0), ElementsAre());
}

TEST(FilterTest, WordsAreComparedWithoutRegardToCase) {
  EXPECT_THAT(Select("state=Succeeded", ""), ElementsAre(1, 3));
  EXPECT_THAT(Select("state=succeeded", ""), ElementsAre(1, 3));
  EXPECT_THAT(Select("state!=Succeeded", ""), ElementsAre(2, 4));
  EXPECT_THAT(Select(R"(opt="adam, NEW")", ""), ElementsAre(3));
}

TEST(FilterTest, NumbersAreComparedAsNumbers) {
  EXPECT_THAT(Select("param.lr<1e-3", ""), ElementsAre(3));
  EXPECT_THAT(Select("lr <= 0.001", ""), ElementsAre(3, 4));
  EXPECT_THAT(Select("bs=32.0", ""), ElementsAre(2, 3));  // 2 has the default values
  EXPECT_THAT(Select("trial>=2, trial<4", ""), ElementsAre(2, 3));
  EXPECT_THAT(Select("trial>9", ""), ElementsAre());
}

TEST(FilterTest, RunningTrialsHaveTheObjectiveTheyHaveReached) {
  EXPECT_THAT(Select("objective<0.8", ""), ElementsAre(1, 3, 4));
  EXPECT_THAT(Select("loss<0.8,state=Running", ""), ElementsAre(4));
  EXPECT_THAT(Select("metric.acc==0.75", ""), ElementsAre(1, 3, 4));
}

TEST(FilterTest, WhatHasNoValueDiffersFromAllValues) {
  EXPECT_THAT(Select("objective!=0.5", ""), ElementsAre(2, 3, 4));
  EXPECT_THAT(Select("objective>=-1e300", ""), ElementsAre(1, 3, 4));
}

TEST(FilterTest, OrdersWithNothingLastInEitherDirection) {
  EXPECT_THAT(Select("", "objective"), ElementsAre(3, 1, 4, 2));
  EXPECT_THAT(Select("", "~objective"), ElementsAre(4, 1, 3, 2));
  EXPECT_THAT(Select("", "~trial", 2), ElementsAre(4, 3));
  EXPECT_THAT(Select("state=Succeeded", "lr"), ElementsAre(3, 1));
}

TEST(FilterTest, EqualKeysKeepTheirOrder) {
  EXPECT_THAT(Select("", "attempts"), ElementsAre(1, 2, 3, 4));
}

TEST(FilterTest, NanSortsWithNothing) {
  EXPECT_FALSE(Before(std::nan(""), 1.0, false));
  EXPECT_TRUE(Before(1.0, std::nan(""), true));
  EXPECT_FALSE(Before(std::nan(""), FieldValue(), false));
  EXPECT_FALSE(Before(FieldValue(), std::nan(""), false));
}

TEST(FilterTest, SaysWhatItCannotRead) {
  EXPECT_THAT(Refusal("Failed"), HasSubstr("\"Failed\" is not a condition"));
  EXPECT_THAT(Refusal("=3"), HasSubstr("\"=3\" is not a condition"));
  EXPECT_THAT(Refusal("state!Failed"), HasSubstr("not a condition"));
  EXPECT_THAT(Refusal("state=Failed,"), HasSubstr("\"\" is not a condition"));
  EXPECT_THAT(Refusal("state=Succeded"),
              AllOf(HasSubstr("never \"Succeded\"; did you mean \"Succeeded\"?"),
                    HasSubstr("Pending, Running,")));
  EXPECT_THAT(Refusal("opt=\"a"), HasSubstr("quote"));
  EXPECT_THAT(Refusal("objective<1h"), HasSubstr("\"objective<1h\": \"1h\" is not a number"));
}

TEST(FilterTest, WhatCouldNeverHoldIsRefused) {
  for (const char* field : {"objective", "trial", "seconds", "metric.acc", "lr", "param.bs"}) {
    for (const char* comparison : {"=", "!="}) {
      EXPECT_THAT(Refusal(std::string(field) + comparison + "abc"),
                  AllOf(HasSubstr(std::string("field ") + field + " is a number"),
                        HasSubstr("\"abc\""), HasSubstr(std::string("'") + field + "=0.5'")));
    }
  }
  EXPECT_THAT(Refusal("objective="), HasSubstr("\"\" is not"));
  EXPECT_THAT(Refusal("state<3"), HasSubstr("field state is text"));
  EXPECT_THAT(Refusal("opt>=1"), HasSubstr("use = or !="));
  EXPECT_THAT(Select("reason!=abc", ""), ElementsAre(1, 2, 3, 4)) << "text is compared with any";
}

TEST(FilterTest, UnknownFieldsGetTheNearestAndTheList) {
  EXPECT_THAT(Refusal("stat=Failed"), HasSubstr("did you mean \"state\"?"));
  EXPECT_THAT(Refusal("", "~objectiv"), HasSubstr("did you mean \"objective\"?"));
  EXPECT_THAT(Refusal("zzzzzz=1"), HasSubstr("metric.acc, param.lr"));
}

TEST(FilterTest, ExperimentsHaveFieldsToo) {
  const auto selection =
      Selection<v1::Experiment>::Create(ExperimentFields(At(60)), "best<1,age=60", "name");
  ASSERT_TRUE(selection.ok()) << selection.status();
  v1::Experiment with_best = MakeExperiment();
  SetBest(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5), with_best);
  EXPECT_TRUE(selection->Matches(with_best));
  EXPECT_FALSE(selection->Matches(MakeExperiment()));
}

}  // namespace
}  // namespace shirabe::view
