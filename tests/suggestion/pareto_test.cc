// Fronts, hypervolumes and boxes, against their definitions on small sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "base/text/number.h"
#include "suggestion/pareto/dominance.h"
#include "suggestion/pareto/hypervolume.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Losses> RandomPoints(int count, int losses, Rng& rng) {
  std::vector<Losses> points(count, Losses(losses));
  for (Losses& point : points) {
    // On a grid, so that some are equal in some losses.
    for (double& loss : point) loss = static_cast<double>(rng.Below(8)) / 8;
  }
  return points;
}

bool IsDominated(const Losses& y, const std::vector<Losses>& points) {
  return std::any_of(points.begin(), points.end(), [&](const Losses& point) {
    for (size_t k = 0; k < y.size(); ++k) {
      if (point[k] > y[k]) return false;
    }
    return true;
  });
}

// Calls `visit` with the middle of each cell of a grid of 8 steps a side over [0, 1].
template <class Visit>
void ForEachCell(int losses, const Visit& visit) {
  std::vector<int> at(losses, 0);
  for (;;) {
    Losses middle(losses);
    for (int k = 0; k < losses; ++k) middle[k] = (at[k] + 0.5) / 8;
    visit(middle);
    int k = 0;
    while (k < losses && ++at[k] == 8) at[k++] = 0;
    if (k == losses) return;
  }
}

TEST(Hypervolume, IsTheVolumeThatIsDominated) {
  Rng rng(1);
  for (const int losses : {1, 2, 3, 4}) {
    for (int round = 0; round < 30; ++round) {
      const std::vector<Losses> points = RandomPoints(1 + round % 9, losses, rng);
      int cells = 0;
      ForEachCell(losses, [&](const Losses& y) { cells += IsDominated(y, points) ? 1 : 0; });
      EXPECT_NEAR(Hypervolume(points, Losses(losses, 1)), cells / std::pow(8, losses), 1e-12);
    }
  }
}

TEST(Hypervolume, WhatIsNotBelowTheReferenceAddsNothing) {
  EXPECT_EQ(Hypervolume({}, {1, 1}), 0);
  EXPECT_EQ(Hypervolume({{1, 0}, {0, 2}, {3, -9}}, {1, 1}), 0);
  EXPECT_DOUBLE_EQ(Hypervolume({{0, 0.5}, {-5, 1}}, {1, 1}), 0.5);
  EXPECT_EQ(Hypervolume({{2}}, {1}), 0);
}

TEST(Hypervolume, OfManyPointsAndOfManyLossesIsFoundInTime) {
  std::vector<Losses> front;
  constexpr int kCount = 20'000;
  for (int i = 0; i < kCount; ++i) {
    front.push_back({(i + 0.5) / kCount, 1 - (i + 0.5) / kCount});
  }
  EXPECT_NEAR(Hypervolume(front, {1, 1}), 0.5, 1e-3);
  Rng rng(2);
  std::vector<Losses> many(60, Losses(6));
  for (Losses& point : many) {
    for (double& loss : point) loss = rng.Uniform();
  }
  const double volume = Hypervolume(many, Losses(6, 1));
  int inside = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    Losses y(6);
    for (double& loss : y) loss = rng.Uniform();
    inside += IsDominated(y, many) ? 1 : 0;
  }
  EXPECT_NEAR(volume, static_cast<double>(inside) / kDraws, 5e-3);
}

TEST(NonDominatedBoxes, CoverWhatIsNotDominatedOnce) {
  Rng rng(4);
  for (const int losses : {1, 2, 3, 4}) {
    for (int round = 0; round < 30; ++round) {
      const std::vector<Losses> points = RandomPoints(round % 9, losses, rng);
      const std::vector<LossBox> boxes = NonDominatedBoxes(points, Losses(losses, 1));
      for (const LossBox& box : boxes) {
        for (int k = 0; k < losses; ++k) ASSERT_LT(box.lower[k], box.upper[k]);
      }
      const auto covers = [](const LossBox& box, const Losses& y) {
        for (size_t k = 0; k < y.size(); ++k) {
          if (!(box.lower[k] <= y[k] && y[k] < box.upper[k])) return false;
        }
        return true;
      };
      const auto check = [&](const Losses& y) {
        const auto times = std::count_if(boxes.begin(), boxes.end(),
                                         [&](const LossBox& box) { return covers(box, y); });
        EXPECT_EQ(times, IsDominated(y, points) ? 0 : 1);
      };
      ForEachCell(losses, check);
      check(Losses(losses, -1e9));
    }
  }
}

TEST(NonDominatedBoxes, AreFew) {
  std::vector<Losses> line, plane;
  Rng rng(5);
  for (int i = 0; i < 40; ++i) {
    line.push_back({i / 40.0, 1 - i / 40.0});
    const double a = rng.Uniform(), b = rng.Uniform();
    plane.push_back({a, b, 1 - (a + b) / 2});
  }
  EXPECT_LE(NonDominatedBoxes(line, {2, 2}).size(), 41u);
  EXPECT_LE(NonDominatedBoxes(plane, {2, 2, 2}).size(), 81u);
}

TEST(FirstFront, IsWhatNothingDominates) {
  const std::vector<Individual> all = {{.trial = 0, .losses = {2, 2}},
                                       {.trial = 1, .losses = {1, 3}},
                                       {.trial = 2, .losses = {3, 3}},
                                       {.trial = 3, .losses = {0, 0}, .violation = 0.5},
                                       {.trial = 4, .losses = {2, 2}}};
  std::vector<int64_t> trials;
  for (const Individual& one : FirstFront(all)) trials.push_back(one.trial);
  EXPECT_THAT(trials, ElementsAre(0, 1, 4));
  EXPECT_THAT(FirstFront({}), IsEmpty());
}

}  // namespace
}  // namespace shirabe::suggestion
