#include "suggestion/cmaes/cma.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace shirabe::suggestion {
namespace {

// E‖N(0, I)‖ in d dimensions.
double Chi(double d) { return std::sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d)); }

// The greatest length of z that counts for a point that was not drawn: Hansen 2011, Table 1.
double LongestInjected(double d) { return std::sqrt(d) + 2 * d / (d + 2); }

}  // namespace

Cma::Cma(const CmaStart& start, Options options)
    : mean_(start.mean),
      sigma_(start.sigma),
      covariance_(dimensions(), options.separable),
      stretch_(Eigen::VectorXd::Ones(dimensions())),
      path_sigma_(Eigen::VectorXd::Zero(dimensions())),
      path_covariance_(path_sigma_) {
  if (start.covariance.size() > 0) {
    // What is not positive definite is no start: the identity stays.
    (void)covariance_.Set(options.separable && start.covariance.cols() > 1
                              ? Eigen::MatrixXd(start.covariance.diagonal())
                              : start.covariance);
  }
  if (options.adapt_rates) {
    const Eigen::MatrixXd& c = covariance_.values();
    rates_ = Rates{.mean = CmaRate(dimensions(), 1, 0.1),
                   .covariance = CmaRate(c.rows(), c.cols(), 0.03)};
  }
  LimitSigma();
}

Eigen::VectorXd Cma::At(const Eigen::VectorXd& z) const {
  return mean_ + sigma_ * stretch_.cwiseProduct(covariance_.Root(z));
}

Eigen::VectorXd Cma::Injected(const Eigen::VectorXd& x) const {
  const Eigen::VectorXd y = (x - mean_).cwiseQuotient(stretch_) / sigma_;
  const Eigen::VectorXd z = covariance_.InverseRoot(y);
  const double longest = LongestInjected(dimensions());
  return z * (longest / std::max(z.norm(), longest));
}

void Cma::Tell(const Eigen::MatrixXd& z, const Eigen::VectorXd& ranks) {
  const CmaWeights weights = MakeCmaWeights(ranks, dimensions(), covariance_.separable());
  if (!weights.informative) {
    sigma_ *= std::exp(0.2);
    return LimitSigma();
  }
  const Eigen::VectorXd z_mean = z * weights.w.cwiseMax(0);
  ++generations_;
  const bool follows = FollowPaths(weights, z_mean);
  const double growth = weights.c_sigma / weights.d_sigma *
                        (path_sigma_.norm() / Chi(dimensions()) - 1);  // equation 44
  Go({.mean = At(z_mean),
      .sigma = sigma_ * std::exp(std::min(1.0, growth)),
      .covariance = NextCovariance(weights, z, follows)},
     z_mean);
  LimitSigma();
}

// Equations 43 and 45; h_σ.
bool Cma::FollowPaths(const CmaWeights& weights, const Eigen::VectorXd& z_mean) {
  const double c = weights.c_sigma;
  path_sigma_ = (1 - c) * path_sigma_ + std::sqrt(c * (2 - c) * weights.mu_eff) * z_mean;
  const double cc = weights.c_c;
  const bool follows = PathLength(weights) < 1.4 + 2.0 / (dimensions() + 1);
  path_covariance_ *= 1 - cc;
  if (follows) {
    path_covariance_ += std::sqrt(cc * (2 - cc) * weights.mu_eff) * covariance_.Root(z_mean);
  }
  return follows;
}

// ‖p_σ‖ in units of what it would be under random selection, at its age.
double Cma::PathLength(const CmaWeights& weights) const {
  const double age = 2.0 * static_cast<double>(generations_);
  const double young = std::sqrt(1 - std::pow(1 - weights.c_sigma, age));
  return path_sigma_.norm() / young / Chi(dimensions());
}

