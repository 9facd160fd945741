// The acquisition function of several objectives, and what is kept from one proposal to the next.
#include <gtest/gtest.h>

#include <cmath>

#include "base/statistics.h"
#include "base/text/number.h"
#include "suggestion/gp/acquisition.h"
#include "suggestion/gp/front_selector.h"
#include "suggestion/pareto/hypervolume.h"
#include "suggestion/sobol_sequence.h"
#include "tests/suggestion/gp_data.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

// Scores; larger is better.
std::vector<ScoreBox> BoxesOf(const std::vector<Losses>& front, const Losses& reference) {
  std::vector<ScoreBox> boxes;
  for (const LossBox& free : NonDominatedBoxes(front, reference)) {
    ScoreBox& box = boxes.emplace_back();
    for (size_t j = 0; j < reference.size(); ++j) {
      box.lower.push_back(-free.upper[j]);
      box.upper.push_back(-free.lower[j]);
    }
  }
  return boxes;
}

Posterior Learned(const Shape& shape, const Inputs& inputs, uint64_t seed, double sign) {
  Posterior posterior(RandomTheta(shape, seed), inputs);
  posterior.SetTargets(sign * ValuesAt(inputs));
  return posterior;
}

// By quasi-random draws of both objectives, independent.
double ImprovementByDraws(const std::vector<const Posterior*>& objectives, const Inputs& point,
                          const std::vector<Losses>& front, const Losses& reference) {
  const double before = Hypervolume(front, reference);
  const SobolSequence sequence(static_cast<int>(objectives.size()));
  constexpr uint64_t kDraws = 1 << 14;
  double sum = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const std::vector<double> u = sequence.At(i, 7);
    std::vector<Losses> with = front;
    Losses& drawn = with.emplace_back();
    for (size_t j = 0; j < objectives.size(); ++j) {
      const Posterior::Prediction prediction = objectives[j]->Predict(point);
      drawn.push_back(-(prediction.mean(0, 0) + std::sqrt(prediction.variance[0]) *
                                                    NormalQuantile(std::clamp(u[j], 1e-9, 1.0))));
    }
    sum += Hypervolume(with, reference) - before;
  }
  return sum / kDraws;
}

TEST(GpHypervolume, IsTheExpectedImprovement) {
  const Shape shape{12, 2, 0};
  const Inputs inputs = RandomInputs(shape, 50), points = RandomInputs({4, 2, 0}, 51);
  const Posterior a = Learned(shape, inputs, 52, 1), b = Learned(shape, inputs, 53, -1),
                  c = Learned(shape, inputs, 54, 0.5);
  const std::vector<Losses> two = {{-1, 0.5}, {0, 0}, {0.7, -1}};
  const std::vector<Losses> three = {{-1, 0.5, 0}, {0, 0, 0.2}, {0.7, -1, -0.5}};
  for (const auto& [front, objectives] :
       {std::pair(two, std::vector<const Posterior*>{&a, &b}),
        std::pair(three, std::vector<const Posterior*>{&a, &b, &c})}) {
    const Losses reference(objectives.size(), 2);
    const HypervolumeAcquisition acquisition(objectives, {BoxesOf(front, reference)}, {});
    const VectorXd values = acquisition.Evaluate(points);
    for (Index i = 0; i < points.rows(); ++i) {
      const double drawn = ImprovementByDraws(objectives, points.Row(i), front, reference);
      EXPECT_NEAR(std::exp(values[i]), drawn, 0.02 * drawn + 1e-4);
    }
  }
}

// Also where it is so small that it is made of logarithms.
TEST(GpHypervolume, OfOneObjectiveIsExpectedImprovement) {
  const Shape shape{12, 2, 0};
  const Inputs inputs = RandomInputs(shape, 55), points = RandomInputs({6, 2, 0}, 56);
  const Posterior a = Learned(shape, inputs, 57, 1);
  for (double best = -3; best < 1e4; best = 1.1 * best + 1) {
    const ObjectiveAcquisition one(Utility::kLogEi, a, RowVectorXd::Constant(1, best), {});
    const HypervolumeAcquisition same({&a}, {{{.lower = {best}, .upper = {kInfinity}}}}, {});
    MatrixXd slopes, others;
    EXPECT_TRUE(same.Evaluate(points, &slopes).isApprox(one.Evaluate(points, &others), 1e-11));
    EXPECT_TRUE(slopes.isApprox(others, 1e-8)) << best;
  }
}

