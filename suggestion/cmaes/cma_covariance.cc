#include "suggestion/cmaes/cma_covariance.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <bit>
#include <cmath>

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

namespace {

constexpr int kBytes = 8;

}  // namespace

void CmaRecord::Word(uint64_t& value) {
  if (!reads_) {
    for (int i = 0; i < kBytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i)));
    return;
  }
  if (!ok_ || text_.size() - next_ < kBytes) {
    ok_ = false;
    return;
  }
  value = 0;
  for (int i = 0; i < kBytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(text_[next_ + i])) << (8 * i);
  }
  next_ += kBytes;
}

void CmaRecord::Number(double& value) {
  auto word = std::bit_cast<uint64_t>(value);
  Word(word);
  if (!reads_ || !ok_) return;
  value = std::bit_cast<double>(word);
  ok_ = std::isfinite(value);
}

void CmaRecord::Integer(int64_t& value) {
  constexpr double kMaxExactInteger = 0x1p53;
  auto number = static_cast<double>(value);
  Number(number);
  if (!reads_ || !ok_) return;
  ok_ = number == std::floor(number) && std::abs(number) <= kMaxExactInteger;
  if (ok_) value = static_cast<int64_t>(number);
}

void CmaRecord::Vector(Eigen::VectorXd& values) {
  for (double& value : values) Number(value);
}

void CmaRecord::Matrix(Eigen::MatrixXd& values) {
  const bool symmetric = values.rows() == values.cols();
  for (Eigen::Index column = 0; column < values.cols(); ++column) {
    for (Eigen::Index row = symmetric ? column : 0; row < values.rows(); ++row) {
      Number(values(row, column));
      if (symmetric) values(column, row) = values(row, column);
    }
  }
}

void CmaRecord::List(std::vector<double>& values, int64_t most) {
  auto size = static_cast<int64_t>(values.size());
  Integer(size);
  if (!ok_ || size < 0 || size > most) {
    ok_ = false;
    return;
  }
  values.resize(size);
  for (double& value : values) Number(value);
}

namespace {

// A rest shorter than this part of a vector is rounding.
constexpr double kRounding = 1e-6;

}  // namespace

Eigen::VectorXd OrthogonalSampler::Turned(const Eigen::VectorXd& z) const {
  const Eigen::VectorXd rest = Rest(z);
  const double length = rest.norm();
  return length > kRounding * z.norm() ? Eigen::VectorXd(rest * (z.norm() / length)) : z;
}

void OrthogonalSampler::Add(const Eigen::VectorXd& z) {
  const Eigen::VectorXd rest = Rest(z);
  const double length = rest.norm();
  if (length > kRounding * z.norm()) directions_.push_back(rest / length);
  if (static_cast<Eigen::Index>(directions_.size()) >= z.size()) directions_.clear();
}

// v. One direction after the other (modified Gram–Schmidt), which rounds less than all at once.
Eigen::VectorXd OrthogonalSampler::Rest(const Eigen::VectorXd& z) const {
  Eigen::VectorXd rest = z;
  for (const Eigen::VectorXd& direction : directions_) rest -= direction * direction.dot(rest);
  return rest;
}

namespace {

constexpr double kAlpha = 1.5;          // of the adaptation of Δ
constexpr double kAllLikeliest = 0.73;  // of the margin

Eigen::Index DegreesOfFreedom(const std::vector<int>& counts) {
  Eigen::Index sum = 0;
  for (int count : counts) sum += count - 1;
  return sum;
}

// The part of F^½ G that belongs to one parameter: its square root is that of the Fisher matrix of
// the first K − 1 probabilities.
Eigen::VectorXd InFisherMetric(const Eigen::VectorXd& q, const Eigen::VectorXd& gradient) {
  const Eigen::Index free = q.size() - 1;
  const Eigen::ArrayXd root = q.head(free).array().sqrt();
  const double last = q[free];
  const double sum = gradient.head(free).sum();
  return gradient.head(free).array() / root + root * (sum / (last + std::sqrt(last)));
}

}  // namespace

