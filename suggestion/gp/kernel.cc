#include "suggestion/gp/kernel.h"

#include <algorithm>
#include <cmath>

#include "suggestion/gp/decay.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Columns that are computed together: a multiple of what any processor does at once, so that bits
// do not depend on where a block begins.
constexpr Index kTogether = 48;
// x / ℓ about the centre of the cube, which keeps what cancels in SquaredDistances small.
MatrixXd Scaled(const Theta& theta, const Inputs& a) {
  const VectorXd inverse = (-theta.values.head(a.numeric())).array().exp();
  return (a.x.array() - 0.5).matrix() * inverse.asDiagonal();
}

// r² by |z|² + |z'|² - 2 zᵀz', one matrix product.
MatrixXd SquaredDistances(const MatrixXd& a, const MatrixXd& b) {
  const VectorXd a2 = a.rowwise().squaredNorm(), b2 = b.rowwise().squaredNorm();
  MatrixXd r2 = -2.0 * a * b.transpose();
  for (Index j = 0; j < r2.cols(); ++j) {
    r2.col(j) = (r2.col(j) + a2).array().max(-b2[j]) + b2[j];
  }
  return r2;
}

// Which entries of a matrix are wanted.
enum class Part { kAll, kLower };

// k_x in place of r², and ∂k_x/∂r² = -5/6 (1 + √5 r) exp(-√5 r).
void Matern(MatrixXd& r2, MatrixXd* slope, Part part) {
  if (slope != nullptr) slope->resize(r2.rows(), r2.cols());
  ArrayXd roots(r2.rows()), decays(r2.rows());
  for (Index j = 0; j < r2.cols(); ++j) {
    const Index count = part == Part::kLower ? r2.rows() - j : r2.rows();
    auto column = r2.col(j).tail(count).array();
    auto root = roots.head(count), decay = decays.head(count);
    root = (5.0 * column).sqrt().min(kFarthestDecay);
    for (Index i = 0; i < count; ++i) decays[i] = Decay(roots[i]);
    if (slope != nullptr) slope->col(j).tail(count) = -5.0 / 6 * (1 + root) * decay;
    column = ((root * (1.0 / 3) + 1) * root + 1) * decay;
  }
}

// Of a symmetric matrix of which only the lower half counts.
double SumOfProducts(const MatrixXd& a, const MatrixXd& b) {
  double below = 0;
  for (Index j = 0; j + 1 < a.cols(); ++j) {
    const Index count = a.rows() - j - 1;
    below += a.col(j).tail(count).dot(b.col(j).tail(count));
  }
  return 2 * below + a.diagonal().dot(b.diagonal());
}

// Σ a_ij b_ij of the lower halves over the pairs that differ in a coordinate, by coordinate.
VectorXd SumsWhereDifferent(const MatrixXd& u, const MatrixXd& a, const MatrixXd& b) {
  VectorXd sums = VectorXd::Zero(u.cols());
  ArrayXd products(u.rows()), different(u.rows());
  for (Index j = 0; j + 1 < u.rows(); ++j) {
    const Index count = u.rows() - j - 1;
    products.head(count) = a.col(j).tail(count).array() * b.col(j).tail(count).array();
    for (Index c = 0; c < u.cols(); ++c) {
      const double* const below = u.col(c).data() + j + 1;
      const double category = u(j, c);
      for (Index i = 0; i < count; ++i) different[i] = below[i] != category ? products[i] : 0;
      sums[c] += different.head(count).sum();
    }
  }
  return sums;
}

// k_u = exp(-h) as a product over the coordinates that differ, column by column, which then stays
// in the processor's nearest cache. Above the diagonal 0 where only what is below it counts.
MatrixXd Hamming(const Theta& theta, const Inputs& a, const Inputs& b, Part part = Part::kAll) {
  const ArrayXd weights = (-theta.values.segment(b.numeric(), a.categorical()).array()).exp();
  const ArrayXd factors = (-weights.min(kFarthestDecay)).exp();
  const ArrayXd ones = ArrayXd::Ones(a.categorical());  // a constant would become a branch
  const double farthest = Decay(kFarthestDecay);
  MatrixXd k = MatrixXd::Zero(a.rows(), b.rows());
  for (Index j = 0; j < k.cols(); ++j) {
    const Index first = part == Part::kLower ? j : 0, count = k.rows() - first;
    double* const column = k.col(j).data() + first;
    std::fill_n(column, count, 1.0);
    for (int c = 0; c < a.categorical(); ++c) {
      const double factor = factors[c], one = ones[c], category = b.u(j, c);
      const double* const u = a.u.col(c).data() + first;
      for (Index i = 0; i < count; ++i) column[i] *= u[i] != category ? factor : one;
    }
    for (Index i = 0; i < count; ++i) column[i] = std::max(column[i], farthest);
  }
  return k;
}

// How k depends on its parts: k = constant parts of k_x and k_u by `sum`, both by `product`.
struct Mix {
  double sum, product;
};

Mix MixOf(const Theta& theta) {
  const double w = theta.mix(), scale = theta.scale();
  return {0.5 * (1 - w) * scale, w * scale};
}

}  // namespace

