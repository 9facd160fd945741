// What is refused, and whether the message names the parameter, the value and the fix.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string SpaceRefusal(const v1::ParameterSpec& parameter) {
  const auto space = TryMake({parameter});
  EXPECT_TRUE(absl::IsInvalidArgument(space.status())) << space.status();
  return Message(space.status());
}

std::string EncodeRefusal(const Space& space, const std::vector<v1::Assignment>& values) {
  const auto point = space.Encode(values);
  EXPECT_TRUE(absl::IsInvalidArgument(point.status())) << point.status();
  return Message(point.status());
}

v1::Assignment Value(const std::string& name, double number) {
  v1::Assignment value;
  value.set_name(name);
  value.set_number(number);
  return value;
}

v1::Assignment Value(const std::string& name, const std::string& category) {
  v1::Assignment value;
  value.set_name(name);
  value.set_category(category);
  return value;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpaceErrorInfinity = std::numeric_limits<double>::infinity();

TEST(SpaceErrors, RangesThatAreNone) {
  EXPECT_EQ(SpaceRefusal(Double("lr", {1, 0.5})),
            "parameter \"lr\": min 1 is greater than max 0.5; exchange them");
  EXPECT_THAT(SpaceRefusal(Double("lr", {0, kSpaceErrorInfinity})), HasSubstr("finite"));
  EXPECT_THAT(SpaceRefusal(Double("lr", {kNan, 1})), HasSubstr("finite"));
  EXPECT_THAT(SpaceRefusal(Double("lr", {0, 1, 0.0})), HasSubstr("step 0 must be greater than 0"));
  EXPECT_THAT(SpaceRefusal(Double("lr", {0, 1, kNan})), HasSubstr("step NaN"));
  EXPECT_THAT(SpaceRefusal(Int("n", {0, 8, -2})), HasSubstr("step -2"));
  v1::ParameterSpec no_max = Double("lr", {0, 1});
  no_max.mutable_feasible_space()->clear_max();
  EXPECT_THAT(SpaceRefusal(no_max), HasSubstr("feasibleSpace has no max; give both"));
  no_max.set_parameter_type(v1::PARAMETER_TYPE_UNKNOWN);
  EXPECT_THAT(SpaceRefusal(no_max), HasSubstr("parameterType"));
}

TEST(SpaceErrors, LogarithmsNeedAPositiveMin) {
  for (v1::Distribution distribution : {v1::LOG_UNIFORM, v1::LOG_NORMAL}) {
    EXPECT_THAT(SpaceRefusal(Double("lr", {0, 1}, distribution)), HasSubstr("give a min > 0"));
    EXPECT_THAT(SpaceRefusal(Int("n", {0, 8}, distribution)), HasSubstr("min 0 has no logarithm"));
  }
}

TEST(SpaceErrors, IntegersThatAreNone) {
  EXPECT_THAT(SpaceRefusal(Int("n", {0.5, 8})),
              HasSubstr("min 0.5 of an int must be a whole number"));
  EXPECT_THAT(SpaceRefusal(Int("n", {0, 8, 1.5})), HasSubstr("step 1.5 of an int"));
  EXPECT_THAT(SpaceRefusal(Int("n", {0, 1e300})), HasSubstr("at most 2^53"));
}

TEST(SpaceErrors, MoreValuesThanACoordinateCanTellApart) {
  EXPECT_THAT(SpaceRefusal(Int("n", {-0x1p53, 0x1p53})),
              AllOf(HasSubstr("more than 2^53 + 1 values"), HasSubstr("choose a larger step")));
  EXPECT_THAT(SpaceRefusal(Double("x", {0, 1, 1e-30})), HasSubstr("more than 2^53 + 1 values"));
  EXPECT_THAT(SpaceRefusal(Double("x", {1e16, 1e16 + 8, 0.5})), HasSubstr("the step is too small"));
  EXPECT_THAT(SpaceRefusal(Double("x", {1e-300, 1, 0.1})), HasSubstr("37 decimal digits"));
  EXPECT_THAT(SpaceRefusal(Int("n", {1, 0x1p53}, v1::LOG_UNIFORM)),
              AllOf(HasSubstr("too improbable"), HasSubstr("narrow the range")));
}

TEST(SpaceErrors, ListsThatAreNone) {
  EXPECT_THAT(SpaceRefusal(Discrete("n", {})), HasSubstr("the list is empty"));
  EXPECT_THAT(SpaceRefusal(Categorical("c", {})), HasSubstr("the list is empty"));
  EXPECT_THAT(SpaceRefusal(Discrete("n", {1, kSpaceErrorInfinity})),
              HasSubstr("Infinity in the list"));
}

TEST(SpaceErrors, NamesMustBeThereAndUnique) {
  EXPECT_THAT(SpaceRefusal(Double("", {0, 1})), HasSubstr("parameter 1 has no name"));
  const auto twice = TryMake({Double("a", {0, 1}), Int("a", {0, 1})});
  EXPECT_THAT(Message(twice.status()), HasSubstr("parameter \"a\" is there twice"));
}

TEST(SpaceErrors, ValuesThatAreNotFeasible) {
  const Space space = Make({Double("lr", {1e-5, 0.1}), Int("n", {0, 100, 10}),
                            Discrete("d", {1, 2.5}), Categorical("opt", {"sgd", "adam"})});
  const auto with = [&](const v1::Assignment& value) {
    auto values = space.Decode(space.Canonical({0.5, 0.5, 0.5, 0}));
    for (auto& other : values) {
      if (other.name() == value.name()) other = value;
    }
    return EncodeRefusal(space, values);
  };
  EXPECT_EQ(with(Value("lr", 0.5)), "parameter \"lr\": 0.5 is not within 1e-05 … 0.1");
  EXPECT_THAT(with(Value("lr", kNan)), HasSubstr("parameter \"lr\""));
  EXPECT_THAT(with(Value("lr", "fast")), HasSubstr("\"fast\" is text; give a number"));
  EXPECT_THAT(with(Value("n", 42)), HasSubstr("42 is not one of its values; near it is 40"));
  EXPECT_THAT(with(Value("n", 110)), HasSubstr("from 0 to 100"));
  EXPECT_THAT(with(Value("n", -kSpaceErrorInfinity)), HasSubstr("near it is 0"));
  EXPECT_THAT(with(Value("d", 2)), HasSubstr("2 is not in its list: 1, 2.5"));
  EXPECT_THAT(with(Value("opt", "adm")), HasSubstr("did you mean \"adam\"?"));
  EXPECT_THAT(with(Value("opt", 3)), HasSubstr("3 is a number; give one of the listed texts"));
}

TEST(SpaceErrors, EveryParameterExactlyOnce) {
  const Space space = Make({Double("lr", {0, 1}), Double("momentum", {0, 1})});
  EXPECT_THAT(EncodeRefusal(space, {Value("lr", 0.5)}),
              HasSubstr("parameter \"momentum\" is missing"));
  EXPECT_THAT(EncodeRefusal(space, {Value("lr", 0.5), Value("lr", 0.5)}),
              HasSubstr("\"lr\" is given twice"));
  EXPECT_THAT(EncodeRefusal(space, {Value("lr", 0), Value("momentum", 0), Value("momentun", 0)}),
              HasSubstr("\"momentun\" is not a parameter; did you mean \"momentum\"?"));
  EXPECT_THAT(EncodeRefusal(space, {Value("lr", 0), Value("momentum", 0), Value("x", 0)}),
              HasSubstr("there are lr, momentum"));
  v1::Assignment nothing;
  nothing.set_name("lr");
  EXPECT_THAT(EncodeRefusal(space, {nothing, Value("momentum", 0)}), HasSubstr("no value"));
}

}  // namespace
}  // namespace shirabe::suggestion
