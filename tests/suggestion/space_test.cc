#include "suggestion/space/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/text/number.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

constexpr v1::Distribution kDistributions[] = {v1::UNIFORM, v1::LOG_UNIFORM, v1::NORMAL,
                                               v1::LOG_NORMAL};

double Number(const Axis& axis, double x) {
  const v1::Assignment value = axis.Decode(x);
  return value.value_case() == v1::Assignment::kInteger ? static_cast<double>(value.integer())
                                                        : value.number();
}

StatusOr<double> Encode(const Axis& axis, double number) {
  v1::Assignment value;
  value.set_number(number);
  return axis.Encode(value);
}

// Decode∘Encode is the identity on what people and Decode itself write.
void ExpectRoundTrip(const Axis& axis, double number) {
  const auto x = Encode(axis, number);
  ASSERT_TRUE(x.ok()) << x.status();
  EXPECT_EQ(Number(axis, *x), number) << FormatNumber(number) << " at " << FormatNumber(*x);
  EXPECT_EQ(axis.Canonical(*x), *x);
}

std::vector<double> Values(const Axis& axis) {
  std::vector<double> values;
  for (uint64_t k = 0; k < axis.levels(); ++k) values.push_back(Number(axis, axis.Coordinate(k)));
  return values;
}

TEST(Space, BothEndsOfEveryKindAreExact) {
  for (v1::Distribution distribution : kDistributions) {
    for (const auto& [min, max] : std::vector<std::pair<double, double>>{
             {1e-5, 1e-1}, {1, 1024}, {0.1, 0.7}, {3, 1000003}, {1e-300, 1e300}}) {
      const Space space = Make({Double("x", {min, max}, distribution)});
      EXPECT_EQ(Number(space.axis(0), 0), min);
      EXPECT_EQ(Number(space.axis(0), 1), max);
      EXPECT_EQ(*Encode(space.axis(0), min), 0);
      EXPECT_EQ(*Encode(space.axis(0), max), 1);
    }
    const Space ints = Make({Int("n", {2, 130}, distribution)});
    EXPECT_EQ(Number(ints.axis(0), 0), 2);
    EXPECT_EQ(Number(ints.axis(0), 1), 130);
  }
}

TEST(Space, WhatPeopleTypeComesBackToTheBit) {
  for (v1::Distribution distribution : kDistributions) {
    const Space space = Make({Double("x", {1e-7, 10}, distribution)});
    for (double v : {1e-7, 1e-6, 3e-4, 1e-3, 0.01, 0.0125, 0.1, 0.3, 0.7, 1.1, 3.1416, 9.99, 10.}) {
      ExpectRoundTrip(space.axis(0), v);
    }
  }
  const Space around_zero = Make({Double("x", {-1, 1})});
  for (double v : {-1.0, -0.3, -1e-9, 0.0, 1e-10, 0.1, 0.123456789, 1.0}) {
    ExpectRoundTrip(around_zero.axis(0), v);
  }
}

// As a person would choose them: a range of round numbers, and a value of a few digits within.
TEST(Space, ShortDecimalsComeBackFromRandomRanges) {
  Rng rng(6);
  const auto decimal = [&](int digits, int exponent) {
    return *ParseNumber(std::to_string(1 + rng.Below(static_cast<uint64_t>(std::pow(10, digits)))) +
                        "e" + std::to_string(exponent));
  };
  for (int i = 0; i < 20000; ++i) {
    const int exponent = static_cast<int>(rng.Below(12)) - 10;
    const double min = decimal(2, exponent), max = min + decimal(2, exponent + 4);
    const v1::Distribution distribution = kDistributions[rng.Below(4)];
    const Space space = Make({Double("x", {min, max}, distribution)});
    for (int j = 0; j < 5; ++j) {
      const double v = decimal(5, exponent - 1);
      if (v >= min && v <= max) ExpectRoundTrip(space.axis(0), v);
    }
  }
}

TEST(Space, EveryDoubleOfTheUnitIntervalIsItsOwnCoordinate) {
  const Space space = Make({Double("x", {0, 1})});
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    const double v = std::ldexp(rng.Uniform(), -static_cast<int>(rng.Below(1070)));
    EXPECT_EQ(*Encode(space.axis(0), v), v);
    ExpectRoundTrip(space.axis(0), v);
  }
  ExpectRoundTrip(space.axis(0), std::numeric_limits<double>::denorm_min());
}

