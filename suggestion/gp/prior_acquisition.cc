#include "suggestion/gp/prior_acquisition.h"

namespace shirabe::suggestion::gp {

using Eigen::Index;

Eigen::VectorXd PriorAcquisition::Compute(const Inputs& points, Eigen::MatrixXd* gradient) const {
  Eigen::VectorXd values = promised_.Evaluate(points, gradient);
  const Space& space = layout_.space();
  if (space.priors() == nullptr) return values;
  const SpacePriors& priors = *space.priors();
  for (Index i = 0; i < points.rows(); ++i) {
    const Point point = layout_.ToPoint(points, i);
    values[i] += weight_ * space.LogPrior(point);
    if (gradient == nullptr) continue;
    const std::vector<bool> active = space.Active(point);
    for (int j = 0; j < points.numeric(); ++j) {
      const int axis = layout_.numeric()[j];
      if (active[axis] && priors.Has(axis)) {
        (*gradient)(i, j) += weight_ * priors.Slope(axis, point[axis]);
      }
    }
  }
  return values;
}

}  // namespace shirabe::suggestion::gp
