// Conditions, forbidden combinations and sums of a space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// NAME=VALUE of each parameter that exists.
std::vector<std::string> ValuesAt(const Space& space, const Point& point) {
  std::vector<std::string> values;
  for (const v1::Assignment& one : space.Decode(point)) {
    values.push_back(absl::StrCat(one.name(), "=",
                                  one.value_case() == v1::Assignment::kCategory ? one.category()
                                  : one.value_case() == v1::Assignment::kInteger
                                      ? std::to_string(one.integer())
                                      : absl::StrCat(one.number())));
  }
  return values;
}

// What a person would write for a small network.
Space Optimizers() {
  return Make({Categorical("optimizer", {"sgd", "adam"}), Double("momentum", {0, 1}),
               Categorical("nesterov", {"no", "yes"}), Int("layers", {1, 4}), Int("width", {1, 8})},
              R"({"conditions": [
                   {"parameter": "nesterov", "when": {"momentum": {"min": 0.5}}},
                   {"parameter": "momentum", "when": {"optimizer": "sgd"}},
                   {"parameter": "width", "when": {"layers": {"min": 2, "max": 3}}}],
                  "forbidden": [{"optimizer": ["adam"], "layers": [4]}]})");
}

TEST(SpaceRulesTest, WhatDoesNotExistHasNoValueAndMakesNoDifference) {
  const Space space = Optimizers();
  const Axis& momentum = *space.Find("momentum");
  const double strong = *momentum.Encode([] {
    v1::Assignment value;
    value.set_number(0.9);
    return value;
  }());
  const Point adam = {1, strong, 1, 0.1, 0.9};
  EXPECT_THAT(ValuesAt(space, adam), ElementsAre("optimizer=adam", "layers=1"));
  EXPECT_EQ(space.Key(adam), space.Key({1, 0.3, 0, 0.1, 0.2}));
  EXPECT_EQ(space.Canonical(adam), space.Canonical({1, 0.3, 0, 0.1, 0.2}));
  EXPECT_NE(space.Key(adam), space.Key({1, 0.3, 0, 0.3, 0.2}));
  EXPECT_THAT(ValuesAt(space, {0, strong, 1, 0.3, 0.9}),
              ElementsAre("optimizer=sgd", "momentum=0.9", "nesterov=yes", "layers=2", "width=8"));
  // A parent that does not exist has no value: nesterov goes with momentum.
  EXPECT_THAT(ValuesAt(space, {0, 0.1, 1, 0.3, 0.9}),
              ElementsAre("optimizer=sgd", "momentum=0.1", "layers=2", "width=8"));
  EXPECT_THAT(space.Active(space.Canonical(adam)), ElementsAre(true, false, false, true, false));
}

TEST(SpaceRulesTest, SaysWhichCombinationIsForbidden) {
  const Space space = Optimizers();
  EXPECT_TRUE(space.Allows(space.Canonical({0, 0.5, 0, 0.9, 0.5})));
  EXPECT_TRUE(space.Allows(space.Canonical({1, 0.5, 0, 0.1, 0.5})));
  EXPECT_EQ(
      space.Forbids(space.Canonical({1, 0.5, 0, 0.9, 0.5})),
      "it is forbidden that layers is 4 and optimizer is adam (spec.shirabe.space.forbidden)");
}

TEST(SpaceRulesTest, SumsStayWithinTheirBoundsWhereAllOfThemExist) {
  const Space space =
      Make({Int("warmup", {0, 9}), Int("epochs", {1, 6}), Double("rest", {0, 0.3, 0.1}),
            Categorical("schedule", {"flat", "cosine"})},
           R"({"conditions": [{"parameter": "warmup", "when": {"schedule": {"in": ["cosine"]}}}],
               "linear": [{"sum": {"warmup": 1, "epochs": "-1"}, "max": 0},
                          {"sum": {"rest": 2, "epochs": 0.1}, "min": 0.3, "max": 0.6}]})");
  uint64_t allowed = 0;
  for (int warmup = 0; warmup <= 9; ++warmup) {
    for (int epochs = 1; epochs <= 6; ++epochs) {
      for (int rest = 0; rest <= 3; ++rest) {
        for (const bool cosine : {false, true}) {
          if (!cosine && warmup > 0) continue;
          const bool good =
              (!cosine || warmup <= epochs) && 2 * rest + epochs >= 3 && 2 * rest + epochs <= 6;
          const Point point = space.Canonical({space.axis(0).Coordinate(warmup),
                                               space.axis(1).Coordinate(epochs - 1),
                                               space.axis(2).Coordinate(rest), cosine ? 1.0 : 0.0});
          EXPECT_EQ(space.Allows(point), good) << warmup << " " << epochs << " " << rest << cosine;
          EXPECT_EQ(space.Forbids(point).empty(), good);
          allowed += good ? 1 : 0;
        }
      }
    }
  }
  EXPECT_EQ(space.cardinality().count, allowed);
  std::set<uint64_t> numbered;
  for (uint64_t k = 0; k < allowed; ++k) {
    EXPECT_TRUE(space.Allows(space.At(k)));
    EXPECT_EQ(space.IndexOf(space.At(k)), k);
    numbered.insert(space.Key(space.At(k)));
  }
  EXPECT_EQ(numbered.size(), allowed);
  EXPECT_EQ(space.Forbids(space.Canonical({1, 0, 0.5, 1})),
            "it must be that -epochs + warmup ≤ 0, and the sum is 8 (spec.shirabe.space.linear)");
}

