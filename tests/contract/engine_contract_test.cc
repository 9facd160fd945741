// The contract of suggestion/gp/engine.h, for every engine: the processor's, which is the oracle;
// the accelerator's by Eigen behind the interface of the library, by the kernels themselves on this
// processor (tests/gpu/shim), and by a GPU where there is one.
#include "suggestion/gp/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cancellation.h"
#include "suggestion/accelerator/gpu_library.h"
#include "suggestion/gp/engine_choice.h"
#include "tests/accelerator/fake_gpu.h"
#include "tests/suggestion/gp_data.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

class EngineContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    accelerator::SharedGpu::Options options;
    if (GetParam() == "processor") return;
    if (GetParam() == "fake") {
      fake_.emplace();
      options.folders = {fake_->folder()};
    } else if (GetParam() == "kernels") {
      options.folders = {BinaryDir() + "/gpu_on_processor"};
      if (access(options.folders[0].c_str(), F_OK) != 0)
        GTEST_SKIP() << "not built for this preset";
    } else {
      options.folders = accelerator::GpuLibraryFolders(*accelerator::ReadGpuSetting());
    }
    const auto gpu = accelerator::SharedGpu::Open(options);
    if (!gpu.ok() && GetParam() == "gpu") GTEST_SKIP() << "no GPU here: " << gpu.status();
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    own_ = MakeAcceleratedEngine(*gpu);
  }

  const Engine& engine() const { return own_ == nullptr ? ProcessorEngine() : *own_; }
  // How far from the oracle's, in units of its size: nothing for itself.
  double tolerance() const { return own_ == nullptr ? 0 : 1e-7; }

  Posterior Conditioned(const Inputs& inputs, const VectorXd& y, const Theta& theta) const {
    const auto model = engine().Upload(inputs, y);
    EXPECT_TRUE(model.ok()) << model.status();
    auto posterior = engine().Condition(**model, {0, theta});
    EXPECT_TRUE(posterior.ok()) << posterior.status();
    return *std::move(posterior);
  }
  void ExpectNear(const MatrixXd& got, const MatrixXd& expected, const std::string& what) const {
    ASSERT_EQ(got.rows(), expected.rows()) << what;
    ASSERT_EQ(got.cols(), expected.cols()) << what;
    if (expected.size() == 0) return;
    const double scale = std::max(1.0, expected.cwiseAbs().maxCoeff());
    EXPECT_LE((got - expected).cwiseAbs().maxCoeff(), tolerance() * scale) << what;
  }

 private:
  std::optional<accelerator::FakeGpu> fake_;
  std::unique_ptr<Engine> own_;
};

TEST_P(EngineContract, FitsAsTheOracle) {
  uint64_t seed = 1;
  for (const Shape& shape : kShapes) {
    const Inputs inputs = RandomInputs(shape, ++seed);
    MatrixXd y(shape.n, 2);
    y.col(0) = ValuesAt(inputs);
    y.col(1) = Standardize(y.col(0).array().exp());
    const Theta start = DefaultTheta(shape.numeric, shape.categorical);
    const auto model = engine().Upload(inputs, y);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto fitted = engine().Fit(**model, {{0, start}, {1, start}});
    ASSERT_TRUE(fitted.ok()) << fitted.status();
    ASSERT_EQ(fitted->size(), 2);
    for (int column = 0; column < 2; ++column) {
      const Fitted oracle = Fit(inputs, y.col(column), start);
      EXPECT_NEAR((*fitted)[column].value, oracle.value, 1e3 * tolerance()) << shape.n;
      EXPECT_GT((*fitted)[column].evaluations, 0);
      VectorXd gradient;
      EXPECT_NEAR(NegativeLogPosterior((*fitted)[column].theta, inputs, y.col(column), gradient),
                  (*fitted)[column].value, 10 * tolerance());
    }
  }
}

TEST_P(EngineContract, AFitIsTheSameAloneAndAmongOthers) {
  const Shape shape{24, 3, 1};
  const Inputs inputs = RandomInputs(shape, 9);
  const VectorXd y = ValuesAt(inputs);
  const auto model = engine().Upload(inputs, y);
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<Engine::Start> starts;
  for (uint64_t seed = 0; seed < 5; ++seed) starts.push_back({0, RandomTheta(shape, seed)});
  const auto together = engine().Fit(**model, starts);
  ASSERT_TRUE(together.ok()) << together.status();
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto alone = engine().Fit(**model, {starts[i]});
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ((*alone)[0].theta.values, (*together)[i].theta.values) << i;
    EXPECT_EQ((*alone)[0].value, (*together)[i].value) << i;
  }
}

