#include "suggestion/cma_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shirabe::suggestion {
namespace {

constexpr double kAlpha = 1.4;
constexpr double kGamma = 0.1;

}  // namespace

void CmaRate::Observe(const Eigen::MatrixXd& step) {
  mean_ = (1 - beta_) * mean_ + beta_ * step;
  square_ = (1 - beta_) * square_ + beta_ * step.squaredNorm();
  const double signal = mean_.squaredNorm();
  // |E|² ≤ V by Jensen's inequality; equality, after the very first step only, is no noise at all.
  const double noise = std::max(square_ - signal, std::numeric_limits<double>::min());
  const double ratio = (signal - beta_ / (2 - beta_) * square_) / noise;
  const double excess = std::clamp(ratio / (kAlpha * rate_) - 1, -1.0, 1.0);
  rate_ = std::min(1.0, rate_ * std::exp(std::min(kGamma * rate_, beta_) * excess));
}

void CmaRate::Fields(CmaRecord& record) {
  record.Matrix(mean_);
  record.Number(square_);
  record.Number(rate_);
  if (record.reads() && record.ok() && !(rate_ > 0 && rate_ <= 1)) record.Reject();
}

}  // namespace shirabe::suggestion
