// The rules of spec.shirabe.space: conditions, forbidden combinations, sums and priors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/trial_point.h"
#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// kGood where units are an option of their own, with spec.shirabe.space and more of spec.shirabe.
std::string WithOption(const std::string& space, const std::string& more = "") {
  return Replaced(kGood, "\"${trialParameters.units}\"]", "\"--units=${trialParameters.units}\"]") +
         "  shirabe: {space: {" + space + "}" + more + "}\n";
}

TEST(Rules, OfConditionsAndForbiddenCombinations) {
  constexpr char kOfAdam[] = "conditions: [{parameter: units, when: {optimizer: [adam]}}]";
  EXPECT_THAT(FindingsOf(WithOption(kOfAdam)), IsEmpty());
  EXPECT_THAT(FindingsOf(WithOption("forbidden: [{batch: 16, optimizer: adam}]")), IsEmpty());
  EXPECT_THAT(FindingsOf(WithOption("linear: [{sum: {units: 1, batch: -0.5}, max: 8}], "
                                    "priors: {lr: {center: 0.01, confidence: high}, "
                                    "optimizer: {value: adam}}")),
              IsEmpty());
  const std::pair<const char*, const char*> kWrong[] = {
      {"conditions: [{parameter: unit, when: {optimizer: adam}}]",
       "spec.shirabe.space.conditions[0].parameter: \"unit\" is not a parameter; did you mean "
       "\"units\"?"},
      {"conditions: [{parameter: units, when: {optimizer: lion}}]",
       "spec.shirabe.space.conditions[0].when.optimizer: \"lion\" is not in its list: sgd, adam"},
      {"conditions: [{parameter: units}]", "spec.shirabe.space.conditions[0].when"},
      {"conditions: [{parameter: units, if: {optimizer: sgd}, when: {optimizer: sgd}}]", "if"},
      {"forbidden: [{}]", "spec.shirabe.space.forbidden[0]: is empty"},
      {"forbidden: [{lr: 0.01}]", "spec.shirabe.space.forbidden[0].lr: a continuous parameter"},
      {"forbidden: [{optimizer: [adam, sgd]}]", "spec.shirabe.space: nothing is left to try"},
      {"linear: [{sum: {unit: 1}, max: 8}]", "spec.shirabe.space.linear[0].sum: \"unit\" is not"},
      {"linear: [{max: 8}]", "spec.shirabe.space.linear[0].sum"},
      {"linear: [{sum: {units: 1}}]", "spec.shirabe.space.linear[0]: give min or max"},
      {"linear: [{sum: {units: 1}, max: .inf}]", "spec.shirabe.space.linear[0].max"},
      {"linear: [{sum: {units: 1}, max: 8, equals: 3}]", "equals"},
      {"priors: {units: {center: 1e9}}", "spec.shirabe.space.priors.units: center: "},
      {"priors: {units: 3}", "spec.shirabe.space.priors.units: give {center: "},
      {"conditions: [{parameter: units, when: {optimizer: {in: adam}}}]",
       "when.optimizer: \"in\" has a list"},
  };
  for (const auto& [shirabe, finding] : kWrong) {
    EXPECT_THAT(FindingsOf(WithOption(shirabe)), Contains(HasSubstr(finding))) << shirabe;
  }
  EXPECT_THAT(FindingsOf(WithOption("forbidden: [{batch: 16}]",
                                    ", algorithm: {endpoint: \"127.0.0.1:1\"}")),
              Contains(HasSubstr("spec.shirabe.algorithm")));
}

TEST(Rules, AllThatIsWrongIsSaidAtOnce) {
  const std::string space =
      "conditions: [{parameter: unit, when: {optimizer: lion}}], "
      "forbidden: [{batch: 16}, {batch: 17}, {\"x\\ny\": 1}], linear: [{sum: {units: 1}}], "
      "priors: {units: 3, momentum: {center: 1}}";
  EXPECT_THAT(FindingsOf(WithOption(space)),
              ElementsAre(HasSubstr("space.conditions[0].parameter: \"unit\" is not"),
                          HasSubstr("space.conditions[0].when.optimizer: \"lion\" is not"),
                          HasSubstr("space.forbidden[1].batch: "),
                          HasSubstr("space.forbidden[2]: \"x y\" is not a parameter"),
                          HasSubstr("space.linear[0]: give min or max"),
                          HasSubstr("space.priors: \"momentum\" is not a parameter"),
                          HasSubstr("space.priors.units: give")));
}

TEST(Rules, WhatAlgorithmsKnowNoConditionsSay) {
  const std::string cmaes =
      Replaced(WithOption("forbidden: [{batch: 16, units: {min: 32}}]"), "  parameters:",
               "  algorithm: {algorithmName: cmaes}\n"
               "  parameters:");
  EXPECT_THAT(FindingsOf(cmaes),
              ElementsAre(AllOf(HasSubstr("algorithm cmaes knows no conditions"),
                                HasSubstr("bayesianoptimization"), HasSubstr("tpe"))));
  const std::string nsga = Replaced(WithOption("priors: {units: {center: 8}}"), "  parameters:",
                                    "  algorithm: {algorithmName: de}\n"
                                    "  parameters:");
  EXPECT_THAT(FindingsOf(nsga), ElementsAre(AllOf(HasSubstr("algorithm de knows no priors"),
                                                  HasSubstr("random, sobol, tpe"))));
}