TEST_P(EngineContract, ConditionsAndScoresAsTheOracle) {
  uint64_t seed = 20;
  for (const Shape& shape : kShapes) {
    const Inputs inputs = RandomInputs(shape, ++seed);
    const VectorXd y = ValuesAt(inputs);
    const Theta theta = RandomTheta(shape, seed);
    Posterior oracle(theta, inputs);
    oracle.SetTargets(y);
    const Posterior posterior = Conditioned(inputs, y, theta);
    ExpectNear(posterior.LeaveOneOut(), oracle.LeaveOneOut(), "left out");
    const Inputs points = RandomInputs({7, shape.numeric, shape.categorical}, seed + 100);
    const auto expected = oracle.Predict(points, Slopes::kYes);
    const auto got = posterior.Score(points, Slopes::kYes);
    ExpectNear(got.mean, expected.mean, "mean");
    ExpectNear(got.variance, expected.variance, "variance");
    const MatrixXd mean_bar = MatrixXd::Constant(7, 1, 0.7);
    const VectorXd variance_bar = VectorXd::LinSpaced(7, -1, 1);
    ExpectNear(posterior.Pullback(points, got, mean_bar, variance_bar),
               oracle.Pullback(points, expected, mean_bar, variance_bar), "slopes");
    const auto plain = posterior.Score(points);
    EXPECT_EQ(plain.mean, got.mean);
    EXPECT_EQ(plain.variance, got.variance);
  }
}

// What is imagined after it was conditioned is part of what it scores by.
TEST_P(EngineContract, KnowsWhatIsAppended) {
  const Shape shape{20, 2, 0};
  const Inputs inputs = RandomInputs(shape, 31);
  const VectorXd y = ValuesAt(inputs);
  const Theta theta = RandomTheta(shape, 31);
  Posterior oracle(theta, inputs), posterior = Conditioned(inputs, y, theta);
  oracle.SetTargets(y);
  const Inputs point = RandomInputs({1, 2, 0}, 32), points = RandomInputs({5, 2, 0}, 33);
  for (Posterior* one : {&oracle, &posterior}) {
    one->Split(3);
    one->Append(point, Eigen::RowVectorXd::Constant(3, 2.5));
  }
  const auto got = posterior.Score(points, Slopes::kYes);
  ExpectNear(got.mean, oracle.Predict(points).mean, "mean");
  ExpectNear(got.variance, oracle.Predict(points).variance, "variance");
}

// Several points in several scenarios, at once; and what was appended here is scored there.
TEST_P(EngineContract, ExtendsAsAppendDoes) {
  uint64_t seed = 50;
  for (const Shape& shape : kShapes) {
    const Inputs inputs = RandomInputs(shape, ++seed);
    const VectorXd y = ValuesAt(inputs);
    const Theta theta = RandomTheta(shape, seed);
    Posterior oracle(theta, inputs), posterior = Conditioned(inputs, y, theta);
    oracle.SetTargets(y);
    const Inputs more = RandomInputs({4, shape.numeric, shape.categorical}, seed + 10);
    MatrixXd values(4, 3);
    for (double& value : values.reshaped()) value = std::sin(static_cast<double>(++seed));
    for (Posterior* one : {&oracle, &posterior}) one->Split(3);
    for (int i = 0; i < 4; ++i) oracle.Append(more.Row(i), values.row(i));
    posterior.Append(more.Row(0), values.row(0));
    ASSERT_TRUE(engine().Extend(posterior, more.Rows(1, 3), values.bottomRows(3)).ok());
    EXPECT_EQ(posterior.has_scorer(), engine().kind() == EngineKind::kAccelerator);
    EXPECT_EQ(posterior.targets(), oracle.targets());
    EXPECT_NEAR(posterior.mean(), oracle.mean(), tolerance());
    ExpectNear(posterior.LeaveOneOut(), oracle.LeaveOneOut(), "left out");
    const Inputs points = RandomInputs({6, shape.numeric, shape.categorical}, seed + 20);
    const auto expected = oracle.Predict(points, Slopes::kYes);
    MatrixXd mean_bar(6, 3);
    for (double& bar : mean_bar.reshaped()) bar = std::cos(static_cast<double>(++seed));
    const VectorXd variance_bar = VectorXd::LinSpaced(6, -1, 1);
    const MatrixXd slopes = oracle.Pullback(points, expected, mean_bar, variance_bar);
    for (const auto& got :
         {posterior.Score(points, Slopes::kYes), posterior.Predict(points, Slopes::kYes)}) {
      ExpectNear(got.mean, expected.mean, "mean");
      ExpectNear(got.variance, expected.variance, "variance");
      ExpectNear(posterior.Pullback(points, got, mean_bar, variance_bar), slopes, "slopes");
    }
    // Without further points: as it is.
    posterior.Append(more.Row(0), values.row(0));
    oracle.Append(more.Row(0), values.row(0));
    const Inputs none = inputs.Rows(0, 0);
    ASSERT_TRUE(engine().Extend(posterior, none, MatrixXd(0, 3)).ok());
    ExpectNear(posterior.Score(points).mean, oracle.Predict(points).mean, "mean as it is");
  }
}

TEST_P(EngineContract, StopsWhenTheCallerHasGone) {
  const Shape shape{30, 4, 0};
  const Inputs inputs = RandomInputs(shape, 41);
  const auto model = engine().Upload(inputs, ValuesAt(inputs));
  ASSERT_TRUE(model.ok()) << model.status();
  int asked = 0;
  const CancelScope scope([&asked] { return ++asked > 3; });
  const auto fitted = engine().Fit(**model, {{0, RandomTheta(shape, 4)}});
  EXPECT_TRUE(fitted.ok() ? (*fitted)[0].evaluations <= 3 : absl::IsCancelled(fitted.status()))
      << fitted.status();
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineContract,
                         testing::Values("processor", "fake", "kernels", "gpu"),
                         [](const auto& engine) { return engine.param; });

}  // namespace
}  // namespace shirabe::suggestion::gp
