// That nothing depends on the order in which the threads of a block run, and that this test would
// notice: with any barrier of any kernel removed, something does.
#include <gpu_platform.h>

#include <cstring>

#include "tests/gpu/device.h"
#include "tests/gpu/shim/shim.h"

namespace shirabe::suggestion::gpu {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kOrders = 20;

class OrderTest : public Device {
 protected:
  void TearDown() override {
    ResetShim();
    Device::TearDown();
  }

  // Every kernel once, over several tiles: all numbers that come out.
  std::vector<double> RunAll() {
    const Shape shape{70, 9, 1, 2};
    const gp::Inputs inputs = RandomInputs(shape, 1);
    const gp::Theta theta = RandomTheta(shape, 1);
    DeviceModel* model = Upload(inputs, RandomTargets(shape, 1));
    if (model == nullptr) return {};
    std::vector<double> all(13, 0);
    Evaluation evaluation{model, 1, theta.values.data(), 0, all.data()};
    all.push_back(shirabe_cuda_evaluate(context_, &evaluation, 1));
    all.push_back(evaluation.value);
    std::vector<double> inverse(70 * 70), precision(70), mean(10), variance(5), slopes(3 * 45);
    PosteriorParts parts{inverse.data(), nullptr, nullptr, precision.data(), 0};
    const Conditioning conditioning{theta.values.data(), nullptr, 0, nullptr};
    DevicePosterior* posterior = nullptr;
    all.push_back(shirabe_cuda_condition(model, &conditioning, &posterior, &parts));
    all.push_back(parts.mean);
    const gp::Inputs points = RandomInputs({5, 9, 1}, 2);
    const Scoring scoring{posterior,       5,
                          points.x.data(), points.u.data(),
                          mean.data(),     variance.data(),
                          slopes.data(),   slopes.data() + 90};
    all.push_back(posterior == nullptr ? -1 : shirabe_cuda_score(context_, &scoring, 1));
    for (const auto* some : {&inverse, &precision, &mean, &variance, &slopes}) {
      all.insert(all.end(), some->begin(), some->end());
    }
    shirabe_cuda_release(model, posterior);
    models_.pop_back();
    return all;
  }

  // After a fault the context is lost: another one.
  void Reopen() {
    TheShim().fault.clear();
    shirabe_cuda_close(context_);
    ASSERT_EQ(shirabe_cuda_open(-1, &context_, &info_), kOk);
  }
};

// Also of what is not a number.
bool SameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

TEST_F(OrderTest, GivesTheSameBitsInEveryOrderOfThreadsAndBlocks) {
  const std::vector<double> first = RunAll();
  for (const double value : first) ASSERT_TRUE(std::isfinite(value));
  for (int order = 1; order <= kOrders; ++order) {
    TheShim().seed = order;
    EXPECT_TRUE(SameBits(RunAll(), first)) << "order " << order;
    EXPECT_EQ(TheShim().fault, "");
  }
}

TEST_F(OrderTest, NoticesEveryBarrierThatIsRemoved) {
  const std::vector<double> sound = RunAll();
  const std::set<Place> barriers = TheShim().barriers;
  EXPECT_GE(barriers.size(), 11u);
  for (const Place& barrier : barriers) {
    TheShim().removed = barrier;
    bool noticed = false;
    for (int order = 1; order <= kOrders && !noticed; ++order) {
      TheShim().seed = order;
      noticed = !SameBits(RunAll(), sound) || !TheShim().fault.empty();
      Reopen();
    }
    EXPECT_TRUE(noticed) << "without the barrier at " << barrier.first << ":" << barrier.second
                         << " nothing changes: it is not needed, or this test is blind";
  }
}

// ---- kernels that are wrong
// ----------------------------------------------------------------------

__global__ void UnequalKernel() {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void EndsEarlyKernel() {
  if (threadIdx.x == 7) return;
  __syncthreads();
}

__global__ void ReversesWithoutABarrierKernel(double* out) {
  __shared__ double values[kBlockThreads];
  values[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = values[kBlockThreads - 1 - threadIdx.x];
}

__global__ void SumsWithoutInitialisingKernel(double* out) {
  __shared__ double sum;
  if (threadIdx.x == 0) {
    sum += 1;
    *out = sum;
  }
}

TEST_F(OrderTest, ThreadsThatWaitAtDifferentBarriersAreAFault) {
  Launch(UnequalKernel, dim3(1, 1, 1));
  EXPECT_THAT(TheShim().fault, ::testing::HasSubstr("diverge"));
  EXPECT_THAT(TheShim().fault, ::testing::HasSubstr("order_test.cc"));
}

TEST_F(OrderTest, AThreadThatEndsBeforeABarrierIsAFault) {
  Launch(EndsEarlyKernel, dim3(3, 1, 1));
  EXPECT_THAT(TheShim().fault, ::testing::HasSubstr("ended before"));
}

// What was not written yet is NaN, and not what the block before left there.
TEST_F(OrderTest, SharedMemoryIsNotInitialised) {
  std::vector<double> out(kBlockThreads);
  TheShim().seed = 1;
  for (int block = 0; block < 2; ++block) {
    Launch(ReversesWithoutABarrierKernel, dim3(1, 1, 1), out.data());
    int unwritten = 0;
    for (const double value : out) unwritten += std::isnan(value) ? 1 : 0;
    EXPECT_GT(unwritten, 10);
  }
  Launch(SumsWithoutInitialisingKernel, dim3(1, 1, 1), out.data());
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST_F(OrderTest, AFaultIsADeviceThatIsLost) {
  DeviceModel* model = Upload(RandomInputs({3, 1, 0}, 1), RandomTargets({3, 1, 0}, 1));
  Launch(EndsEarlyKernel, dim3(1, 1, 1));
  const VectorXd theta = VectorXd::Zero(4);
  VectorXd gradient(4);
  Evaluation evaluation{model, 0, theta.data(), 0, gradient.data()};
  EXPECT_EQ(shirabe_cuda_evaluate(context_, &evaluation, 1), kDeviceLost);
}

}  // namespace
}  // namespace shirabe::suggestion::gpu
