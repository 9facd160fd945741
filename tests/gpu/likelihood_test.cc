// Values and gradients of the library against those of suggestion/gp.
#include <cmath>
#include <cstring>

#include "tests/gpu/device.h"

namespace shirabe::suggestion::gpu {
namespace {

using Eigen::VectorXd;

using LikelihoodTest = Device;

struct Known {
  double value;
  VectorXd gradient;
};

// gp::NegativeLogPosterior without the prior, which is that of one point, whose likelihood is
// known.
Known WithoutPrior(const gp::Theta& theta, const gp::Inputs& inputs, const VectorXd& y) {
  Known known, one;
  known.value = gp::NegativeLogPosterior(theta, inputs, y, known.gradient);
  one.value = gp::NegativeLogPosterior(theta, inputs.Row(0), VectorXd::Zero(1), one.gradient);
  const double k = theta.scale() + theta.noise() + 1e-9;
  one.value -= 0.5 * std::log(k);
  const auto size = theta.values.size();
  one.gradient[size - 3] -= 0.5 * theta.scale() / k;
  one.gradient[size - 2] -= 0.5 * theta.noise() / k;
  return {known.value - one.value, known.gradient - one.gradient};
}

const std::vector<Shape>& Shapes() {
  static const std::vector<Shape> shapes = {{1, 1, 0},  {2, 2, 0},  {2, 0, 1},  {31, 3, 2},
                                            {64, 9, 0}, {65, 0, 3}, {65, 2, 1}, {130, 4, 9}};
  return shapes;
}

TEST_F(LikelihoodTest, IsThatOfEigenAtEverySize) {
  for (const Shape& shape : Shapes()) {
    const gp::Inputs inputs = RandomInputs(shape, shape.n);
    const Eigen::MatrixXd y = RandomTargets(shape, shape.n);
    const gp::Theta theta = RandomTheta(shape, shape.n);
    const std::vector<Likelihood> found = Evaluate({{Upload(inputs, y), 0, theta}});
    const Known known = WithoutPrior(theta, inputs, y);
    EXPECT_NEAR(found[0].value, known.value, 1e-9 * std::max(1.0, std::abs(known.value)))
        << shape.n << " " << shape.p << " " << shape.c;
    EXPECT_LT(Difference(found[0].gradient, known.gradient), 1e-9)
        << shape.n << " " << shape.p << " " << shape.c;
  }
}

TEST_F(LikelihoodTest, IsTheSameBitsAloneAndInABatch) {
  std::vector<Asked> asked;
  for (const Shape& shape : {Shape{65, 2, 1, 3}, Shape{7, 1, 0, 3}, Shape{1, 0, 2, 3}}) {
    const DeviceModel* model = Upload(RandomInputs(shape, shape.n), RandomTargets(shape, shape.n));
    for (int column : {2, 0}) asked.push_back({model, column, RandomTheta(shape, column)});
  }
  const std::vector<Likelihood> together = Evaluate(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    const Likelihood alone = Evaluate({asked[i]})[0];
    EXPECT_EQ(alone.value, together[i].value);
    EXPECT_EQ(alone.gradient, together[i].gradient);
  }
}

// Every column is its own data set.
TEST_F(LikelihoodTest, ReadsTheColumnThatIsNamed) {
  const Shape shape{20, 2, 1, 3};
  const gp::Inputs inputs = RandomInputs(shape, 4);
  const Eigen::MatrixXd y = RandomTargets(shape, 4);
  const gp::Theta theta = RandomTheta(shape, 4);
  const DeviceModel* model = Upload(inputs, y);
  for (int column = 0; column < 3; ++column) {
    const Known known = WithoutPrior(theta, inputs, y.col(column));
    EXPECT_NEAR(Evaluate({{model, column, theta}})[0].value, known.value, 1e-9);
  }
}

// At the ends of the box of θ, where K is nearly singular: as near as its condition allows.
TEST_F(LikelihoodTest, IsThatOfEigenAtTheEndsOfTheBox) {
  const Shape shape{40, 3, 1};
  const gp::Inputs inputs = RandomInputs(shape, 5);
  const Eigen::MatrixXd y = RandomTargets(shape, 5);
  const DeviceModel* model = Upload(inputs, y);
  const gp::Box box = gp::ThetaBox(shape.p, shape.c);
  for (const VectorXd& end : {box.lower, box.upper}) {
    const gp::Theta theta{end};
    const Known known = WithoutPrior(theta, inputs, y);
    const Likelihood found = Evaluate({{model, 0, theta}})[0];
    EXPECT_NEAR(found.value, known.value, 1e-5 * std::max(1.0, std::abs(known.value)));
    EXPECT_LT(Difference(found.gradient, known.gradient), 1e-5);
  }
}

// Equal points and next to no noise: infinite, as with Eigen, and the others of the batch as ever.
TEST_F(LikelihoodTest, IsInfiniteWhereTheMatrixCannotBeFactored) {
  const Shape shape{70, 2, 0};
  gp::Inputs inputs = RandomInputs(shape, 6);
  const DeviceModel* sound = Upload(inputs, RandomTargets(shape, 6));
  const gp::Theta usual = RandomTheta(shape, 6);
  const double value = Evaluate({{sound, 0, usual}})[0].value;
  inputs.x.setConstant(0.5);
  const DeviceModel* singular = Upload(inputs, RandomTargets(shape, 6));
  gp::Theta theta = usual;
  theta.values[2] = 25;   // s²: what rounding needs is lost in it
  theta.values[3] = -50;  // σ²
  const std::vector<Likelihood> found = Evaluate({{singular, 0, theta}, {sound, 0, usual}});
  VectorXd gradient;
  EXPECT_EQ(gp::NegativeLogPosterior(theta, inputs, VectorXd::Ones(70), gradient), INFINITY);
  EXPECT_EQ(found[0].value, INFINITY);
  EXPECT_EQ(found[0].gradient, VectorXd::Zero(5));
  EXPECT_EQ(found[1].value, value);
}

}  // namespace
}  // namespace shirabe::suggestion::gpu