// Random ranges of every width and place, denormal to huge: what a coordinate decodes to is
// feasible and stable.
TEST(Space, DecodedValuesAreFeasibleAndStable) {
  Rng rng(2);
  for (int i = 0; i < 4000; ++i) {
    const v1::Distribution distribution = kDistributions[rng.Below(4)];
    const bool log = distribution == v1::LOG_UNIFORM || distribution == v1::LOG_NORMAL;
    double min = std::ldexp(rng.Uniform() + 0.5, static_cast<int>(rng.Below(2000)) - 1000);
    double max = min + std::ldexp(rng.Uniform(), static_cast<int>(rng.Below(2000)) - 1000);
    if (!log && rng.Below(2) == 0) min = -max;
    if (rng.Below(4) == 0) max = std::nextafter(std::nextafter(min, 1e308), 1e308);
    const Space space = Make({Double("x", {min, max}, distribution)});
    for (int j = 0; j < 20; ++j) {
      const double x = j < 10 ? rng.Uniform() : std::ldexp(rng.Uniform(), -60);
      const double v = Number(space.axis(0), x);
      ASSERT_LE(min, v);
      ASSERT_LE(v, max);
      ExpectRoundTrip(space.axis(0), v);
      EXPECT_EQ(space.Key({x}), space.Key({space.axis(0).Canonical(x)}));
    }
  }
}

TEST(Space, EveryDoubleOfATinyRangeIsReachedAndKept) {
  for (v1::Distribution distribution : kDistributions) {
    for (double min : {1.0, 1000.0, 0.1, 1e-310, 1e15}) {
      std::vector<double> doubles = {min};
      while (doubles.size() < 40) doubles.push_back(std::nextafter(doubles.back(), 1e308));
      const Space space = Make({Double("x", {min, doubles.back()}, distribution)});
      for (double v : doubles) ExpectRoundTrip(space.axis(0), v);
    }
  }
}

TEST(Space, HugeRangesDoNotOverflow) {
  for (v1::Distribution distribution : {v1::UNIFORM, v1::NORMAL}) {
    const Space space = Make({Double("x", {-1e308, 1e308}, distribution)});
    EXPECT_EQ(Number(space.axis(0), 0), -1e308);
    EXPECT_EQ(Number(space.axis(0), 0.5), 0);
    EXPECT_EQ(Number(space.axis(0), 1), 1e308);
    for (double v : {-1e308, -3e307, 1e300, 2.5e307}) ExpectRoundTrip(space.axis(0), v);
  }
  const Space stepped = Make({Double("x", {-1e308, 1e308, 1e305})});
  EXPECT_EQ(stepped.cardinality().count, 2001u);
  ExpectRoundTrip(stepped.axis(0), -1e308);
  ExpectRoundTrip(stepped.axis(0), 9.99e307);
}

TEST(Space, LogRangesOver300Decades) {
  const Space space = Make({Double("x", {1e-150, 1e150}, v1::LOG_UNIFORM)});
  EXPECT_EQ(Number(space.axis(0), 0.5), 1);
  for (int exponent = -150; exponent <= 150; exponent += 10) {
    ExpectRoundTrip(space.axis(0), *ParseNumber("1e" + std::to_string(exponent)));
  }
  const Space wide = Make({Double("x", {1e-320, 1e308}, v1::LOG_UNIFORM)});
  EXPECT_NEAR(std::log10(Number(wide.axis(0), 0.5)), -6, 0.01);
  ExpectRoundTrip(wide.axis(0), 0.25);
}

TEST(Space, DistributionsHaveTheirQuantiles) {
  const Space space =
      Make({Double("u", {0, 12}), Double("l", {1e-6, 1}, v1::LOG_UNIFORM),
            Double("n", {0, 12}, v1::NORMAL), Double("ln", {1e-6, 1}, v1::LOG_NORMAL)});
  EXPECT_EQ(Number(space.axis(0), 0.25), 3);
  EXPECT_EQ(Number(space.axis(1), 0.5), 0.001);
  EXPECT_EQ(Number(space.axis(2), 0.5), 6);
  EXPECT_EQ(Number(space.axis(3), 0.5), 0.001);
  // Mean 6, deviation 2, cut off at 3 deviations: Φ(1) = 0.8413447460685429 becomes 0.842270…
  const double mass = 0.9973002039367398;
  const double x = (0.8413447460685429 - (1 - mass) / 2) / mass;
  EXPECT_NEAR(Number(space.axis(2), x), 8, 1e-12);
  EXPECT_NEAR(Number(space.axis(2), 1 - x), 4, 1e-12);
  EXPECT_NEAR(std::log10(Number(space.axis(3), x)), -2, 1e-12);
}