TEST(Rules, WhatDoesNotAlwaysExistMustStandWhereItCanBeLeftOut) {
  const std::string shirabe =
      "  shirabe: {space: {conditions: [{parameter: units, when: {optimizer: adam}}]}}\n";
  EXPECT_THAT(FindingsOf(kGood + shirabe),
              ElementsAre(AllOf(
                  HasSubstr(".containers[0].command[2]: ${trialParameters.units} does "
                            "not exist in every trial"),
                  HasSubstr("--x=${…}"), HasSubstr("env"), HasSubstr("SHIRABE_PARAMS_FILE"))));
  const std::pair<const char*, bool> kForms[] = {
      {"\"--units\", \"${trialParameters.units}\"", true},
      {"\"-u\", \"${trialParameters.units}\"", true},
      {"\"--units=${trialParameters.units}\"", true},
      {"\"--units=1${trialParameters.units}\"", false},
      {"\"--a=b\", \"${trialParameters.units}\"", false},
      {"\"fit --units ${trialParameters.units}\"", false},
  };
  for (const auto& [form, good] : kForms) {
    SCOPED_TRACE(form);
    const auto findings =
        FindingsOf(Replaced(kGood, "\"${trialParameters.units}\"", form) + shirabe);
    EXPECT_EQ(findings.empty(), good);
  }
}

// Escape sequences of a file must not reach the terminal.
TEST(Rules, NoFindingHasControlCharacters) {
  for (const char* shirabe :
       {"conditions: [{parameter: \"\\e[31m\", when: {optimizer: sgd}}]",
        "conditions: [{parameter: units, when: {\"\\e[31m\": sgd}}]",
        "forbidden: [{optimizer: [\"\\e[31m\"]}]", "forbidden: [{units: {\"\\e[31m\": 1}}]",
        "linear: [{sum: {\"\\e[31m\": 1}, max: 1}]",
        "linear: [{sum: {units: \"\\e[31m\"}, max: 1}]", "priors: {\"\\e[31m\": {center: 1}}",
        "priors: {units: {\"\\e[31m\": 1}}", "priors: {units: {center: \"\\e[31m\"}}",
        "priors: {units: {center: 8, confidence: \"\\e[31m\"}}",
        "}, start: [{\"\\e[31m\": 1}], limits: {", "}, start: [{lr: \"\\e[31m\"}], limits: {"}) {
    const auto findings = FindingsOf(WithOption(shirabe));
    ASSERT_FALSE(findings.empty()) << shirabe;
    for (const std::string& finding : findings) {
      EXPECT_EQ(finding.find('\x1b'), std::string::npos) << shirabe;
    }
  }
}

TEST(Rules, StartPointsHaveWhatExists) {
  const auto with = [](const std::string& point) {
    return FindingsOf(
        WithOption("conditions: [{parameter: units, when: {optimizer: adam}}], "
                   "forbidden: [{batch: 32, optimizer: sgd}]",
                   ", start: [{" + point + "}]"));
  };
  EXPECT_THAT(with("lr: 0.01, batch: 16, optimizer: sgd"), IsEmpty());
  EXPECT_THAT(with("lr: 0.01, units: 8, batch: 16, optimizer: adam"), IsEmpty());
  EXPECT_THAT(with("lr: 0.01, batch: 16, optimizer: adam"),
              ElementsAre(HasSubstr("start[0]: parameter \"units\" is missing")));
  EXPECT_THAT(with("lr: 0.01, units: 8, batch: 16, optimizer: sgd"),
              ElementsAre(HasSubstr("\"units\" exists only where optimizer is adam")));
  EXPECT_THAT(with("lr: 0.01, batch: 32, optimizer: sgd"),
              ElementsAre(HasSubstr("it is forbidden that batch is 32 and optimizer is sgd")));
}

// `shirabe try`, where only some values are given.
TEST(PointToTry, OthersAreDrawnSuchThatTheGivenOnesExist) {
  const v1::Experiment experiment =
      ParseOnly(WithOption("conditions: [{parameter: units, when: {optimizer: adam}}], "
                           "forbidden: [{batch: 32, units: 8}]"));
  const auto space = suggestion::Space::Create(experiment.spec());
  ASSERT_TRUE(space.ok());
  google::protobuf::Struct fields;
  (*fields.mutable_fields())["units"].set_number_value(8);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto point = SampleWithValues(experiment.spec(), *space, fields, Rng(seed));
    ASSERT_TRUE(point.ok()) << point.status();
    const auto values = space->Decode(*point);
    ASSERT_EQ(values.size(), 4u);
    EXPECT_EQ(values[1].integer(), 8);
    EXPECT_EQ(values[2].integer(), 16);
    EXPECT_EQ(values[3].category(), "adam");
  }
  (*fields.mutable_fields())["optimizer"].set_string_value("sgd");
  EXPECT_THAT(Message(SampleWithValues(experiment.spec(), *space, fields, Rng(1)).status()),
              HasSubstr("\"units\" exists only where optimizer is adam"));
}

TEST(PointToTry, WhatExistsByTheGivenValuesIsDrawn) {
  const v1::Experiment experiment =
      ParseOnly(WithOption("conditions: [{parameter: units, when: {optimizer: adam}}]"));
  const auto space = suggestion::Space::Create(experiment.spec());
  ASSERT_TRUE(space.ok());
  google::protobuf::Struct fields;
  (*fields.mutable_fields())["optimizer"].set_string_value("adam");
  std::set<int64_t> drawn;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto point = SampleWithValues(experiment.spec(), *space, fields, Rng(seed));
    ASSERT_TRUE(point.ok()) << point.status();
    drawn.insert(space->Decode(*point)[1].integer());
  }
  EXPECT_GT(drawn.size(), 5u);
}

}  // namespace
}  // namespace shirabe::experiment
