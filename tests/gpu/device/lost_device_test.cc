// A GPU that fails in the middle: codes, no crash. Its context does not recover within the process,
// so that this runs last and by itself.
#include "tests/gpu/device.h"
#include "tests/gpu/device/trap.h"

namespace shirabe::suggestion::gpu {
namespace {

using LostDeviceTest = Device;

TEST_F(LostDeviceTest, EveryCallSaysSo) {
  const Shape shape{100, 2, 0};
  const gp::Inputs inputs = RandomInputs(shape, 1);
  const Eigen::MatrixXd y = RandomTargets(shape, 1);
  DeviceModel* model = Upload(inputs, y);
  const Eigen::VectorXd theta = RandomTheta(shape, 1).values;
  DevicePosterior* posterior = Condition(model, {theta.data(), nullptr, 0, nullptr});
  ASSERT_TRUE(LoseDevice());
  Eigen::VectorXd gradient(5);
  Evaluation evaluation{model, 0, theta.data(), 0, gradient.data()};
  EXPECT_EQ(shirabe_cuda_evaluate(context_, &evaluation, 1), kDeviceLost);
  Eigen::VectorXd mean(100);
  const Scoring scoring{posterior,   100,     inputs.x.data(), nullptr,
                        mean.data(), nullptr, nullptr,         nullptr};
  EXPECT_EQ(shirabe_cuda_score(context_, &scoring, 1), kDeviceLost);
  DeviceModel* other = nullptr;
  const ModelData data{100, 2, 0, 1, inputs.x.data(), nullptr, y.data()};
  EXPECT_EQ(shirabe_cuda_upload(context_, &data, &other), kDeviceLost);
}

}  // namespace
}  // namespace shirabe::suggestion::gpu
