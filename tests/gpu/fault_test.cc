// A device that fails, by the shim: no driver, no memory, lost at any launch.
#include "tests/gpu/device.h"
#include "tests/gpu/shim/shim.h"

namespace shirabe::suggestion::gpu {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

class FaultTest : public Device {
 protected:
  void TearDown() override {
    ResetShim();
    Device::TearDown();
    EXPECT_EQ(TheShim().used, 0) << "memory of the device was not given back";
  }

  DeviceModel* Upload(const Shape& shape) {
    return Device::Upload(RandomInputs(shape, 1), RandomTargets(shape, 1));
  }
  int EvaluateBatch(const DeviceModel* model, int64_t count) {
    std::vector<Evaluation> batch(count);
    gradients_.resize(5, count);
    for (int64_t i = 0; i < count; ++i) {
      batch[i] = {model, 0, theta_.data(), 0, gradients_.col(i).data()};
    }
    return shirabe_cuda_evaluate(context_, batch.data(), count);
  }
  // Everything in turn: the codes of evaluating, conditioning and scoring.
  std::vector<int> RunAll(const DeviceModel* model) {
    std::vector<int> codes{EvaluateBatch(model, 1)};
    DevicePosterior* posterior = nullptr;
    const Conditioning conditioning{theta_.data(), nullptr, 0, nullptr};
    codes.push_back(shirabe_cuda_condition(model, &conditioning, &posterior, nullptr));
    if (posterior == nullptr) return codes;
    VectorXd variance(1);
    const Scoring scoring{posterior,       1,       theta_.data(), nullptr, nullptr,
                          variance.data(), nullptr, nullptr};
    codes.push_back(shirabe_cuda_score(context_, &scoring, 1));
    shirabe_cuda_release(nullptr, posterior);
    return codes;
  }

  VectorXd theta_ = VectorXd::Zero(5);
  MatrixXd gradients_;
};

TEST_F(FaultTest, SaysWhyThereIsNoDevice) {
  Context* context = nullptr;
  DeviceInfo info;
  TheShim().old_driver = true;
  EXPECT_EQ(shirabe_cuda_open(-1, &context, &info), kNoDevice);
  EXPECT_EQ(info.driver_version, 12020);
  TheShim().no_driver = true;
  EXPECT_EQ(shirabe_cuda_open(0, &context, &info), kNoDevice);
  EXPECT_EQ(info.driver_version, 0);
  EXPECT_STRNE(info.reason, "");
  EXPECT_EQ(context, nullptr);
}

TEST_F(FaultTest, ABatchThatDoesNotFitIsDoneInPartsWithTheSameNumbers) {
  const DeviceModel* model = Upload({70, 2, 0});
  ASSERT_EQ(EvaluateBatch(model, 9), kOk);
  const MatrixXd whole = gradients_;
  Context* const first = context_;
  ASSERT_EQ(shirabe_cuda_open(-1, &context_, &info_), kOk);
  const DeviceModel* again = Upload({70, 2, 0});
  TheShim().memory = TheShim().used + 700'000;  // two of the nine
  const int64_t launches = TheShim().launches;
  EXPECT_EQ(EvaluateBatch(again, 9), kOk);
  EXPECT_EQ(gradients_, whole);
  EXPECT_GT(TheShim().launches, launches + 20);
  shirabe_cuda_release(models_.front(), nullptr);
  models_.erase(models_.begin());
  shirabe_cuda_close(first);
}

TEST_F(FaultTest, ScoringsThatDoNotFitAreDoneInPartsWithTheSameNumbers) {
  const DeviceModel* model = Upload({70, 2, 0});
  DevicePosterior* const posterior = Condition(model, {theta_.data(), nullptr, 0, nullptr});
  const gp::Inputs points = RandomInputs({300, 2, 0}, 5);
  VectorXd mean(300), variance(300);
  MatrixXd slopes(300, 2);
  const Scoring whole{posterior,       300,     points.x.data(), nullptr, mean.data(),
                      variance.data(), nullptr, slopes.data()};
  ASSERT_EQ(shirabe_cuda_score(context_, &whole, 1), kOk);
  VectorXd means[3], variances[3];
  MatrixXd all_slopes[3];
  std::vector<Scoring> batch;
  for (int i = 0; i < 3; ++i) {
    means[i] = variances[i] = VectorXd::Zero(300);
    all_slopes[i] = MatrixXd::Zero(300, 2);
    Scoring& one = batch.emplace_back(whole);
    one.mean = means[i].data();
    one.variance = variances[i].data();
    one.variance_slopes = all_slopes[i].data();
  }
  // Beside what is there, a tile of points or two.
  TheShim().memory = TheShim().used + 700'000;
  const int64_t launches = TheShim().launches;
  EXPECT_EQ(shirabe_cuda_score(context_, batch.data(), 3), kOk);
  EXPECT_GT(TheShim().launches, launches + 6);  // of one part
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(means[i], mean) << i;
    EXPECT_EQ(variances[i], variance) << i;
    EXPECT_EQ(all_slopes[i], slopes) << i;
  }
}

TEST_F(FaultTest, WithoutMemoryTheContextGoesOn) {
  const DeviceModel* model = Upload({70, 2, 0});
  const int64_t before = TheShim().used;
  TheShim().memory = before + 1000;
  for (const int code : RunAll(model)) EXPECT_EQ(code, kNoMemory);
  const gp::Inputs inputs = RandomInputs({700, 2, 0}, 1);
  const VectorXd y = VectorXd::Zero(700);
  const ModelData data{700, 2, 0, 1, inputs.x.data(), nullptr, y.data()};
  DeviceModel* other = nullptr;
  EXPECT_EQ(shirabe_cuda_upload(context_, &data, &other), kNoMemory);
  EXPECT_EQ(other, nullptr);
  TheShim().memory = 1LL << 30;
  EXPECT_EQ(RunAll(model), std::vector<int>(3, kOk));
}

TEST_F(FaultTest, AnyLaunchMayLoseTheDevice) {
  const DeviceModel* model = Upload({3, 2, 0});
  const int64_t before = TheShim().launches;
  ASSERT_EQ(RunAll(model), std::vector<int>(3, kOk));
  const int64_t launches = TheShim().launches - before;
  ASSERT_GT(launches, 12);
  for (int64_t at = 0; at < launches; ++at) {
    Device::TearDown();
    models_.clear();
    TheShim().fault.clear();
    TheShim().launches_until_lost = -1;
    Device::SetUp();
    model = Upload({3, 2, 0});
    TheShim().launches_until_lost = at;
    EXPECT_EQ(RunAll(model).back(), kDeviceLost) << "launch " << at;
    // A device that is there again is not this context's.
    TheShim().fault.clear();
    EXPECT_EQ(RunAll(model).back(), kDeviceLost);
  }
}

}  // namespace
}  // namespace shirabe::suggestion::gpu