// Equation 47, for σ = 1.
Eigen::MatrixXd Cma::NextCovariance(const CmaWeights& weights, const Eigen::MatrixXd& z,
                                    bool follows) const {
  const auto n = z.cols();
  Eigen::MatrixXd steps(dimensions(), n + 1);
  Eigen::VectorXd factors(n + 1);
  for (Eigen::Index i = 0; i < n; ++i) {
    steps.col(i) = covariance_.Root(z.col(i));
    // Equation 46: as a negative weight counts only the direction of a step, not its length.
    const double length = weights.w[i] < 0 ? z.col(i).squaredNorm() / dimensions() : 1;
    factors[i] = weights.c_mu * weights.w[i] / std::max(length, 1e-12);
  }
  steps.col(n) = path_covariance_;
  factors[n] = weights.c_1;
  const double missing = follows ? 0 : weights.c_1 * weights.c_c * (2 - weights.c_c);
  const double keep = 1 - weights.c_1 - weights.c_mu * weights.w.sum() + missing;
  return covariance_.Blend(keep, steps, factors);
}

void Cma::Go(Target target, const Eigen::VectorXd& z_mean) {
  if (rates_) target = Slowed(target, z_mean);
  if (!target.mean.allFinite() || !covariance_.Set(target.covariance)) return StartOver();
  mean_ = std::move(target.mean);
  sigma_ = target.sigma;
}

// Doubles cannot carry this C any further; its shape is learnt from the start.
void Cma::StartOver() {
  broken_ = true;
  covariance_ = CmaCovariance(dimensions(), covariance_.separable());
  path_sigma_.setZero();
  path_covariance_.setZero();
}

// Nomura et al. 2023, Algorithm 2: only a part of the way to the target, in m and in Σ = σ²C.
Cma::Target Cma::Slowed(const Target& target, const Eigen::VectorXd& z_mean) {
  const double growth = target.sigma * target.sigma / (sigma_ * sigma_);
  const Eigen::MatrixXd step = growth * target.covariance - covariance_.values();
  const double before = rates_->mean.value();
  rates_->mean.Observe(z_mean);
  // √2: the length of Δ in the metric of the normal distributions.
  rates_->covariance.Observe(covariance_.Whitened(step) / std::sqrt(2.0));
  Target slowed{.mean = mean_ + rates_->mean.value() * (target.mean - mean_),
                .sigma = sigma_,
                .covariance = covariance_.values() + rates_->covariance.value() * step};
  CmaCovariance scale = covariance_;
  if (!scale.Set(slowed.covariance)) return target;
  const double root = std::exp(scale.LogDeterminant() / (2.0 * dimensions()));
  slowed.covariance /= root * root;
  // The best σ is inversely proportional to the rate of the mean.
  slowed.sigma = sigma_ * root * before / rates_->mean.value();
  return slowed;
}

void Cma::Place(int axis, double mean, double stretch) {
  mean_[axis] = mean;
  stretch_[axis] *= stretch;
}

Eigen::VectorXd Cma::Deviations() const {
  return sigma_ * stretch_.cwiseProduct(covariance_.Variances().cwiseSqrt());
}

// A deviation of the whole width of the cube covers it as evenly as a greater one, and below the
// distance of two doubles every draw is the same.
void Cma::LimitSigma() {
  constexpr double kNarrowest = 1e-15;
  const double widest = Deviations().maxCoeff();
  sigma_ *= std::clamp(widest, kNarrowest, 1.0) / widest;
}

void Cma::Fields(CmaRecord& record) {
  record.Vector(mean_);
  record.Number(sigma_);
  covariance_.Fields(record);
  record.Vector(stretch_);
  record.Vector(path_sigma_);
  record.Vector(path_covariance_);
  record.Integer(generations_);
  int64_t broken = broken_ ? 1 : 0;
  record.Integer(broken);
  broken_ = broken == 1;
  if (rates_) {
    rates_->mean.Fields(record);
    rates_->covariance.Fields(record);
  }
  if (record.reads() && record.ok() && !(sigma_ > 0 && stretch_.minCoeff() > 0)) record.Reject();
}

namespace {

constexpr double kRateAlpha = 1.4;
constexpr double kGamma = 0.1;

}  // namespace

