// Arguments that are wrong, each refused with a code, and nothing written or lost. On any device.
#include <cmath>
#include <limits>

#include "tests/gpu/device.h"

namespace shirabe::suggestion::gpu {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class InterfaceTest : public Device {
 protected:
  void SetUp() override {
    Device::SetUp();
    if (context_ == nullptr) return;
    model_ = Upload(inputs_, y_);
    posterior_ = Condition(model_, {theta_.data(), nullptr, 0, nullptr});
  }

  ModelData Data() const { return {5, 2, 1, 1, inputs_.x.data(), inputs_.u.data(), y_.data()}; }
  void RefusesData(const ModelData& data) {
    auto* model = reinterpret_cast<DeviceModel*>(this);
    EXPECT_EQ(shirabe_cuda_upload(context_, &data, &model), kBadArgument);
    EXPECT_EQ(model, nullptr);
  }
  void RefusesEvaluation(const Evaluation& evaluation) {
    Evaluation batch[2] = {{model_, 0, theta_.data(), -1, gradient_.data()}, evaluation};
    EXPECT_EQ(shirabe_cuda_evaluate(context_, batch, 2), kBadArgument);
    EXPECT_EQ(batch[0].value, -1);  // nothing was begun
  }
  void RefusesConditioning(const Conditioning& conditioning) {
    auto* posterior = reinterpret_cast<DevicePosterior*>(this);
    EXPECT_EQ(shirabe_cuda_condition(model_, &conditioning, &posterior, nullptr), kBadArgument);
    EXPECT_EQ(posterior, nullptr);
  }
  void RefusesScoring(const Scoring& scoring) {
    const double x[2] = {0.5, 0.5}, u = 0;
    double mean = -1;
    const Scoring batch[2] = {{posterior_, 1, x, &u, &mean, nullptr, nullptr, nullptr}, scoring};
    EXPECT_EQ(shirabe_cuda_score(context_, batch, 2), kBadArgument);
    EXPECT_EQ(mean, -1);  // nothing was begun
  }