TEST(GpHypervolume, ItsGradientIsThatOfItsValue) {
  const Shape shape{15, 2, 1};
  const Inputs inputs = RandomInputs(shape, 60);
  Posterior a = Learned(shape, inputs, 61, 1), b = Learned(shape, inputs, 62, -1);
  const Posterior constraint = Learned(shape, inputs, 63, 1);
  const Inputs more = RandomInputs({1, 2, 1}, 64);
  for (Posterior* posterior : {&a, &b}) {
    posterior->Split(2);
    posterior->Append(more, (RowVectorXd(2) << -1, 1.5).finished());
  }
  const Losses reference = {2, 2};
  const HypervolumeAcquisition acquisition(
      {&a, &b},
      {BoxesOf({{-1, 0.5}, {0, 0}}, reference), BoxesOf({{-1, 0.5}, {0, 0}, {1, -1.5}}, reference)},
      {{.posterior = &constraint}});
  const Inputs points = RandomInputs({8, 2, 1}, 65);
  MatrixXd gradient;
  const VectorXd values = acquisition.Evaluate(points, &gradient);
  EXPECT_TRUE(values.isApprox(acquisition.EvaluateAll(points), 1e-12));
  for (int j = 0; j < 2; ++j) {
    constexpr double kStep = 1e-6;
    Inputs up = points, down = points;
    up.x.col(j).array() += kStep;
    down.x.col(j).array() -= kStep;
    const VectorXd central = (acquisition.Evaluate(up) - acquisition.Evaluate(down)) / (2 * kStep);
    for (Index i = 0; i < points.rows(); ++i) {
      EXPECT_NEAR(gradient(i, j), central[i], 1e-5 * std::max(1.0, std::abs(central[i])));
    }
  }
}

TEST(GpHypervolume, NeverLosesItsSlopeFarFromTheFront) {
  const Shape shape{10, 2, 0};
  const Inputs inputs = RandomInputs(shape, 66);
  const Posterior a = Learned(shape, inputs, 67, 1), b = Learned(shape, inputs, 68, -1);
  const Losses reference = {-1e5, -1e5};
  const HypervolumeAcquisition acquisition({&a, &b},
                                           {BoxesOf({{-3e5, -2e5}, {-2e5, -3e5}}, reference)}, {});
  MatrixXd gradient;
  EXPECT_TRUE(acquisition.Evaluate(RandomInputs({5, 2, 0}, 69), &gradient).allFinite());
  EXPECT_TRUE(gradient.allFinite());
  EXPECT_GT(gradient.rowwise().norm().minCoeff(), 0);
}

TEST(GpFrontMemo, ComesBackAndWhatIsNotItsOwnIsLeft) {
  FrontMemo memo;
  memo.objectives.resize(2);
  memo.constraints.resize(1);
  memo.objectives[1].fitted_at = 17;
  memo.objectives[1].thetas[0] = DefaultTheta(2, 0);
  memo.constraints[0].fitted_at = 9;
  const std::string text = memo.Serialize();
  const int size = Theta::Size(2, 0);
  const FrontMemo back = FrontMemo::Parse(text, size);
  ASSERT_EQ(back.objectives.size(), 2u);
  ASSERT_EQ(back.constraints.size(), 1u);
  EXPECT_EQ(back.objectives[1].fitted_at, 17);
  EXPECT_EQ(back.objectives[1].thetas[0].values, memo.objectives[1].thetas[0].values);
  EXPECT_EQ(back.constraints[0].fitted_at, 9);
  // Cut anywhere, or of another kind: nothing that was learned is believed, and nothing breaks.
  for (size_t length = 0; length < text.size(); ++length) {
    const FrontMemo cut = FrontMemo::Parse(text.substr(0, length), size);
    EXPECT_TRUE(cut.constraints.empty()) << length;
  }
  for (const char* odd : {"front :", "front 1:99:", "front 99999999999999999999:", "front 1:-1:x",
                          "front 1:18446744073709551615:x", "gp memo1"}) {
    EXPECT_TRUE(FrontMemo::Parse(odd, size).objectives.empty()) << odd;
  }
}

}  // namespace
}  // namespace shirabe::suggestion::gp
