// A curve of any length as a picture shows it.
#include "client/charts/curve_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shirabe::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

CurvePoints Line(int points) {
  CurvePoints line;
  for (int i = 0; i < points; ++i) {
    line.x.push_back(i);
    line.y.push_back(std::sin(i * 0.01));
  }
  return line;
}

TEST(Reduce, KeepsACurveThatHasNoMorePointsThanPixels) {
  const CurvePoints line = Line(50);
  const CurvePoints reduced = Reduce(line, {.from = 0, .to = 49, .pixels = 1000});
  EXPECT_EQ(reduced.x, line.x);
  EXPECT_EQ(reduced.y, line.y);
}

TEST(Reduce, GivesAtMostTwoPointsForEachPixelAndLosesNoSpike) {
  CurvePoints line = Line(100'000);
  line.y[54'321] = 50;
  line.y[54'322] = -50;
  line.y[77'777] = -70;
  const CurvePoints reduced = Reduce(line, {.from = 0, .to = 99'999, .pixels = 400});
  EXPECT_LE(reduced.x.size(), 800);
  EXPECT_GE(reduced.x.size(), 700);
  EXPECT_TRUE(std::is_sorted(reduced.x.begin(), reduced.x.end()));
  EXPECT_EQ(*std::max_element(reduced.y.begin(), reduced.y.end()), 50);
  EXPECT_EQ(*std::min_element(reduced.y.begin(), reduced.y.end()), -70);
  for (size_t i = 0; i < reduced.x.size(); ++i) {
    EXPECT_EQ(reduced.y[i], line.y[static_cast<size_t>(reduced.x[i])]) << "a point that was there";
  }
}

// The least and the greatest of each pixel, found in another way.
TEST(Reduce, AgreesWithACountOverEachPixel) {
  const CurvePoints line = Line(10'000);
  constexpr int kPixels = 37;
  const CurvePoints reduced = Reduce(line, {.from = 0, .to = 9'999, .pixels = kPixels});
  size_t at = 0;
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    double least = kInf, greatest = -kInf;
    for (int i = 0; i < 10'000; ++i) {
      const int place = std::min(kPixels - 1, static_cast<int>(i * double{kPixels} / 9'999));
      if (place != pixel) continue;
      least = std::min(least, line.y[i]);
      greatest = std::max(greatest, line.y[i]);
    }
    ASSERT_LT(at + 1, reduced.y.size());
    EXPECT_EQ(std::min(reduced.y[at], reduced.y[at + 1]), least) << pixel;
    EXPECT_EQ(std::max(reduced.y[at], reduced.y[at + 1]), greatest) << pixel;
    at += 2;
  }
  EXPECT_EQ(at, reduced.y.size());
}

TEST(Reduce, ShowsOnlyTheWindow) {
  const CurvePoints reduced = Reduce(Line(100), {.from = 10, .to = 12.5, .pixels = 100});
  EXPECT_THAT(reduced.x, ElementsAre(10, 11, 12));
  EXPECT_THAT(Reduce(Line(100), {.from = 200, .to = 300, .pixels = 100}).x, IsEmpty());
  EXPECT_THAT(Reduce({}, {.from = 0, .to = 0, .pixels = 1}).x, IsEmpty());
}

TEST(Reduce, TakesPixelsOfALogarithmicAxis) {
  CurvePoints line;
  for (int i = -5; i <= 100'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i);
  }
  const CurveWindow window{.from = 1, .to = 100'000, .pixels = 50, .logarithmic = true};
  const CurvePoints reduced = Reduce(line, window);
  // Five decades with ten pixels each: the first steps are all there.
  EXPECT_THAT(std::vector<double>(reduced.x.begin(), reduced.x.begin() + 6),
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_LE(reduced.x.size(), 100);
}

TEST(Reduce, ShowsThatACurveIsNoLongerANumber) {
  CurvePoints line = Line(1000);
  for (int i = 500; i < 1000; ++i) line.y[i] = i % 2 == 0 ? kNan : kInf;
  const CurvePoints reduced = Reduce(line, {.from = 0, .to = 999, .pixels = 10});
  // Two points for each of the first five pixels, one for each of the rest.
  ASSERT_EQ(reduced.y.size(), 15);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(std::isfinite(reduced.y[i]));
  for (int i = 10; i < 15; ++i) EXPECT_FALSE(std::isfinite(reduced.y[i]));
}

TEST(Reduce, PutsAllIntoOnePixelWhereTheAxisHasNoLength) {
  const CurvePoints same{.x = {3, 3, 3}, .y = {2, 9, 1}};
  const CurvePoints reduced = Reduce(same, {.from = 3, .to = 3, .pixels = 500});
  EXPECT_THAT(reduced.y, ElementsAre(9, 1)) << "in their order";
}

}  // namespace
}  // namespace shirabe::client
