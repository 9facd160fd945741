// What a Gaussian process goes on from where nobody kept a memo: the same, whatever is remembered.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/gp/fit_chain.h"
#include "tests/suggestion/gp_data.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::VectorXd;

constexpr int64_t kRoom = 1 << 20;

struct Data {
  explicit Data(const Shape& shape, uint64_t seed = 70)
      : inputs(RandomInputs(shape, seed)), scores(ValuesAt(inputs)) {}
  Data First(int n) const { return Data{inputs.Rows(0, n), scores.head(n)}; }
  Data(Inputs given, VectorXd values) : inputs(std::move(given)), scores(std::move(values)) {}

  Inputs inputs;
  VectorXd scores;
};

std::string After(FitChain& chain, const Data& data) {
  return chain.After(data.inputs, data.scores).Serialize();
}

// By one that knows nothing.
std::string Fresh(const Data& data) {
  FitChain chain(kRoom);
  return After(chain, data);
}

TEST(GpFitChain, WhatWasAskedBeforeChangesNothing) {
  constexpr int kLast = 45;
  const Data all({kLast, 3, 1});
  std::vector<std::string> fresh(kLast + 1);
  for (int n = 2; n <= kLast; ++n) fresh[n] = Fresh(all.First(n));
  FitChain growing(kRoom), falling(kRoom), jumping(kRoom), tiny(1500);
  for (int n = 2; n <= kLast; ++n) {
    SCOPED_TRACE(n);
    ASSERT_EQ(After(growing, all.First(n)), fresh[n]);
    ASSERT_EQ(After(tiny, all.First(n)), fresh[n]);
    EXPECT_LE(tiny.bytes(), 1500);
    const int fewer = kLast + 2 - n, elsewhere = 2 + n * 17 % (kLast - 1);
    ASSERT_EQ(After(falling, all.First(fewer)), fresh[fewer]);
    ASSERT_EQ(After(jumping, all.First(elsewhere)), fresh[elsewhere]);
  }
  EXPECT_GT(tiny.bytes(), 0);
}

TEST(GpFitChain, AHistoryThatGrowsCostsOneFitNowAndThen) {
  const Data all({100, 3, 0});
  FitChain chain(kRoom);
  int64_t before = 0;
  for (int n = 2; n <= 60; ++n) {
    After(chain, all.First(n));
    EXPECT_EQ(chain.fits() - before, 1) << n;
    before = chain.fits();
  }
  for (int n = 61; n <= 100; ++n) After(chain, all.First(n));
  // The even ones from 62 to 100; and 81 and 91, from which others start.
  EXPECT_EQ(chain.fits() - before, 22);
  After(chain, all);
  EXPECT_EQ(chain.fits() - before, 22) << "it was known";

  FitChain restarted(kRoom);
  After(restarted, all);
  EXPECT_EQ(restarted.fits(), 18) << "17 from 16 to 91, and 100";
  After(restarted, all);
  EXPECT_EQ(restarted.fits(), 18);
}

TEST(GpFitChain, EveryNumberThatAFitDependsOnCounts) {
  const Data all({40, 2, 1});
  FitChain chain(kRoom);
  const std::string answer = After(chain, all);
  const auto differs = [&](const Data& other) {
    const std::string theirs = After(chain, other);
    EXPECT_EQ(theirs, Fresh(other));
    return theirs != answer;
  };
  Data other = all;
  other.scores[3] += 0.5;  // a result was corrected
  EXPECT_TRUE(differs(other));
  other = all;
  other.inputs.x(38, 1) = 1 - other.inputs.x(38, 1);
  EXPECT_TRUE(differs(other));
  other = all;
  other.inputs.u(7, 0) = 3 - other.inputs.u(7, 0);
  EXPECT_TRUE(differs(other));
  other = all;  // two trials have changed places, so that other ones came first
  std::swap(other.scores[2], other.scores[30]);
  other.inputs.x.row(2).swap(other.inputs.x.row(30));
  other.inputs.u.row(2).swap(other.inputs.u.row(30));
  EXPECT_TRUE(differs(other));
  // The same numbers, but what was a number is a category.
  const Data numbers({20, 2, 0});
  const Data categories{{numbers.inputs.x.leftCols(1), numbers.inputs.x.rightCols(1)},
                        numbers.scores};
  After(chain, numbers);
  EXPECT_EQ(After(chain, categories), Fresh(categories));
  EXPECT_EQ(After(chain, all), answer);
}

TEST(GpFitChain, ResultsThatAreAllEqualTeachNothing) {
  Data data({30, 2, 0});
  data.scores.head(20).setConstant(1);
  FitChain chain(kRoom);
  EXPECT_EQ(chain.After(data.inputs.Rows(0, 20), data.scores.head(20)).fitted_at, 0);
  EXPECT_EQ(chain.After(data.inputs, data.scores).fitted_at, 30);
  EXPECT_EQ(After(chain, data), Fresh(data));
  EXPECT_EQ(chain.After(data.inputs.Rows(0, 1), data.scores.head(1)).fitted_at, 0);
  EXPECT_EQ(chain.After(data.inputs.Rows(0, 0), data.scores.head(0)).fitted_at, 0);
}