// 0.1 + 0.2 is more than 0.3 in binary.
TEST(SpaceRulesTest, RoundingBreaksNoBound) {
  const Space space = Make({Double("a", {0, 1, 0.1}), Double("b", {0, 1, 0.1})},
                           R"({"linear": [{"sum": {"a": 1, "b": 1}, "min": 0.3, "max": 0.3}]})");
  EXPECT_EQ(space.cardinality().count, 4u);
}

TEST(SpaceRulesTest, WhatIsDecodedIsEncodedAgain) {
  const Space space = Optimizers();
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const Point point = space.Sample(rng);
    EXPECT_EQ(point, space.Canonical(point));
    const auto again = space.Encode(space.Decode(point));
    if (space.Allows(point)) {
      ASSERT_TRUE(again.ok()) << again.status();
      EXPECT_EQ(*again, point);
    } else {
      EXPECT_THAT(again.status().message(), HasSubstr("it is forbidden that layers is 4 and"));
    }
  }
}

TEST(SpaceRulesTest, EncodeWantsWhatExistsAndNothingElse) {
  const Space space = Optimizers();
  std::vector<v1::Assignment> values = space.Decode({1, 0.5, 0, 0.1, 0.5});
  v1::Assignment extra;
  extra.set_name("momentum");
  extra.set_number(0.5);
  values.push_back(extra);
  EXPECT_THAT(space.Encode(values).status().message(),
              HasSubstr("\"momentum\" exists only where optimizer is sgd; leave it out"));
  values = space.Decode({0, 0.5, 0, 0.1, 0.5});
  std::erase_if(values, [](const v1::Assignment& value) { return value.name() == "momentum"; });
  EXPECT_THAT(space.Encode(values).status().message(), HasSubstr("\"momentum\" is missing"));
}

// Any rules over a few small parameters, as JSON.
std::string RandomRules(Rng& rng, int axes) {
  const auto test = [&](int axis) {
    const uint64_t kind = rng.Below(3);
    const std::string value = axis % 2 == 0 ? absl::StrCat(1 + rng.Below(3)) : "\"b\"";
    if (axis % 2 == 0 && kind == 0) return absl::StrCat("\"p", axis, "\": {\"min\": ", value, "}");
    return absl::StrCat("\"p", axis, "\": [", value, kind == 1 && axis % 2 ? ", \"c\"" : "", "]");
  };
  std::string conditions, forbidden;
  for (int child = 1; child < axes; ++child) {
    if (rng.Below(2) == 0) continue;
    const int parent = static_cast<int>(rng.Below(child));
    absl::StrAppend(&conditions, conditions.empty() ? "" : ", ", "{\"parameter\": \"p", child,
                    "\", \"when\": {", test(parent), "}}");
  }
  for (uint64_t i = rng.Below(3); i > 0; --i) {
    const int a = static_cast<int>(rng.Below(axes - 1));
    absl::StrAppend(&forbidden, forbidden.empty() ? "" : ", ", "{", test(a), ", ", test(a + 1),
                    "}");
  }
  const std::string linear =
      rng.Below(2) == 0 || axes < 3
          ? ""
          : absl::StrCat(R"({"sum": {"p0": 1, "p2": -1}, "max": )", rng.Below(2), "}");
  return absl::StrCat("{\"conditions\": [", conditions, "], \"forbidden\": [", forbidden,
                      "], \"linear\": [", linear, "]}");
}

