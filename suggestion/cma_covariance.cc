#include "suggestion/cma_covariance.h"

#include <Eigen/Eigenvalues>

namespace shirabe::suggestion {
namespace {

// Beyond it an eigenvalue is lost in the rounding of the greatest one; the usual bound of CMA-ES.
constexpr double kWorstCondition = 1e14;

}  // namespace

CmaCovariance::CmaCovariance(int dimensions, bool separable)
    : separable_(separable),
      values_(Eigen::MatrixXd::Identity(dimensions, separable ? 1 : dimensions)),
      axes_(separable ? Eigen::MatrixXd() : values_),
      roots_(Eigen::VectorXd::Ones(dimensions)) {
  if (separable) values_.setOnes();
}

Eigen::VectorXd CmaCovariance::Root(const Eigen::VectorXd& z) const {
  if (separable_) return roots_.cwiseProduct(z);
  return axes_ * roots_.cwiseProduct(axes_.transpose() * z);
}

Eigen::VectorXd CmaCovariance::InverseRoot(const Eigen::VectorXd& y) const {
  if (separable_) return y.cwiseQuotient(roots_);
  return axes_ * (axes_.transpose() * y).cwiseQuotient(roots_);
}

Eigen::MatrixXd CmaCovariance::Whitened(const Eigen::MatrixXd& delta) const {
  if (separable_) return delta.cwiseQuotient(values_);
  const Eigen::MatrixXd inverse = axes_ * roots_.cwiseInverse().asDiagonal() * axes_.transpose();
  return inverse * delta * inverse;
}

Eigen::MatrixXd CmaCovariance::Blend(double keep, const Eigen::MatrixXd& steps,
                                     const Eigen::VectorXd& weights) const {
  if (separable_) return keep * values_ + steps.cwiseAbs2() * weights;
  return keep * values_ + steps * weights.asDiagonal() * steps.transpose();
}

bool CmaCovariance::Set(const Eigen::MatrixXd& values) {
  if (!values.allFinite()) return false;
  CmaCovariance changed = *this;
  changed.values_ = separable_ ? values : Eigen::MatrixXd((values + values.transpose()) / 2);
  if (!changed.Decompose()) return false;
  *this = std::move(changed);
  return true;
}

bool CmaCovariance::Decompose() {
  Eigen::VectorXd eigenvalues;
  if (separable_) {
    eigenvalues = values_;
  } else {
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(values_);
    if (solver.info() != Eigen::Success) return false;
    eigenvalues = solver.eigenvalues();
    axes_ = solver.eigenvectors();
  }
  if (!(eigenvalues.minCoeff() > eigenvalues.maxCoeff() / kWorstCondition)) return false;
  roots_ = eigenvalues.cwiseSqrt();
  return true;
}

Eigen::VectorXd CmaCovariance::Variances() const {
  return separable_ ? Eigen::VectorXd(values_) : Eigen::VectorXd(values_.diagonal());
}

double CmaCovariance::Condition() const {
  const double ratio = roots_.maxCoeff() / roots_.minCoeff();
  return ratio * ratio;
}

double CmaCovariance::LogDeterminant() const { return 2 * roots_.array().log().sum(); }

void CmaCovariance::Fields(CmaRecord& record) {
  Eigen::MatrixXd values = values_;
  record.Matrix(values);
  if (record.reads() && record.ok() && !Set(values)) record.Reject();
}

}  // namespace shirabe::suggestion
