#include "suggestion/cma_categories.h"

#include <algorithm>
#include <cmath>

namespace shirabe::suggestion {
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