// SHIRABE_SPACES=n tries more of them.
TEST(SpaceRulesTest, CountsAndNumbersWhatIsLeftOfAProduct) {
  const char* wanted = std::getenv("SHIRABE_SPACES");
  Rng rng(5);
  for (int i = 0; i < (wanted != nullptr ? std::atoi(wanted) : 300); ++i) {
    const int axes = 2 + static_cast<int>(rng.Below(4));
    std::vector<v1::ParameterSpec> parameters;
    for (int j = 0; j < axes; ++j) {
      const std::string name = absl::StrCat("p", j);
      parameters.push_back(j % 2 == 0 ? Int(name, {1, 3}) : Categorical(name, {"a", "b", "c"}));
    }
    const std::string rules = RandomRules(rng, axes);
    SCOPED_TRACE(rules);
    const Space all = Make(parameters), space = Make(parameters, rules);
    std::map<uint64_t, Point> left;
    for (uint64_t k = 0; k < all.cardinality().count; ++k) {
      const Point point = space.Canonical(all.At(k));
      if (space.Allows(point)) left.emplace(space.Key(point), point);
    }
    ASSERT_TRUE(space.cardinality().finite);
    ASSERT_EQ(space.cardinality().count, left.size());
    std::set<uint64_t> numbered;
    for (uint64_t k = 0; k < left.size(); ++k) {
      const Point point = space.At(k);
      ASSERT_TRUE(left.contains(space.Key(point)));
      EXPECT_EQ(left[space.Key(point)], point);
      EXPECT_EQ(space.IndexOf(point), k);
      numbered.insert(space.Key(point));
    }
    ASSERT_EQ(numbered.size(), left.size());
  }
}

TEST(SpaceRulesTest, AContinuousParameterThatNeverExistsIsNotCounted) {
  const std::vector<v1::ParameterSpec> parameters = {Categorical("a", {"x", "y"}),
                                                     Double("lr", {0, 1}), Int("n", {1, 3})};
  const char* never = R"({"conditions": [{"parameter": "lr", "when": {"a": "x"}}],
                          "forbidden": [{"a": "x"}]})";
  EXPECT_EQ(Make(parameters, never).cardinality().count, 3u);
  const char* sometimes = R"({"conditions": [{"parameter": "lr", "when": {"a": "x"}}]})";
  EXPECT_FALSE(Make(parameters, sometimes).cardinality().finite);
}

struct WrongRule {
  const char* rules;
  const char* field;
  const char* words;
};

void ExpectWrong(const std::vector<WrongRule>& cases) {
  const std::vector<v1::ParameterSpec> parameters = {Categorical("optimizer", {"sgd", "adam"}),
                                                     Int("layers", {1, 4}), Double("lr", {0, 1})};
  for (const auto& [rules, field, words] : cases) {
    SCOPED_TRACE(rules);
    // Without lr the last case could not be counted.
    const bool counted = std::string(words) == "nothing is left to try";
    const Space space = counted ? Make({parameters[0], parameters[1]}) : Make(parameters);
    const auto made = space.WithRules(RulesOf(rules));
    ASSERT_TRUE(absl::IsInvalidArgument(made.status()));
    EXPECT_THAT(std::string(made.status().message()), StartsWith(field));
    EXPECT_THAT(made.status().message(), HasSubstr(words));
  }
}