void CmaRate::Observe(const Eigen::MatrixXd& step) {
  mean_ = (1 - beta_) * mean_ + beta_ * step;
  square_ = (1 - beta_) * square_ + beta_ * step.squaredNorm();
  const double signal = mean_.squaredNorm();
  // |E|² ≤ V by Jensen's inequality; equality, after the very first step only, is no noise at all.
  const double noise = std::max(square_ - signal, std::numeric_limits<double>::min());
  const double ratio = (signal - beta_ / (2 - beta_) * square_) / noise;
  const double excess = std::clamp(ratio / (kRateAlpha * rate_) - 1, -1.0, 1.0);
  rate_ = std::min(1.0, rate_ * std::exp(std::min(kGamma * rate_, beta_) * excess));
}

void CmaRate::Fields(CmaRecord& record) {
  record.Matrix(mean_);
  record.Number(square_);
  record.Number(rate_);
  if (record.reads() && record.ok() && !(rate_ > 0 && rate_ <= 1)) record.Reject();
}

namespace {

// (Σ w)² / Σ w², 0 for no weights.
double Effective(const Eigen::ArrayXd& w) {
  const double squares = w.square().sum();
  return squares > 0 ? w.sum() * w.sum() / squares : 0;
}

// Equations 55–58: c_σ and d_σ, c_c, c_1 and c_μ from μ_eff.
void SetRates(double d, bool separable, CmaWeights& weights) {
  const double mu = weights.mu_eff;
  weights.c_sigma = (mu + 2) / (d + mu + 5);
  weights.d_sigma = 1 + 2 * std::max(0.0, std::sqrt((mu - 1) / (d + 1)) - 1) + weights.c_sigma;
  weights.c_c = (4 + mu / d) / (d + 4 + 2 * mu / d);
  const double faster = separable ? (d + 2) / 3 : 1;
  weights.c_1 = std::min(0.5, faster * 2 / ((d + 1.3) * (d + 1.3) + mu));
  const double c_mu = faster * 2 * (0.25 + mu + 1 / mu - 2) / ((d + 2) * (d + 2) + mu);
  weights.c_mu = std::min(1 - weights.c_1, c_mu);
}

// Equations 50–53: how much all negative weights may add up to. The first bound makes the update
// of C neutral where there is no selection, the second follows μ_eff of the worse half, the third
// keeps C positive definite.
double NegativeSum(double d, double mu_eff_negative, const CmaWeights& weights) {
  const double neutral = 1 + weights.c_1 / weights.c_mu;
  const double effective = 1 + 2 * mu_eff_negative / (weights.mu_eff + 2);
  const double definite = (1 - weights.c_1 - weights.c_mu) / (d * weights.c_mu);
  return std::max(0.0, std::min({neutral, effective, definite}));
}

}  // namespace

CmaWeights MakeCmaWeights(const Eigen::VectorXd& ranks, int dimensions, bool separable) {
  CmaWeights weights;
  const auto n = static_cast<double>(ranks.size());
  const Eigen::ArrayXd raw = std::log((n + 1) / 2) - ranks.array().log();  // equation 49
  const Eigen::ArrayXd positive = raw.max(0);
  const Eigen::ArrayXd negative = raw.min(0);
  // The mean rank is (n + 1) / 2: some rank is better than it, or all are equal to it.
  weights.informative = positive.sum() > 1e-9;
  if (!weights.informative) return weights;
  weights.mu_eff = Effective(positive);
  SetRates(dimensions, separable, weights);
  weights.w = positive / positive.sum();
  if (weights.c_mu <= 0) return weights;
  const double sum = NegativeSum(dimensions, Effective(negative), weights);
  weights.w += (negative * (sum / -negative.sum())).matrix();
  return weights;
}

Eigen::VectorXd AverageRanks(const std::vector<double>& keys) {
  const auto n = static_cast<int>(keys.size());
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&keys](int a, int b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  Eigen::VectorXd ranks(n);
  for (int first = 0; first < n;) {
    int last = first;
    while (last + 1 < n && keys[order[last + 1]] == keys[order[first]]) ++last;
    for (int i = first; i <= last; ++i) ranks[order[i]] = 1 + (first + last) / 2.0;
    first = last + 1;
  }
  return ranks;
}

}  // namespace shirabe::suggestion
