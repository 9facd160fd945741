#include "suggestion/cma_frame.h"

namespace shirabe::suggestion {
namespace {

// A rest shorter than this part of a vector is rounding.
constexpr double kRounding = 1e-6;

}  // namespace

Eigen::VectorXd CmaFrame::Turned(const Eigen::VectorXd& z) const {
  const Eigen::VectorXd rest = Rest(z);
  const double length = rest.norm();
  return length > kRounding * z.norm() ? Eigen::VectorXd(rest * (z.norm() / length)) : z;
}

void CmaFrame::Add(const Eigen::VectorXd& z) {
  const Eigen::VectorXd rest = Rest(z);
  const double length = rest.norm();
  if (length > kRounding * z.norm()) directions_.push_back(rest / length);
  if (static_cast<Eigen::Index>(directions_.size()) >= z.size()) directions_.clear();
}

// v. One direction after the other (modified Gram–Schmidt), which rounds less than all at once.
Eigen::VectorXd CmaFrame::Rest(const Eigen::VectorXd& z) const {
  Eigen::VectorXd rest = z;
  for (const Eigen::VectorXd& direction : directions_) rest -= direction * direction.dot(rest);
  return rest;
}

}  // namespace shirabe::suggestion