TEST(SpaceRulesTest, SaysWhatIsWrongWhere) {
  ExpectWrong({
      {R"({"conditions": [{"parameter": "optimiser", "when": {"layers": 2}}]})",
       "spec.shirabe.space.conditions[0].parameter: ", "did you mean \"optimizer\"?"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layer": 2}}]})",
       "spec.shirabe.space.conditions[0].when: ", "\"layer\" is not a parameter; did you mean"},
      {R"({"conditions": [{"parameter": "lr"}]})",
       "spec.shirabe.space.conditions[0].when: ", "is empty"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": 2}},
                          {"parameter": "lr", "when": {"layers": 3}}]})",
       "spec.shirabe.space.conditions[1].parameter: ", "has a condition already"},
      {R"({"conditions": [{"parameter": "lr", "when": {"optimizer": ["rmsprop"]}}]})",
       "spec.shirabe.space.conditions[0].when.optimizer: ",
       "\"rmsprop\" is not in its list: sgd, adam"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": [2, 9]}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "9 is not one of its values"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": "two"}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "\"two\" is text; give a number"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": []}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "the list is empty"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": true}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "must be numbers or texts"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": {"min": 5}}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ",
       "no value of it is there: it goes from 1 to 4"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": {"min": 1.2, "max": 1.8}}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "no value of it is there"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": {"least": 2}}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "a range has min or max"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": {"min": "two"}}}]})",
       "spec.shirabe.space.conditions[0].when.layers: ", "min must be a number"},
      {R"({"conditions": [{"parameter": "lr", "when": {"optimizer": {"min": 1}}}]})",
       "spec.shirabe.space.conditions[0].when.optimizer: ", "has no range: list its values"},
      {R"({"conditions": [{"parameter": "layers", "when": {"lr": [0.5]}}]})",
       "spec.shirabe.space.conditions[0].when.lr: ", "give {min: …, max: …}"},
      {R"({"conditions": [{"parameter": "lr", "when": {"layers": 2}},
                          {"parameter": "layers", "when": {"optimizer": "sgd"}},
                          {"parameter": "optimizer", "when": {"lr": {"min": 0.5}}}]})",
       "spec.shirabe.space.conditions: ", "\"lr\" depends on itself"},
      {R"({"forbidden": [{"optimizer": ["sgd"]}, {"optimizer": ["adam"]}]})",
       "spec.shirabe.space: ", "nothing is left to try"},
  });
}

TEST(SpaceRulesTest, SaysWhatIsWrongWithASum) {
  ExpectWrong({
      {R"({"linear": [{"max": 1}]})", "spec.shirabe.space.linear[0].sum: ", "is empty"},
      {R"({"linear": [{"sum": {"layer": 1}, "max": 1}]})",
       "spec.shirabe.space.linear[0].sum: ", "did you mean \"layers\"?"},
      {R"({"linear": [{"sum": {"optimizer": 1}, "max": 1}]})",
       "spec.shirabe.space.linear[0].sum.optimizer: ", "has no numbers to add"},
      {R"({"linear": [{"sum": {"layers": 0}, "max": 1}]})",
       "spec.shirabe.space.linear[0].sum.layers: ", "must be a number to multiply it by"},
      {R"({"linear": [{"sum": {"layers": [1]}, "max": 1}]})",
       "spec.shirabe.space.linear[0].sum.layers: ", "must be a number to multiply it by"},
      {R"({"linear": [{"sum": {"layers": 1e308, "lr": 1e308}, "max": 1}]})",
       "spec.shirabe.space.linear[0].sum: ", "too large"},
      {R"({"linear": [{"sum": {"layers": 1}}]})",
       "spec.shirabe.space.linear[0]: ", "give min or max"},
      {R"({"linear": [{"sum": {"layers": -2, "lr": 1}, "min": 0}]})",
       "spec.shirabe.space.linear[0]: ", "the sum goes from -8 to -1"},
      {R"({"linear": [{"sum": {"layers": 1}, "min": 3, "max": 2}]})",
       "spec.shirabe.space.linear[0]: ", "never within its bounds"},
      {R"({"linear": [{"sum": {"lr": 1}, "min": 0.5, "max": 0.5}]})",
       "spec.shirabe.space: ", "fewer than one in a thousand"},
  });
}

// As many rules as a specification may have, over parameters with as many values.
TEST(SpaceRulesTest, HostileRulesAreReadSoonAndNotCounted) {
  std::vector<v1::ParameterSpec> parameters;
  v1::SpaceRules rules;
  for (int i = 0; i < 1000; ++i) {
    parameters.push_back(Int(absl::StrCat("p", i), {1, 10'000}));
    if (i == 0) continue;
    v1::ParameterCondition& condition = *rules.add_conditions();
    condition.set_parameter(absl::StrCat("p", i));
    for (int j = std::max(0, i - 20); j < i; ++j) {
      google::protobuf::Value& value =
          (*condition.mutable_when()->mutable_fields())[absl::StrCat("p", j)];
      (*value.mutable_struct_value()->mutable_fields())["max"].set_number_value(9000);
    }
  }
  const auto space = Make(parameters).WithRules(rules);
  ASSERT_TRUE(space.ok()) << space.status();
  EXPECT_FALSE(space->cardinality().finite);
  Rng rng(1);
  const Point point = space->Sample(rng);
  EXPECT_EQ(space->Encode(space->Decode(point)).value(), point);
}

}  // namespace
}  // namespace shirabe::suggestion