TEST(Space, StepsAreDecimalAndDoNotDrift) {
  const Space space = Make({Double("x", {0.1, 1, 0.1})});
  const std::vector<double> tenths = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};
  EXPECT_EQ(Values(space.axis(0)), tenths);
  for (double v : tenths) ExpectRoundTrip(space.axis(0), v);

  const Space many = Make({Double("x", {0, 1000, 0.001})});
  EXPECT_EQ(many.cardinality().count, 1000001u);
  for (int k = 0; k <= 1000000; k += 37) {
    const double exact = *ParseNumber(std::to_string(k) + "e-3");
    EXPECT_EQ(Number(many.axis(0), many.axis(0).Coordinate(k)), exact);
    ExpectRoundTrip(many.axis(0), exact);
  }
}

TEST(Space, AStepThatDoesNotDivideTheRangeEndsBelowMax) {
  const Space space = Make({Double("x", {0, 1, 0.3}), Int("n", {1, 10, 4})});
  EXPECT_EQ(Values(space.axis(0)), (std::vector<double>{0, 0.3, 0.6, 0.9}));
  EXPECT_EQ(Number(space.axis(0), 1), 0.9);
  EXPECT_FALSE(Encode(space.axis(0), 1).ok());
  EXPECT_EQ(Values(space.axis(1)), (std::vector<double>{1, 5, 9}));
}

TEST(Space, StepsAddedUpInDoublesAreUnderstood) {
  const Space space = Make({Double("x", {0.1, 1, 0.1})});
  EXPECT_EQ(Number(space.axis(0), *Encode(space.axis(0), 0.1 + 0.2)), 0.3);
  EXPECT_THAT(Encode(space.axis(0), 0.3000001).status().ToString(), HasSubstr("near it is 0.3"));
}

// Every lattice: coordinates ascend, are middles of their shares, and come back.
TEST(Space, LevelsAndCoordinatesAreInverse) {
  for (v1::Distribution distribution : kDistributions) {
    const Space space =
        Make({Int("a", {1, 3000}, distribution), Int("b", {5, 6}, distribution),
              Int("c", {1, 1000000, 7}, distribution), Double("d", {0.001, 1, 0.001}, distribution),
              Double("e", {1e-30, 4, 1}, distribution)});
    for (int i = 0; i < space.size(); ++i) {
      const Axis& axis = space.axis(i);
      double before = 0;
      for (uint64_t k = 0; k < axis.levels(); k += 1 + axis.levels() / 5000) {
        const double x = axis.Coordinate(k);
        EXPECT_LT(before, x);
        EXPECT_EQ(axis.Level(x), k);
        ExpectRoundTrip(axis, Number(axis, x));
        before = x;
      }
      EXPECT_LT(before, 1);
      EXPECT_EQ(axis.Level(0), 0u);
      EXPECT_EQ(axis.Level(1), axis.levels() - 1);
    }
  }
}

// The width of level k's share, found by bisection on Level alone.
double Share(const Axis& axis, uint64_t k) {
  const auto edge = [&](uint64_t level) {  // least x in the share of `level`
    double low = 0, high = 1;
    while (level > 0 && std::nextafter(low, 1) < high) {
      const double middle = (low + high) / 2;
      if (middle == low || middle == high) break;
      (axis.Level(middle) < level ? low : high) = middle;
    }
    return level == 0 ? 0 : high;
  };
  return (k + 1 == axis.levels() ? 1 : edge(k + 1)) - edge(k);
}

