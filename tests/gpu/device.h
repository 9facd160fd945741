// A device for tests, with data of every shape. The functions are those of the library, whichever
// is linked: the kernels on the processor, or libshirabe-cuda.so.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "suggestion/gp/gaussian_process.h"
#include "suggestion/gpu/shirabe_cuda.h"

namespace shirabe::suggestion::gpu {

struct Shape {
  int n, p, c, m = 1;
};

// In [0, 1), the same for the same seed.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    uint64_t z = (state_ ^ (state_ >> 29)) * 0xbf58476d1ce4e5b9u;
    z ^= z >> 32;
    return static_cast<double>(z >> 11) / 9007199254740992.0;
  }

 private:
  uint64_t state_;
};

inline gp::Inputs RandomInputs(const Shape& shape, uint64_t seed) {
  Numbers numbers(seed);
  gp::Inputs inputs{Eigen::MatrixXd(shape.n, shape.p), Eigen::MatrixXd(shape.n, shape.c)};
  for (double& x : inputs.x.reshaped()) x = numbers.Next();
  for (double& u : inputs.u.reshaped()) u = std::floor(3 * numbers.Next());
  return inputs;
}

inline Eigen::MatrixXd RandomTargets(const Shape& shape, uint64_t seed) {
  Numbers numbers(seed + 1000);
  Eigen::MatrixXd y(shape.n, shape.m);
  for (double& value : y.reshaped()) value = 3 * numbers.Next() - 1;
  return y;
}

// Lengths between 0.3 and 3, a noise that keeps K well-conditioned.
inline gp::Theta RandomTheta(const Shape& shape, uint64_t seed) {
  Numbers numbers(seed + 2000);
  gp::Theta theta{Eigen::VectorXd(gp::Theta::Size(shape.p, shape.c))};
  for (double& value : theta.values) value = 2 * numbers.Next() - 1;
  theta.values[theta.values.size() - 2] = std::log(0.01);
  return theta;
}

class Device : public ::testing::Test {
 protected:
  void SetUp() override {
    const int code = shirabe_cuda_open(-1, &context_, &info_);
    if (code == kNoDevice) GTEST_SKIP() << "no GPU here: " << info_.reason;
    ASSERT_EQ(code, kOk);
  }
  void TearDown() override {
    for (DeviceModel* model : models_) shirabe_cuda_release(model, nullptr);
    for (DevicePosterior* posterior : posteriors_) shirabe_cuda_release(nullptr, posterior);
    shirabe_cuda_close(context_);
  }

  DeviceModel* Upload(const gp::Inputs& inputs, const Eigen::MatrixXd& y) {
    const ModelData data{inputs.rows(),
                         inputs.numeric(),
                         inputs.categorical(),
                         static_cast<int>(y.cols()),
                         inputs.x.data(),
                         inputs.u.data(),
                         y.data()};
    DeviceModel* model = nullptr;
    EXPECT_EQ(shirabe_cuda_upload(context_, &data, &model), kOk);
    if (model != nullptr) models_.push_back(model);
    return model;
  }

  struct Likelihood {
    double value = 0;
    Eigen::VectorXd gradient;
  };
  struct Asked {
    const DeviceModel* model;
    int column;
    gp::Theta theta;
  };
  std::vector<Likelihood> Evaluate(const std::vector<Asked>& asked) {
    std::vector<Likelihood> answers(asked.size());
    std::vector<Evaluation> batch;
    for (size_t i = 0; i < asked.size(); ++i) {
      answers[i].gradient.resize(asked[i].theta.values.size());
      batch.push_back({asked[i].model, asked[i].column, asked[i].theta.values.data(), 0,
                       answers[i].gradient.data()});
    }
    EXPECT_EQ(shirabe_cuda_evaluate(context_, batch.data(), static_cast<int64_t>(batch.size())),
              kOk);
    for (size_t i = 0; i < asked.size(); ++i) answers[i].value = batch[i].value;
    return answers;
  }

  DevicePosterior* Condition(const DeviceModel* model, const Conditioning& conditioning,
                             PosteriorParts* parts = nullptr) {
    DevicePosterior* posterior = nullptr;
    EXPECT_EQ(shirabe_cuda_condition(model, &conditioning, &posterior, parts), kOk);
    if (posterior != nullptr) posteriors_.push_back(posterior);
    return posterior;
  }

  Context* context_ = nullptr;
  DeviceInfo info_{};
  std::vector<DeviceModel*> models_;
  std::vector<DevicePosterior*> posteriors_;
};

// Relative to the largest number of the expected ones, or to 1.
inline double Difference(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return INFINITY;
  if (a.size() == 0) return 0;
  if (!a.allFinite() || !b.allFinite()) return INFINITY;
  return (a - b).cwiseAbs().maxCoeff() / std::max(1.0, b.cwiseAbs().maxCoeff());
}

}  // namespace shirabe::suggestion::gpu
