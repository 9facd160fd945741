#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "suggestion/algorithm.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Type = SettingInfo::Type;

const std::vector<SettingInfo> kKnown = {
    {.name = "n_startup", .type = Type::kInt, .default_value = "10", .min = 1, .max = 1000},
    {.name = "gamma", .type = Type::kDouble, .default_value = "0.25", .min = 0, .max = 1},
    {.name = "restart", .type = Type::kBool},
    {.name = "kernel", .type = Type::kWord, .words = {"matern", "rbf"}},
    {.name = "tag"},
    {.name = "population",
     .type = Type::kInt,
     .min = 2,
     .max = std::numeric_limits<double>::infinity()},
};

std::string Refusal(const std::string& name, const std::string& value) {
  const Status status = ValidateSettings(kKnown, {{name, value}});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << "=" << value << ": " << status;
  return Message(status);
}

TEST(Settings, GoodOnesPass) {
  EXPECT_TRUE(ValidateSettings(kKnown, {}).ok());
  const Settings good = {{"n_startup", "1000"}, {"gamma", "1e-3"},     {"restart", "True"},
                         {"kernel", "rbf"},     {"tag", "any at all"}, {"population", "1000000"},
                         {"random_state", "42"}};
  EXPECT_TRUE(ValidateSettings(kKnown, good).ok()) << ValidateSettings(kKnown, good);
}

TEST(Settings, UnknownOnesAreRefusedWithTheListAndAGuess) {
  EXPECT_EQ(Refusal("gama", "1"),
            "setting \"gama\" is not known; did you mean \"gamma\"? known: n_startup, gamma, "
            "restart, kernel, tag, population, random_state");
  EXPECT_THAT(Message(ValidateSettings({}, {{"x", "1"}})), HasSubstr("known: random_state"));
}

TEST(Settings, ValuesMustFitTheirType) {
  EXPECT_EQ(Refusal("n_startup", "ten"),
            "setting \"n_startup\" is \"ten\": it must be a whole number, such as 10");
  for (const char* bad : {"", "1.5", "1e3", " 1", "1 ", "99999999999999999999"}) {
    EXPECT_THAT(Refusal("n_startup", bad), HasSubstr("whole number"));
  }
  EXPECT_THAT(Refusal("gamma", "a lot"), HasSubstr("must be a number, such as 0.25"));
  EXPECT_THAT(Refusal("gamma", "nan"), HasSubstr("must be a number"));
  EXPECT_THAT(Refusal("restart", "yes"), HasSubstr("true or false"));
  EXPECT_THAT(Refusal("kernel", "matrn"),
              AllOf(HasSubstr("did you mean \"matern\"?"), HasSubstr("one of matern, rbf")));
}

TEST(Settings, ValuesMustBeWithinBounds) {
  EXPECT_THAT(Refusal("n_startup", "0"), HasSubstr("within 1 … 1000"));
  EXPECT_THAT(Refusal("n_startup", "1001"), HasSubstr("within 1 … 1000"));
  EXPECT_THAT(Refusal("gamma", "1.01"), HasSubstr("within 0 … 1"));
  EXPECT_THAT(Refusal("population", "1"), HasSubstr("at least 2"));
  EXPECT_THAT(Refusal("random_state", "-1"), HasSubstr("at least 0"));
}

TEST(Settings, TheSameTwiceIsRefused) {
  const Status status = ValidateSettings(kKnown, {{"gamma", "0.1"}, {"gamma", "0.1"}});
  EXPECT_THAT(Message(status), HasSubstr("\"gamma\" is given twice"));
}

TEST(Settings, FindGivesTheValueOrNull) {
  const Settings settings = {{"a", "1"}, {"b", ""}};
  EXPECT_EQ(*FindSetting(settings, "a"), "1");
  EXPECT_EQ(*FindSetting(settings, "b"), "");
  EXPECT_EQ(FindSetting(settings, "c"), nullptr);
}

// An algorithm that refuses every problem, and tells the settings that it was given.
StatusOr<std::unique_ptr<Algorithm>> Tell(const Problem& problem) {
  std::string text;
  for (const auto& [name, value] : problem.settings) text += name + "=" + value + " ";
  return absl::InvalidArgumentError(text);
}

TEST(CreateAlgorithm, FillsInDefaults) {
  Registry<AlgorithmInfo>::Get().Add({.name = "tell",
                                      .aliases = {"tell-alias"},
                                      .help = "for this test",
                                      .settings = kKnown,
                                      .create = &Tell});
  const Problem problem{.space = Make({Double("x", {0, 1})}), .settings = {{"gamma", "0.5"}}};
  EXPECT_EQ(Message(CreateAlgorithm("tell", problem).status()), "gamma=0.5 n_startup=10 ");
  EXPECT_EQ(Message(CreateAlgorithm("tell-alias", problem).status()), "gamma=0.5 n_startup=10 ");
}

TEST(CreateAlgorithm, NamesWhatIsWrong) {
  const Problem problem{.space = Make({Double("x", {0, 1})})};
  const auto unknown = CreateAlgorithm("randon", problem);
  EXPECT_TRUE(absl::IsNotFound(unknown.status()));
  EXPECT_THAT(Message(unknown.status()),
              AllOf(HasSubstr("\"randon\" is not known; did you mean \"random\"?"),
                    HasSubstr("grid, "), HasSubstr("random, "), HasSubstr("sobol")));
  const Problem misspelt{.space = problem.space, .settings = {{"random_stat", "1"}}};
  EXPECT_THAT(Message(CreateAlgorithm("sobol", misspelt).status()),
              HasSubstr("algorithm sobol: setting \"random_stat\" is not known; did you mean "
                        "\"random_state\"?"));
}

}  // namespace
}  // namespace shirabe::suggestion