  gp::Inputs inputs_ = RandomInputs({5, 2, 1}, 1);
  MatrixXd y_ = RandomTargets({5, 2, 1}, 1);
  VectorXd theta_ = RandomTheta({5, 2, 1}, 1).values;
  VectorXd gradient_ = VectorXd::Zero(6);
  DeviceModel* model_ = nullptr;
  DevicePosterior* posterior_ = nullptr;
};

TEST(VersionTest, IsThatOfTheHeader) { EXPECT_EQ(shirabe_cuda_version(), kAbiVersion); }

TEST(VersionTest, EveryCodeHasAText) {
  for (int code = kOk; code <= kInternal; ++code) EXPECT_STRNE(shirabe_cuda_text(code), "");
  EXPECT_STREQ(shirabe_cuda_text(-7), "an unknown code");
  EXPECT_STREQ(shirabe_cuda_text(1 << 30), "an unknown code");
}

TEST_F(InterfaceTest, OpensOnlyWhatIsThere) {
  Context* context = context_;
  DeviceInfo info;
  EXPECT_EQ(shirabe_cuda_open(1000, &context, &info), kNoDevice);
  EXPECT_EQ(context, nullptr);
  EXPECT_STRNE(info.reason, "");
  EXPECT_EQ(shirabe_cuda_open(-2, &context, &info), kBadArgument);
  EXPECT_EQ(shirabe_cuda_open(0, nullptr, &info), kBadArgument);
  EXPECT_EQ(shirabe_cuda_open(0, &context, nullptr), kBadArgument);
  EXPECT_GT(info_.total_bytes, 0u);
  EXPECT_STRNE(info_.name, "");
  EXPECT_GE(info_.driver_version, 13000);
}

TEST_F(InterfaceTest, ReleasingNothingIsFine) {
  shirabe_cuda_release(nullptr, nullptr);
  shirabe_cuda_close(nullptr);
}

TEST_F(InterfaceTest, RefusesSizesOutOfBounds) {
  for (const int64_t n : {int64_t{0}, int64_t{-1}, int64_t{kMaxModelPoints} + 1,
                          std::numeric_limits<int64_t>::max()}) {
    ModelData data = Data();
    data.n = n;
    RefusesData(data);
  }
  constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();
  for (const auto& [p, c, m] :
       {std::tuple(0, 0, 1), std::tuple(-1, 2, 1), std::tuple(2, -1, 1),
        std::tuple(kHuge, kHuge, 1), std::tuple(1024, 1, 1), std::tuple(2, 1, 0),
        std::tuple(2, 1, -1), std::tuple(2, 1, kHuge)}) {
    ModelData data = Data();
    data.p = p;
    data.c = c;
    data.m = m;
    RefusesData(data);
  }
}

TEST_F(InterfaceTest, RefusesDataThatIsMissingOrNotFinite) {
  for (const double wrong : {kNan, double{INFINITY}, -double{INFINITY}, 1e300}) {
    gp::Inputs inputs = inputs_;
    inputs.x(4, 1) = wrong;
    ModelData data = Data();
    data.x = inputs.x.data();
    RefusesData(data);
    inputs.u(4, 0) = wrong;
    data = Data();
    data.u = inputs.u.data();
    RefusesData(data);
    MatrixXd y = y_;
    y(0, 0) = wrong;
    data = Data();
    data.y = y.data();
    RefusesData(data);
  }
  for (const double* ModelData::*field : {&ModelData::x, &ModelData::u, &ModelData::y}) {
    ModelData data = Data();
    data.*field = nullptr;
    RefusesData(data);
  }
  const ModelData data = Data();
  DeviceModel* model = nullptr;
  EXPECT_EQ(shirabe_cuda_upload(nullptr, &data, &model), kBadArgument);
  EXPECT_EQ(shirabe_cuda_upload(context_, nullptr, &model), kBadArgument);
  EXPECT_EQ(shirabe_cuda_upload(context_, &data, nullptr), kBadArgument);
}

TEST_F(InterfaceTest, RefusesWrongEvaluations) {
  RefusesEvaluation({nullptr, 0, theta_.data(), 0, gradient_.data()});
  RefusesEvaluation({model_, 1, theta_.data(), 0, gradient_.data()});
  RefusesEvaluation({model_, -1, theta_.data(), 0, gradient_.data()});
  RefusesEvaluation({model_, 0, nullptr, 0, gradient_.data()});
  RefusesEvaluation({model_, 0, theta_.data(), 0, nullptr});
  for (const double wrong : {kNan, double{INFINITY}, 800.0, -800.0}) {
    VectorXd theta = theta_;
    theta[5] = wrong;
    RefusesEvaluation({model_, 0, theta.data(), 0, gradient_.data()});
  }
  Evaluation one{model_, 0, theta_.data(), 0, gradient_.data()};
  EXPECT_EQ(shirabe_cuda_evaluate(nullptr, &one, 1), kBadArgument);
  EXPECT_EQ(shirabe_cuda_evaluate(context_, nullptr, 1), kBadArgument);
  for (const int64_t count :
       {int64_t{0}, int64_t{-1}, int64_t{kMaxBatch} + 1, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(shirabe_cuda_evaluate(context_, &one, count), kBadArgument);
  }
}

TEST_F(InterfaceTest, RefusesTheModelOfAnotherContext) {
  Context* other = nullptr;
  DeviceInfo info;
  ASSERT_EQ(shirabe_cuda_open(info_.ordinal, &other, &info), kOk);
  Evaluation one{model_, 0, theta_.data(), 0, gradient_.data()};
  EXPECT_EQ(shirabe_cuda_evaluate(other, &one, 1), kBadArgument);
  EXPECT_EQ(shirabe_cuda_evaluate(context_, &one, 1), kOk);
  shirabe_cuda_close(other);
}

TEST_F(InterfaceTest, RefusesWrongConditionings) {
  RefusesConditioning({nullptr, nullptr, 0, nullptr});
  VectorXd theta = theta_;
  theta[0] = kNan;
  RefusesConditioning({theta.data(), nullptr, 0, nullptr});
  for (const int m : {0, -1, std::numeric_limits<int32_t>::max()}) {
    RefusesConditioning({theta_.data(), y_.data(), m, nullptr});
  }
  MatrixXd y = y_;
  y(3, 0) = kNan;
  RefusesConditioning({theta_.data(), y.data(), 1, nullptr});
  RefusesConditioning({theta_.data(), nullptr, 0, &kNan});
  const Conditioning right{theta_.data(), nullptr, 0, nullptr};
  DevicePosterior* posterior = nullptr;
  EXPECT_EQ(shirabe_cuda_condition(nullptr, &right, &posterior, nullptr), kBadArgument);
  EXPECT_EQ(shirabe_cuda_condition(model_, nullptr, &posterior, nullptr), kBadArgument);
  EXPECT_EQ(shirabe_cuda_condition(model_, &right, nullptr, nullptr), kBadArgument);
}

TEST_F(InterfaceTest, RefusesWrongScorings) {
  const double* x = inputs_.x.data();
  const double* u = inputs_.u.data();
  VectorXd mean(5);
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{kMaxScoredPoints} + 1,
                              std::numeric_limits<int64_t>::max()}) {
    RefusesScoring({posterior_, count, x, u, mean.data(), nullptr, nullptr, nullptr});
  }
  RefusesScoring({posterior_, 5, nullptr, u, mean.data(), nullptr, nullptr, nullptr});
  RefusesScoring({posterior_, 5, x, nullptr, mean.data(), nullptr, nullptr, nullptr});
  gp::Inputs wrong = inputs_;
  wrong.x(2, 1) = kNan;
  RefusesScoring({posterior_, 5, wrong.x.data(), u, mean.data(), nullptr, nullptr, nullptr});
  RefusesScoring({nullptr, 5, x, u, mean.data(), nullptr, nullptr, nullptr});
  const Scoring right{posterior_, 5, x, u, mean.data(), nullptr, nullptr, nullptr};
  EXPECT_EQ(shirabe_cuda_score(context_, nullptr, 1), kBadArgument);
  EXPECT_EQ(shirabe_cuda_score(nullptr, &right, 1), kBadArgument);
  for (const int64_t count : {int64_t{0}, int64_t{-1}, int64_t{kMaxBatch} + 1}) {
    EXPECT_EQ(shirabe_cuda_score(context_, &right, count), kBadArgument);
  }
  Context* other = nullptr;
  DeviceInfo info;
  ASSERT_EQ(shirabe_cuda_open(-1, &other, &info), kOk);
  EXPECT_EQ(shirabe_cuda_score(other, &right, 1), kBadArgument);
  shirabe_cuda_close(other);
  EXPECT_EQ(shirabe_cuda_score(context_, &right, 1), kOk);
}

}  // namespace
}  // namespace shirabe::suggestion::gpu
