#include "base/rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace shirabe {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> Draw(Rng rng, int count) {
  std::vector<uint64_t> words;
  for (int i = 0; i < count; ++i) words.push_back(rng.Next());
  return words;
}

// As the reference implementations of both generators give them (also printed by other libraries,
// for example the seed 0 of Rust's rand_xoshiro).
TEST(Rng, KnownVectors) {
  EXPECT_THAT(Draw(Rng(0), 6),
              ElementsAre(5987356902031041503u, 7051070477665621255u, 6633766593972829180u,
                          211316841551650330u, 9136120204379184874u, 379361710973160858u));
  EXPECT_THAT(Draw(Rng(42), 3),
              ElementsAre(15021278609987233951u, 5881210131331364753u, 18149643915985481100u));
}

// They seed experiments that are already stored: they may never change.
TEST(Rng, MixAndFingerprintAreForEver) {
  EXPECT_EQ(Mix(0, 0), 12035550249420947055u);
  EXPECT_EQ(Mix(1, 2), 13608149317741381227u);
  EXPECT_EQ(Mix(2, 1), 16171810823986729605u);
  EXPECT_EQ(Fingerprint(""), 2448385507222971125u);
  EXPECT_EQ(Fingerprint("default/digits"), 16696022978851851301u);
}

TEST(Rng, ForksDependOnSeedAndIndexAlone) {
  const Rng fresh(42);
  Rng used(42);
  for (int i = 0; i < 100; ++i) used.Next();
  EXPECT_EQ(Draw(fresh.Fork(7), 5), Draw(used.Fork(7), 5));
  EXPECT_THAT(Draw(fresh.Fork(7), 2), ElementsAre(17521142179037300447u, 7381738658832221947u));
  std::set<uint64_t> first;
  for (uint64_t i = 0; i < 10000; ++i) first.insert(fresh.Fork(i).Next());
  EXPECT_EQ(first.size(), 10000u);
}

// Neighbouring streams are as unrelated as the words of one.
TEST(Rng, ForksAreIndependent) {
  double sum = 0;
  constexpr int kPairs = 100000;
  for (uint64_t i = 0; i < kPairs; ++i) {
    sum += (Rng(1).Fork(i).Uniform() - 0.5) * (Rng(1).Fork(i + 1).Uniform() - 0.5);
  }
  // Products of two uniforms have variance 1/144; five standard errors.
  EXPECT_LT(std::abs(sum / kPairs), 5.0 / 12 / std::sqrt(kPairs));
}

TEST(Rng, UniformIsInTheHalfOpenInterval) {
  Rng rng(3);
  double least = 1, greatest = 0, sum = 0;
  constexpr int kDraws = 1000000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Uniform();
    least = std::min(least, x);
    greatest = std::max(greatest, x);
    sum += x;
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(greatest, 1);
  EXPECT_NEAR(sum / kDraws, 0.5, 5 / std::sqrt(12.0 * kDraws));
}

// Without rejection the lower third of such a bound would get half of all draws.
TEST(Rng, BelowHasNoBiasWhereItWouldShowMost) {
  const uint64_t bound = uint64_t{3} << 62;
  Rng rng(5);
  constexpr int kDraws = 200000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t x = rng.Below(bound);
    ASSERT_LT(x, bound);
    low += x < bound / 3 ? 1 : 0;
  }
  EXPECT_NEAR(low, kDraws / 3.0, 5 * std::sqrt(kDraws * 2.0 / 9));
}

TEST(Rng, BelowSpreadsEvenly) {
  Rng rng(6);
  constexpr int kCells = 7, kDraws = 700000;
  int cells[kCells] = {};
  for (int i = 0; i < kDraws; ++i) ++cells[rng.Below(kCells)];
  double chi2 = 0;
  const double expected = kDraws / static_cast<double>(kCells);
  for (const int n : cells) chi2 += (n - expected) * (n - expected) / expected;
  EXPECT_LT(chi2, 27.9);  // 0.9999 quantile, 6 degrees of freedom
  EXPECT_EQ(rng.Below(1), 0u);
  EXPECT_DEATH(rng.Below(0), "CHECK failed: bound > 0");
}

TEST(Rng, NormalHasTheMomentsAndTailsOfANormal) {
  Rng rng(7);
  constexpr int kDraws = 1000000;
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  int beyond3 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    ASSERT_TRUE(std::isfinite(x));
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    beyond3 += std::abs(x) > 3 ? 1 : 0;
  }
  const double error = 5 / std::sqrt(kDraws);
  EXPECT_NEAR(m1 / kDraws, 0, error);
  EXPECT_NEAR(m2 / kDraws, 1, error * std::sqrt(2));
  EXPECT_NEAR(m3 / kDraws, 0, error * std::sqrt(15));
  EXPECT_NEAR(m4 / kDraws, 3, error * std::sqrt(96));
  EXPECT_NEAR(beyond3, kDraws * 0.0026998, 5 * std::sqrt(kDraws * 0.0027));
}

TEST(Rng, RandomBytesDiffer) {
  EXPECT_EQ(RandomBytes(16).size(), 16u);
  EXPECT_NE(RandomBytes(16), RandomBytes(16));
  EXPECT_EQ(RandomBytes(0), "");
}

}  // namespace
}  // namespace shirabe