Covariance Covary(const Theta& theta, const Inputs& a, const Inputs& b, Slopes slopes) {
  Covariance result;
  if (a.numeric() == 0) {
    result.k = theta.scale() * Hamming(theta, a, b);
    if (slopes == Slopes::kYes) result.slope = MatrixXd::Zero(a.rows(), b.rows());
    return result;
  }
  result.k = SquaredDistances(Scaled(theta, a), Scaled(theta, b));
  Matern(result.k, slopes == Slopes::kYes ? &result.slope : nullptr, Part::kAll);
  if (a.categorical() == 0) {
    result.k *= theta.scale();
    result.slope *= theta.scale();
    return result;
  }
  const Mix mix = MixOf(theta);
  const MatrixXd k_u = Hamming(theta, a, b);
  if (slopes == Slopes::kYes) result.slope.array() *= mix.sum + mix.product * k_u.array();
  result.k = mix.sum * (result.k + k_u) + mix.product * result.k.cwiseProduct(k_u);
  return result;
}

MatrixXd LowerCovariance(const Theta& theta, const Inputs& a) {
  if (a.categorical() > 0) return Covary(theta, a, a, Slopes::kNo).k;
  const MatrixXd z = Scaled(theta, a);
  const Index n = z.rows();
  const double scale = theta.scale();
  MatrixXd k(n, n), r2;
  for (Index j = 0, width = 0; j < n; j += width) {
    const Index rest = n - j;
    width = rest < 2 * kTogether ? rest : kTogether;  // small products are made another way
    r2 = SquaredDistances(z.bottomRows(rest), z.middleRows(j, width));
    Matern(r2, nullptr, Part::kAll);
    k.block(j, j, rest, width) = scale * r2;
  }
  return k;
}

Covariances::Covariances(const Theta& theta, const Inputs& a)
    : theta_(theta), rows_(a.rows()), inputs_{MatrixXd(a.rows(), 0), a.u} {
  const Index p = a.numeric();
  if (p == 0) return;
  const MatrixXd z = Scaled(theta, a);
  z_.resize(rows_, p + 2);
  z_ << -2 * z, z.rowwise().squaredNorm(), VectorXd::Ones(rows_);
}

void Covariances::With(const Inputs& b, MatrixXd& k) const {
  const double scale = theta_.scale();
  if (b.numeric() == 0) {
    k = scale * Hamming(theta_, inputs_, b);
    return;
  }
  const MatrixXd z = Scaled(theta_, b);
  MatrixXd other(z.rows(), z.cols() + 2);
  other << z, VectorXd::Ones(z.rows()), z.rowwise().squaredNorm();
  k.noalias() = z_ * other.transpose();
  const bool categorical = b.categorical() > 0;
  const double times = categorical ? 1 : scale;
  ArrayXd root(rows_), decay(rows_);
  for (Index j = 0; j < k.cols(); ++j) {
    root = (5.0 * k.col(j).array()).max(0).sqrt().min(kFarthestDecay);
    for (Index i = 0; i < rows_; ++i) decay[i] = Decay(root[i]);
    k.col(j) = times * ((root * (1.0 / 3) + 1) * root + 1) * decay;
  }
  if (!categorical) return;
  const Mix mix = MixOf(theta_);
  const MatrixXd k_u = Hamming(theta_, inputs_, b);
  k = mix.sum * (k + k_u) + mix.product * k.cwiseProduct(k_u);
}

Gram::Gram(const Theta& theta, const Inputs& a) : theta_(theta), inputs_(a) {
  const bool numeric = a.numeric() > 0, categorical = a.categorical() > 0;
  const double scale = theta.scale();
  if (categorical) k_u_ = Hamming(theta, a, a, Part::kLower);
  if (!numeric) {
    k_ = k_u_slope_ = scale * k_u_;
    return;
  }
  z_ = Scaled(theta, a);
  k_ = SquaredDistances(z_, z_);
  Matern(k_, &slope_, Part::kLower);
  if (!categorical) {
    k_ *= scale;
    slope_ *= scale;
    return;
  }
  const Mix mix = MixOf(theta);
  const double w = theta.mix();
  slope_.array() *= mix.sum + mix.product * k_u_.array();
  k_u_slope_ = (mix.sum + mix.product * k_.array()) * k_u_.array();
  mix_slope_ = scale * w * (1 - w) * (k_.cwiseProduct(k_u_) - 0.5 * (k_ + k_u_));
  k_ = mix.sum * (k_ + k_u_) + mix.product * k_.cwiseProduct(k_u_);
}

VectorXd Gram::Pullback(const MatrixXd& weights) const {
  const int p = inputs_.numeric(), c = inputs_.categorical();
  VectorXd gradient = VectorXd::Zero(Theta::Size(p, c));
  if (p > 0) {
    // Σ_ij q_ij (z_i - z_j)² = 2 (Σ_i z_i² Σ_j q_ij - zᵀ q z), and ∂r²/∂log ℓ = -2 (z_i - z_j)².
    const MatrixXd q = weights.cwiseProduct(slope_);
    const auto symmetric = q.selfadjointView<Eigen::Lower>();
    const VectorXd sums = symmetric * VectorXd::Ones(q.rows());
    const MatrixXd qz = symmetric * z_;
    for (int j = 0; j < p; ++j) {
      gradient[j] = -2 * (sums.dot(z_.col(j).cwiseAbs2()) - z_.col(j).dot(qz.col(j)));
    }
  }
  // ∂k_u/∂log ℓ_j = k_u [u_j ≠ u'_j] / ℓ_j.
  if (c > 0) {
    const ArrayXd inverse = (-theta_.values.segment(p, c).array()).exp();
    gradient.segment(p, c) = SumsWhereDifferent(inputs_.u, weights, k_u_slope_).array() * inverse;
  }
  gradient[p + c] = 0.5 * SumOfProducts(weights, k_);
  if (p > 0 && c > 0) gradient[p + c + 2] = 0.5 * SumOfProducts(weights, mix_slope_);
  return gradient;
}

}  // namespace shirabe::suggestion::gp