CmaCategories::CmaCategories(const std::vector<int>& counts)
    : s_(Eigen::VectorXd::Zero(DegreesOfFreedom(counts))) {
  for (int count : counts) q_.emplace_back(Eigen::VectorXd::Constant(count, 1.0 / count));
}

int CmaCategories::Draw(int k, double unit) const {
  const auto last = static_cast<int>(q_[k].size()) - 1;
  for (int category = 0; category < last; ++category) {
    if (unit < q_[k][category]) return category;
    unit -= q_[k][category];
  }
  return last;
}

void CmaCategories::Tell(const Eigen::MatrixXi& members, const Eigen::VectorXd& weights) {
  if (s_.size() == 0) return;
  std::vector<Eigen::VectorXd> gradient(size());
  Eigen::VectorXd direction(s_.size());
  Eigen::Index next = 0;
  for (int k = 0; k < size(); ++k) {
    gradient[k] = Frequencies(k, members, weights.cwiseMax(0)) - q_[k];
    const Eigen::Index free = q_[k].size() - 1;
    direction.segment(next, free) = InFisherMetric(q_[k], gradient[k]);
    next += free;
  }
  const double length = direction.norm();
  if (!(length > 1e-12)) return;  // the selected have the frequencies that were expected
  const double rate = std::min(1.0, 1 / (inverse_ * length));
  for (int k = 0; k < size(); ++k) {
    q_[k] += rate * gradient[k];
    KeepMargin(k);
  }
  AdaptTrust(direction / length);
}

// Σ w_i onehot(c_i), the weights adding up to 1.
Eigen::VectorXd CmaCategories::Frequencies(int k, const Eigen::MatrixXi& members,
                                           const Eigen::VectorXd& weights) const {
  Eigen::VectorXd frequencies = Eigen::VectorXd::Zero(q_[k].size());
  for (Eigen::Index i = 0; i < members.cols(); ++i) frequencies[members(k, i)] += weights[i];
  return frequencies / weights.sum();
}

// The trust region shrinks while successive directions contradict each other.
void CmaCategories::AdaptTrust(const Eigen::VectorXd& direction) {
  const double beta = 1 / (inverse_ * std::sqrt(static_cast<double>(s_.size())));
  s_ = (1 - beta) * s_ + std::sqrt(beta * (2 - beta)) * direction;
  gamma_ = (1 - beta) * (1 - beta) * gamma_ + beta * (2 - beta);
  inverse_ = std::max(1.0, inverse_ * std::exp(beta * (gamma_ - s_.squaredNorm() / kAlpha)));
}

// What the raised probabilities lack is taken from the others in proportion to what they have
// above the bound.
void CmaCategories::KeepMargin(int k) {
  const auto count = static_cast<double>(q_[k].size());
  if (count < 2) return;
  const double share = 1 - std::pow(kAllLikeliest, 1.0 / size());
  const double least = std::min(share / (count - 1), 1 / count);
  q_[k] = q_[k].cwiseMax(least);
  const double room = q_[k].sum() - least * count;
  const double wanted = 1 - least * count;
  q_[k] = room > 0 ? Eigen::VectorXd(least + (q_[k].array() - least) * (wanted / room))
                   : Eigen::VectorXd::Constant(q_[k].size(), 1 / count);
}

void CmaCategories::Begin(const Eigen::MatrixXi& members) {
  const Eigen::VectorXd equal = Eigen::VectorXd::Ones(members.cols());
  for (int k = 0; k < size() && members.cols() > 0; ++k) {
    q_[k] = (q_[k] + Frequencies(k, members, equal)) / 2;
    KeepMargin(k);
  }
}

void CmaCategories::Fields(CmaRecord& record) {
  for (Eigen::VectorXd& q : q_) {
    record.Vector(q);
    if (record.reads() && record.ok() && !(q.minCoeff() > 0)) record.Reject();
  }
  record.Vector(s_);
  record.Number(gamma_);
  record.Number(inverse_);
  if (record.reads() && record.ok() && !(inverse_ >= 1)) record.Reject();
}

}  // namespace shirabe::suggestion
