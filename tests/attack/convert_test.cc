// Files of other systems are written by others: what is deep, long, wrong or full of tricks is
// refused in a moment with its place, and nothing of a text is run or expanded on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/integration/cli.h"

namespace shirabe::cmd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

class ConvertAttack : public testing::Test {
 protected:
  // Refused with code 5 within seconds, and with these words.
  void ExpectRefused(const std::string& text, const std::string& words) {
    const std::string path = cli_.Write("hostile.yaml", text);
    const absl::Duration began = RealClock()->Monotonic();
    for (const Words& call :
         {Words{"convert", "-f", path}, Words{"validate", "-f", path}, Words{"run", "-f", path}}) {
      const Outcome outcome = cli_.Run(call);
      EXPECT_EQ(outcome.code, 5) << outcome.err.substr(0, 500);
      EXPECT_THAT(outcome.err, HasSubstr(words)) << call[0];
      EXPECT_EQ(outcome.out, "");
    }
    EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(30));
  }

  Cli cli_;
};

TEST_F(ConvertAttack, WhatIsTooDeepTooLongOrTooManyIsRefused) {
  ExpectRefused("trainingInput: " + std::string(5'000, '[') + "\n", "more than 64 levels");
  // Longer than a specification may be: not read to its end.
  const std::string endless = "trainingInput: {args: [" + std::string(2 << 20, 'a') + "]}\n";
  const Outcome outcome = cli_.Run({"convert", "-f", cli_.Write("endless.yaml", endless)});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("is larger than"));
  std::string keys = "method: random\nmetric: {name: a}\nparameters:\n";
  for (int i = 0; i < 3'000; ++i) absl::StrAppend(&keys, "  p", i, ": {min: 0, max: 1}\n");
  ExpectRefused(keys, "3000 keys");
}

TEST_F(ConvertAttack, ArgsAreNotMultipliedWithoutABound) {
  std::string sweep = "method: random\nprogram: t\nmetric: {name: a}\nparameters:\n";
  for (int i = 0; i < 900; ++i) absl::StrAppend(&sweep, "  p", i, ": {min: 0, max: 1}\n");
  absl::StrAppend(&sweep, "command: [",
                  absl::StrJoin(std::vector<std::string>(9'000, "'${args}'"), ", "), "]\n");
  ExpectRefused(sweep, "5000 words");
}

TEST_F(ConvertAttack, AliasesDoNotGrowIntoATreeOfAnySize) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    absl::StrAppend(&bomb, std::string(1, c), ": &", std::string(1, c), " [*",
                    absl::StrJoin(std::vector<std::string>(10, before), ", *"), "]\n");
  }
  ExpectRefused("trainingInput: {}\n" + bomb, "100000");
}

TEST_F(ConvertAttack, NumbersAndNamesThatNoSearchCanHaveAreRefused) {
  const auto with = [](const std::string& param) {
    return "trainingInput: {pythonModule: a, hyperparameters: {params: [" + param + "]}}\n";
  };
  ExpectRefused(with("{parameterName: x, type: DOUBLE, minValue: .nan, maxValue: 1}"), "finite");
  ExpectRefused(with("{parameterName: x, type: DOUBLE, minValue: -.inf, maxValue: 1}"), "finite");
  ExpectRefused(with("{parameterName: 'a}b', type: INTEGER, minValue: 1, maxValue: 2}"),
                "${trialParameters.a} is bound by no");
  ExpectRefused(with("{parameterName: x, type: INTEGER, minValue: 1, maxValue: 1e300}"), "2^53");
  ExpectRefused("trainingInput: [1]\n", "must be a mapping");
  ExpectRefused("trainingInput: {}\nrun_cap: 1\n", "keep those of one");
}

TEST_F(ConvertAttack, WhatLooksLikeAVariableStaysText) {
  const std::string path = cli_.Write(
      "tricks.yaml",
      "trainingInput: {pythonModule: 'a; touch x', args: ['$(HOME)', '$$(HOME)', '`id`'],"
      " masterConfig: {imageUri: \"i\\e[31m\"}}\n");
  const Outcome outcome = cli_.Run({"convert", "-f", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("- a; touch x"), HasSubstr("$$(HOME)"), HasSubstr("$$$$(HOME)")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b"))) << "a report must not steer a terminal";
}

TEST_F(ConvertAttack, AnExperimentThatIsToCrossIsHeldToTheSameRules) {
  const auto cross = [this](const std::string& text) {
    return cli_.Run(
        {"convert", "--to", "optimization-job", "-f", cli_.Write("experiment.yaml", text)});
  };
  const std::string head = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\n";
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {head + "spec: " + std::string(5'000, '[') + "\n", "more than 64 levels"},
           {head + "---\n" + head, "is required"},
           {"trainingInput: {}\n", "apiVersion"},
           {"", "no document"},
           {head + "metadata: {name: '../../etc'}\n", "metadata.name"}}) {
    const Outcome outcome = cross(text);
    EXPECT_EQ(outcome.code, 5) << text.substr(0, 100) << outcome.err.substr(0, 500);
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
  for (const Words& words :
       {Words{"--to", "job"}, Words{"--to", "optimization-job", "--from", "wandb"},
        Words{"--to", "optimization-job", "--name", "a"}}) {
    Words call = {"convert", "-f", cli_.Path("experiment.yaml")};
    call.insert(call.end(), words.begin(), words.end());
    EXPECT_EQ(cli_.Run(call).code, 2) << absl::StrJoin(call, " ");
  }
}

TEST_F(ConvertAttack, AJobThatACommandLineMakesIsHeldToTheSameRules) {
  for (const Words& words :
       {Words{"jobs", "submit", "training", "../../etc/passwd/and/what/follows/it/there"},
        Words{"jobs", "submit", "training", "---"},
        Words{"jobs", "submit", "training", "a", "--module-name", "m", "--labels", "x"},
        Words{"jobs", "submit", "training", "a", "--module-name", "m", "--master-accelerator",
              "two"},
        Words{"jobs", "submit", "training", "a", "--module-name", "m", "--package-path",
              "/no/such/folder"}}) {
    Words call = {"ai-platform"};
    call.insert(call.end(), words.begin(), words.end());
    EXPECT_EQ(cli_.Run(call).code, 2) << absl::StrJoin(call, " ");
  }
  const Outcome server = cli_.Run({"ai-platform", "jobs", "submit", "training", "a",
                                   "--module-name", "m", "--server", "192.0.2.1:1"});
  EXPECT_EQ(server.code, 1);
  EXPECT_THAT(server.err, HasSubstr("--master-image-uri"));
}

}  // namespace
}  // namespace shirabe::cmd
