#include "base/names.h"

#include <gtest/gtest.h>

#include "proto/shirabe/v1/records.pb.h"

namespace shirabe {
namespace {

TEST(Names, AreBuiltAndReadBack) {
  for (const char* experiment : {"a", "digits", "a-1", "x-a1", "0", "a--b"}) {
    for (const int64_t number : {int64_t{1}, int64_t{10}, INT64_MAX}) {
      const TrialKey trial{{"default", experiment}, number};
      EXPECT_EQ(ParseTrialName(TrialName(trial), "default"), trial) << TrialName(trial);
      const AttemptKey attempt{trial, 3};
      EXPECT_EQ(ParseAttemptName(AttemptName(attempt), "default"), attempt);
    }
  }
  EXPECT_EQ(TrialName({{"default", "digits"}, 7}), "digits-7");
  EXPECT_EQ(AttemptName({{{"default", "digits"}, 7}, 2}), "digits-7-a2");
  EXPECT_EQ(ToString(ExperimentKey{"team", "digits"}), "team/digits");
}

TEST(Names, TheFollowUpHasANameWhereATrialHasANumber) {
  for (const char* experiment : {"a", "digits", "a-on-success", "a-1", "on-success"}) {
    const TrialKey follow_up{{"ns", experiment}, kFollowUpNumber};
    EXPECT_EQ(TrialName(follow_up), std::string(experiment) + "-on-success");
    EXPECT_EQ(ParseTrialName(TrialName(follow_up), "ns"), follow_up);
    EXPECT_EQ(ParseTrialName(std::string(experiment) + "/on-success", "ns"), follow_up);
    EXPECT_EQ(ParseAttemptName(AttemptName({follow_up, 2}), "ns"), (AttemptKey{follow_up, 2}));
    EXPECT_TRUE(ValidateKey(AttemptKey{follow_up, 1}).ok());
  }
  // Each name has one spelling.
  const std::string number = std::to_string(kFollowUpNumber);
  for (const std::string& text :
       {"a-" + number, "a/" + number, std::string("on-success"), std::string("-on-success"),
        std::string("/on-success"), std::string("a-on-success-"), std::string("A-on-success"),
        std::string("a-on-success1"), std::string("a/b/on-success")}) {
    EXPECT_EQ(ParseTrialName(text, "ns"), std::nullopt) << text;
  }
  EXPECT_LE(AttemptName({{{"ns", std::string(40, 'x')}, kFollowUpNumber}, 1 << 20}).size(), 63u);
}

TEST(Names, TrialsAlsoAsPeopleTypeThem) {
  EXPECT_EQ(ParseTrialName("digits/7", "ns"), (TrialKey{{"ns", "digits"}, 7}));
  EXPECT_EQ(ParseTrialName("a-b/7", "ns"), (TrialKey{{"ns", "a-b"}, 7}));
}

TEST(Names, WhatIsNoNameIsRefused) {
  for (const char* text : {"", "-", "/", "7", "digits", "digits-", "digits-0", "digits--1", "-7",
                           "digits-7x", "digits-07", "digits/-7", "Digits-7", "a/b/7", "digits-+7",
                           "digits-9223372036854775808", "digits 7", "digits-7 "}) {
    EXPECT_EQ(ParseTrialName(text, "default"), std::nullopt) << text;
  }
  for (const char* text : {"", "-a1", "digits-7", "digits-7-a", "digits-7-a0", "digits-a1",
                           "digits-7-a2147483648", "digits-7-a01", "digits-7-b1"}) {
    EXPECT_EQ(ParseAttemptName(text, "default"), std::nullopt) << text;
  }
}

TEST(Names, TheLongestFitsADnsLabel) {
  const std::string experiment(40, 'x');
  EXPECT_TRUE(ValidateExperimentName(experiment).ok());
  EXPECT_LE(TrialName({{"ns", experiment}, INT64_MAX}).size(), 63u);
  EXPECT_FALSE(ValidateExperimentName(experiment + "x").ok());
  EXPECT_TRUE(ValidateNamespace(std::string(63, 'x')).ok());
  EXPECT_FALSE(ValidateNamespace(std::string(64, 'x')).ok());
}

TEST(Names, ErrorsNameTheValueAndTheRule) {
  for (const char* name : {"", "-a", "a-", "A", "a_b", "a.b", "a/b", "é"}) {
    const Status status = ValidateExperimentName(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(Message(status).find("experiment name \"" + std::string(name) + "\" must be 1 to 40"),
              std::string::npos)
        << Message(status);
  }
}

TEST(Names, ErrorsShowNoMoreThanAPartOfALongName) {
  const Status status = ValidateNamespace(std::string(1 << 20, 'x') + std::string("\0\n", 2));
  EXPECT_LT(status.message().size(), 400u);
  EXPECT_EQ(Message(ValidateNamespace(std::string("a\0b", 3))).find('\0'), std::string::npos);
}

TEST(Names, KeysFromOutsideAreNamesAndNumbersFromOne) {
  const ExperimentKey experiment{"team", "digits"};
  EXPECT_TRUE(ValidateKey(experiment).ok());
  EXPECT_TRUE(ValidateKey(TrialKey{experiment, 1}).ok());
  EXPECT_TRUE(ValidateKey(AttemptKey{{experiment, kMaxTrialNumber}, 1}).ok());
  for (const ExperimentKey& key :
       {ExperimentKey{"", "digits"}, ExperimentKey{"team", ""}, ExperimentKey{"..", "digits"},
        ExperimentKey{"team", "../digits"}, ExperimentKey{"team", std::string("d\0", 2)}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateKey(key))) << ToString(key);
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateKey(AttemptKey{{key, 1}, 1}))) << ToString(key);
  }
  for (const int64_t number : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ValidateKey(TrialKey{experiment, number}))) << number;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateKey(AttemptKey{{experiment, 1}, 0})));
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateKey(AttemptKey{{experiment, 1}, INT32_MAX})));
}

TEST(Names, KeysOfRecords) {
  v1::Trial trial;
  trial.set_namespace_("team");
  trial.set_experiment("digits");
  EXPECT_EQ(ExperimentKeyOf(trial), (ExperimentKey{"team", "digits"}));
  EXPECT_LT((TrialKey{{"a", "b"}, 2}), (TrialKey{{"a", "b"}, 10}));
}

TEST(Names, ParameterVariables) {
  EXPECT_EQ(ParameterVariable("lr"), "SHIRABE_PARAM_LR");
  EXPECT_EQ(ParameterVariable("num-layers.v2"), "SHIRABE_PARAM_NUM_LAYERS_V2");
  EXPECT_EQ(ParameterVariable("@[`{"), "SHIRABE_PARAM_____");
}

}  // namespace
}  // namespace shirabe