TEST(Space, SharesAreInProportionToMass) {
  const Space space =
      Make({Int("u", {0, 4}), Int("l", {1, 64}, v1::LOG_UNIFORM), Int("n", {0, 6}, v1::NORMAL)});
  for (int k = 0; k < 5; ++k) EXPECT_NEAR(Share(space.axis(0), k), 0.2, 1e-12);
  for (int k = 0; k < 64; ++k) {
    const double mass = std::log((k + 1.5) / (k + 0.5)) / std::log(64.5 / 0.5);
    EXPECT_NEAR(Share(space.axis(1), k), mass, 1e-12);
  }
  const auto phi = [](double z) { return std::erfc(-z / std::sqrt(2)) / 2; };
  for (int k = 0; k < 7; ++k) {  // mean 3, deviation 1, cut off at -0.5 and 6.5
    const double mass = (phi(k - 2.5) - phi(k - 3.5)) / (phi(3.5) - phi(-3.5));
    EXPECT_NEAR(Share(space.axis(2), k), mass, 1e-12);
  }
}

TEST(Space, SpansUpTo2To53AreExact) {
  const double most = 0x1p53;
  for (const auto& [min, max] :
       std::vector<std::pair<double, double>>{{0, most}, {-0x1p52, 0x1p52}, {1, most - 3}}) {
    const Space space = Make({Int("n", {min, max})});
    const Axis& axis = space.axis(0);
    EXPECT_EQ(axis.levels(), static_cast<uint64_t>(max - min) + 1);
    EXPECT_EQ(Number(axis, 1), max);
    Rng rng(3);
    const uint64_t last = axis.levels() - 1;
    std::vector<uint64_t> levels = {0, 1, 2, last / 2, last / 2 + 1, last - 1, last};
    for (int i = 0; i < 2000; ++i) levels.push_back(rng.Below(axis.levels()));
    for (uint64_t k : levels) {
      EXPECT_EQ(axis.Level(axis.Coordinate(k)), k);
      ExpectRoundTrip(axis, min + static_cast<double>(k));
    }
  }
  const Space log = Make({Int("n", {1, 1e12}, v1::LOG_UNIFORM)});
  for (double v : {1.0, 2.0, 999999.0, 123456789012.0, 999999999999.0, 1e12}) {
    ExpectRoundTrip(log.axis(0), v);
  }
}

TEST(Space, OneValueIsOneLevel) {
  const Space space = Make({Double("d", {0.1, 0.1}), Int("i", {7, 7}), Discrete("n", {3}),
                            Categorical("c", {"only"}), Double("l", {1e-9, 1e-9}, v1::LOG_NORMAL)});
  EXPECT_TRUE(space.cardinality().finite);
  EXPECT_EQ(space.cardinality().count, 1u);
  Rng rng(4);
  EXPECT_EQ(space.Sample(rng), space.At(0));
  EXPECT_EQ(Number(space.axis(0), 0.9), 0.1);
  EXPECT_EQ(Number(space.axis(1), 0.2), 7);
}

TEST(Space, ListsAreSortedAndCountedOnce) {
  const Space space =
      Make({Discrete("n", {32, 8, 8, -1, 0.5, -0.0, 0}), Categorical("c", {"sgd", "adam", "sgd"})});
  EXPECT_EQ(Values(space.axis(0)), (std::vector<double>{-1, 0, 0.5, 8, 32}));
  EXPECT_EQ(space.cardinality().count, 10u);
  EXPECT_TRUE(space.axis(1).categorical());
  EXPECT_EQ(space.axis(1).Decode(0).category(), "sgd");
  EXPECT_EQ(space.axis(1).Decode(1).category(), "adam");
}

// A batch size of 32.0 breaks programs that a 32 does not; a learning rate is 1.0 also where that
// is its only value.
TEST(Space, ListsOfWholeNumbersGiveIntegersAndDoublesNever) {
  const auto kind = [](const v1::ParameterSpec& parameter) {
    return Make({parameter}).axis(0).Decode(0).value_case();
  };
  EXPECT_EQ(kind(Discrete("n", {16, 32})), v1::Assignment::kInteger);
  EXPECT_EQ(kind(Discrete("n", {16, 0.5})), v1::Assignment::kNumber);
  EXPECT_EQ(kind(Discrete("n", {1e300, 2})), v1::Assignment::kNumber);
  EXPECT_EQ(kind(Double("x", {1, 1})), v1::Assignment::kNumber);
  EXPECT_EQ(kind(Double("x", {1, 2, 1})), v1::Assignment::kNumber);
  EXPECT_EQ(kind(Int("i", {1, 1})), v1::Assignment::kInteger);
}

