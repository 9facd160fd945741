// What a point promises, weighed by where the user expects the best (πBO, suggestion/space/
// space_priors.h): the logarithm of a utility, plus w log π(x).
#pragma once

#include <memory>

#include "suggestion/gp/acquisition.h"
#include "suggestion/gp/acquisition_search.h"

namespace shirabe::suggestion::gp {

// Immutable, any thread; what it weighs and the layout must outlive it.
class PriorAcquisition : public Acquisition {
 public:
  // Without priors in the layout's space it is what is promised. `results`: how many trials the
  // model has learned from.
  PriorAcquisition(const Acquisition& promised, const InputLayout& layout, Eigen::Index results)
      : promised_(promised),
        layout_(layout),
        weight_(SpacePriors::LogWeight(static_cast<int64_t>(results))) {}

  Eigen::ArrayXd Lengths() const override { return promised_.Lengths(); }
  Eigen::Index size() const override { return promised_.size(); }
  bool ScoredElsewhere() const override { return promised_.ScoredElsewhere(); }

 private:
  Eigen::VectorXd Compute(const Inputs& points, Eigen::MatrixXd* gradient) const override;

  const Acquisition& promised_;
  const InputLayout& layout_;
  double weight_;
};

}  // namespace shirabe::suggestion::gp
