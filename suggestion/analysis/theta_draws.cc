#include "suggestion/analysis/theta_draws.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kLeastDeviation = 1e-9;  // of values to fit to
constexpr Index kLeastSample = 4;

// m, of n trials that are worth e.
Index SampledOf(const Crowding& crowding, Index n) {
  const Index e = crowding.even();
  return std::max(kLeastSample, (e * e + n / 2) / n);
}

}  // namespace

std::vector<gp::Theta> DrawThetas(const gp::InputLayout& layout, const gp::Posterior& fitted,
                                  const VectorXd& y, const std::vector<Rng>& rngs) {
  const gp::Inputs& inputs = fitted.inputs();
  const Crowding crowding(layout, inputs);
  const gp::Theta start = gp::DefaultTheta(inputs.numeric(), inputs.categorical());
  const Index scale = inputs.numeric() + inputs.categorical();
  const Index sampled_count = SampledOf(crowding, inputs.rows());
  std::vector<gp::Theta> drawn;
  for (Rng rng : rngs) {
    const std::vector<Index> rows = crowding.Sample(sampled_count, rng);
    const VectorXd own = y(rows);
    const double mean = own.mean();
    const double deviation =
        std::sqrt((own.array() - mean).square().sum() / static_cast<double>(own.size()));
    if (!(deviation > kLeastDeviation) || IsCancelled()) {
      drawn.push_back(fitted.theta());
      continue;
    }
    const gp::Inputs sampled{inputs.x(rows, Eigen::all), inputs.u(rows, Eigen::all)};
    gp::Theta theta = gp::Fit(sampled, (own.array() - mean) / deviation, start).theta;
    // Of the values as they are: s² and σ².
    theta.values.segment(scale, 2).array() += 2 * std::log(deviation);
    drawn.push_back(std::move(theta));
  }
  return drawn;
}

}  // namespace shirabe::suggestion::analysis