TEST(Space, CardinalityIsExactUntilItDoesNotFit) {
  const auto count = [](std::vector<v1::ParameterSpec> parameters) {
    return Make(std::move(parameters)).cardinality();
  };
  const auto mixed =
      count({Int("a", {1, 3}), Double("b", {0, 1, 0.25}), Categorical("c", {"x", "y"})});
  EXPECT_EQ(mixed.count, 30u);
  EXPECT_FALSE(count({Int("a", {1, 3}), Double("b", {0, 1})}).finite);
  const auto word = Int("a", {1, 0x1p32});
  const auto almost = Int("b", {1, 0x1p32 - 1});
  EXPECT_EQ(count({word, almost}).count, (uint64_t{1} << 32) * ((uint64_t{1} << 32) - 1));
  EXPECT_FALSE(count({word, Int("b", {1, 0x1p32})}).finite);
}

TEST(Space, IndexAndPointAreInverseAndTheLastParameterVariesFastest) {
  const Space space = Make(
      {Int("a", {1, 3}, v1::LOG_UNIFORM), Double("b", {0, 1, 0.25}), Categorical("c", {"x", "y"})});
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < space.cardinality().count; ++i) {
    const Point point = space.At(i);
    EXPECT_EQ(space.IndexOf(point), i);
    EXPECT_EQ(space.Canonical(point), point);
    keys.insert(space.Key(point));
  }
  EXPECT_EQ(keys.size(), 30u);
  EXPECT_EQ(space.Decode(space.At(1))[2].category(), "y");
  EXPECT_EQ(space.Decode(space.At(2))[1].number(), 0.25);
}

TEST(Space, SamplesFollowTheDistribution) {
  const Space space = Make(
      {Int("l", {1, 64}, v1::LOG_UNIFORM), Categorical("c", {"x", "y", "z"}), Double("d", {0, 1})});
  Rng rng(5);
  int small = 0, third = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const Point point = space.Sample(rng);
    EXPECT_EQ(space.Canonical(point), point);
    const auto values = space.Decode(point);
    small += values[0].integer() <= 5 ? 1 : 0;
    third += values[1].category() == "z" ? 1 : 0;
  }
  EXPECT_NEAR(small / double{n}, std::log(5.5 / 0.5) / std::log(64.5 / 0.5), 0.01);
  EXPECT_NEAR(third / double{n}, 1 / 3.0, 0.01);
}

TEST(Space, WholeAssignmentsGoBothWays) {
  const Space space = Make({Double("lr", {1e-5, 0.1}, v1::LOG_UNIFORM), Int("bs", {16, 64, 16}),
                            Categorical("opt", {"sgd", "adam"})});
  std::vector<v1::Assignment> values = space.Decode({0.5, 0.4, 1});
  std::swap(values[0], values[2]);  // in any order
  const auto point = space.Encode(values);
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(*point, space.Canonical({0.5, 0.4, 1}));
}

TEST(Space, AParameterCanBeGivenOtherValuesOrBeLeftOut) {
  const Space space = Make({Int("epochs", {20, 20}), Categorical("c", {"x", "y"})});
  const Space rungs = space.WithValues(0, {1, 3, 9});
  EXPECT_EQ(rungs.cardinality().count, 6u);
  EXPECT_EQ(rungs.Decode({1, 0})[0].integer(), 9);
  EXPECT_EQ(rungs.Decode({0, 1})[0].integer(), 1);
  EXPECT_EQ(rungs.axis(0).name(), "epochs");
  const Space rest = rungs.Without(0);
  EXPECT_EQ(rest.size(), 1);
  EXPECT_EQ(rest.axis(0).name(), "c");
  EXPECT_EQ(rest.cardinality().count, 2u);
  EXPECT_EQ(rest.Without(0).cardinality().count, 1u);
  EXPECT_EQ(space.Decode({0, 0})[0].integer(), 20) << "the original stays";
  EXPECT_FALSE(Make({Double("d", {2, 3}), Int("i", {1, 9})}).Without(1).cardinality().finite);
}

TEST(Space, CoordinatesOutsideTheCubeAreClamped) {
  const Space space = Make({Double("d", {2, 3}), Int("i", {1, 9}), Categorical("c", {"x", "y"})});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double x : {-1.0, nan, -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(space.Canonical({x, x, x}), space.Canonical({0, 0, 0}));
  }
  EXPECT_EQ(space.Canonical({7, 7, 7}), space.Canonical({1, 1, 1}));
}

}  // namespace
}  // namespace shirabe::suggestion
