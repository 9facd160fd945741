#include "suggestion/gp/recommend.h"

#include <algorithm>
#include <cmath>

namespace shirabe::suggestion::gp {
namespace {

constexpr double kSure = 2;  // deviations of the difference

}  // namespace

std::optional<Recommended> Recommend(const Surrogate& surrogate, const Eigen::VectorXd& scores) {
  const Posterior& posterior = surrogate.posterior;
  const Posterior::Prediction prediction = posterior.Predict(posterior.inputs());
  const auto mean = prediction.mean.col(0);
  Recommended found;
  scores.maxCoeff(&found.best);
  mean.maxCoeff(&found.point);
  const Eigen::Index b = found.best, r = found.point;
  const double together =
      prediction.cross.k(b, r) - prediction.solved.col(b).dot(prediction.solved.col(r));
  const double variance = prediction.variance[r] + prediction.variance[b] - 2 * together;
  if (!(mean[r] - mean[b] > kSure * std::sqrt(std::max(0.0, variance)))) return std::nullopt;
  const double deviation = std::sqrt(prediction.variance[r]);
  const Warp& warp = surrogate.warp;
  found.score = warp.Unwarp(mean[r]);
  found.deviation = (warp.Unwarp(mean[r] + deviation) - warp.Unwarp(mean[r] - deviation)) / 2;
  found.at_best = warp.Unwarp(mean[b]);
  return found;
}

}  // namespace shirabe::suggestion::gp