// Where Learn goes on from there, it has nothing left to fit, at any count.
TEST(GpFitChain, LearnHasNothingLeftToFit) {
  const Data all({130, 2, 0});
  FitChain chain(kRoom);
  for (int n = 2; n <= 130; ++n) {
    SurrogateMemo memo = chain.After(all.inputs.Rows(0, n), all.scores.head(n));
    const std::string before = memo.Serialize();
    Learn(all.inputs.Rows(0, n), all.scores.head(n), memo);
    ASSERT_EQ(memo.Serialize(), before) << n;
  }
}

TEST(GpFitChain, OfTooManyResultsThoseAreFittedThatAProcessHas) {
  const Data all({1100, 2, 0});
  FitChain chain(kRoom);
  const SurrogateMemo memo = chain.After(all.inputs, all.scores);
  EXPECT_EQ(memo.fitted_at, Results::kMaxPoints);
  const int64_t fits = chain.fits();
  EXPECT_EQ(fits, 2) << "some of them, and then those that a process has";
  chain.After(all.inputs.Rows(0, 1099), all.scores.head(1099));
  EXPECT_LE(chain.fits(), fits + 1);
}

// From 128 of them, after which the fit ends where one from nothing does.
TEST(GpFitChain, OfManyResultsTheStartIsSomeOfThem) {
  const Data all({450, 2, 0});
  FitChain chain(kRoom);
  const SurrogateMemo memo = chain.After(all.inputs, all.scores);
  EXPECT_EQ(chain.fits(), 2);
  SurrogateMemo from_nothing;
  const int64_t m = LastFitCount(450);
  Refit(all.inputs.Rows(0, m), all.scores.head(m), from_nothing);
  EXPECT_EQ(memo.fitted_at, from_nothing.fitted_at);
  for (size_t kind = 0; kind < memo.thetas.size(); ++kind) {
    const VectorXd& found = memo.thetas[kind].values;
    const VectorXd& other = from_nothing.thetas[kind].values;
    EXPECT_NE(found, other);                                                // it went another way
    EXPECT_LT((found - other).cwiseAbs().head(3).maxCoeff(), 0.2) << kind;  // lengths and scale
  }
  Data equal = all;
  equal.scores.setConstant(2);
  EXPECT_EQ(chain.After(equal.inputs, equal.scores).fitted_at, 0);
  // Some of them may be equal where not all are.
  equal.scores[1] = 3;
  EXPECT_EQ(chain.After(equal.inputs, equal.scores).fitted_at, m);
}

// The fit to some of them stands for all counts up to an eighth more.
TEST(GpFitChain, WhileManyGrowOneFitIsMadeOfEachCount) {
  const Data all({234, 2, 0});
  FitChain chain(kRoom);
  for (int n = 206; n <= 230; ++n) After(chain, all.First(n));
  // After 206, 211, 216, 221 and 226; and of some of the first 204.
  EXPECT_EQ(chain.fits(), 6);
  After(chain, all);
  // After 231; and of some of the first 229.
  EXPECT_EQ(chain.fits(), 8);
  EXPECT_EQ(After(chain, all), Fresh(all));
  EXPECT_EQ(After(chain, all.First(207)), Fresh(all.First(207)));
}

TEST(GpFitChain, TheMemoryAloneIsThatOfAWholeFit) {
  const Data all({410, 2, 0});
  SurrogateMemo with, without;
  Refit(all.inputs, all.scores, with);
  RefitMemory(all.inputs, all.scores, without);
  EXPECT_EQ(with.Serialize(), without.Serialize());
}

TEST(GpFitChain, WhatWasCutShortIsNotKept) {
  const Data all({60, 3, 0});
  FitChain chain(kRoom);
  {
    int asked = 0;
    const CancelScope scope([&asked] { return ++asked > 40; });
    After(chain, all);
    EXPECT_TRUE(IsCancelled());
  }
  EXPECT_LT(chain.fits(), 5);
  EXPECT_EQ(After(chain, all), Fresh(all));
}

TEST(GpFitChain, ManyMayAskAtOnce) {
  const Data all({70, 2, 1});
  FitChain chain(4000);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&all, &chain, i] {
      for (int n = 10 + i; n <= 70; n += 6) {
        EXPECT_EQ(After(chain, all.First(n)), Fresh(all.First(n))) << n;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_LE(chain.bytes(), 4000);
}

// Results that become known later are added behind those that were known, wherever they stand.
TEST(GpFitChain, TheOrderIsThatOfTheEnds) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  Rng rng(5);
  History in_order(space), interleaved(space);
  std::vector<std::pair<Point, double>> trials;
  for (int i = 0; i < 40; ++i) {
    trials.emplace_back(space.Sample(rng), rng.Uniform());
  }
  for (const auto& [point, loss] : trials) {
    in_order.Add(point, {.state = TrialState::kCompleted, .loss = loss});
  }
  for (int i = 39; i >= 0; --i) {
    interleaved.Add(trials[i].first,
                    {.state = TrialState::kCompleted, .loss = trials[i].second, .ended = i + 1});
    interleaved.Add(space.Sample(rng), {});  // still running
    interleaved.Add(space.Sample(rng), {.state = TrialState::kInfeasible, .ended = 20});
  }
  EXPECT_EQ(MemoryFrom(interleaved).Serialize(), MemoryFrom(in_order).Serialize());
}

}  // namespace
}  // namespace shirabe::suggestion::gp
