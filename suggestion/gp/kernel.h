// The covariance of two points: Matérn-5/2 with one length a numeric coordinate, an exponential of
// the weighted Hamming distance for the categorical ones, and, where there are both, a mix of their
// product and their sum. Values are plain data; every function is pure; any thread.
//
//   n, m   numbers of points                 d     coordinates: p numeric, then c categorical
//   x      numeric coordinates   n × p, in [0, 1], at the values that will be tried (rounded)
//   u      categories            n × c
//   ℓ      lengths, one a coordinate, > 0; of a categorical one: the Hamming distance that
//          costs a factor e
//   s²     variance of the function          σ²    variance of the noise
//   w      in (0, 1): 1 = product of the parts, 0 = their mean
//   r²     Σ_j (x_j - x'_j)² / ℓ_j²          h     Σ_j [u_j ≠ u'_j] / ℓ_j
//
//   k_x = (1 + √5 r + 5/3 r²) exp(-√5 r)     k_u = exp(-h)
//   k   = s² ((1 - w) (k_x + k_u) / 2 + w k_x k_u),  s² k_x or s² k_u where there is one part only
//
// Matérn and ARD: Rasmussen & Williams, "Gaussian processes for machine learning" (2006), (4.17),
// (5.1). Product and sum: B. Ru et al., "Bayesian optimisation over multiple continuous and
// categorical inputs", ICML 2020, (3).
#pragma once

#include <Eigen/Dense>
#include <vector>

namespace shirabe::suggestion::gp {

// Points, one a row. Categories are whole numbers.
struct Inputs {
  Eigen::MatrixXd x;  // n × p
  Eigen::MatrixXd u;  // n × c

  Eigen::Index rows() const { return std::max(x.rows(), u.rows()); }
  int numeric() const { return static_cast<int>(x.cols()); }
  int categorical() const { return static_cast<int>(u.cols()); }
  Inputs Rows(Eigen::Index begin, Eigen::Index count) const {
    return {x.middleRows(begin, count), u.middleRows(begin, count)};
  }
  Inputs Row(Eigen::Index i) const { return Rows(i, 1); }
};

// θ: the logarithms of ℓ (numeric, then categorical), of s² and of σ², and the logit of w.
struct Theta {
  Eigen::VectorXd values;

  static int Size(int numeric, int categorical) { return numeric + categorical + 3; }
  double lengths_at(int j) const { return values[j]; }
  double log_scale() const { return values[values.size() - 3]; }
  double log_noise() const { return values[values.size() - 2]; }
  double scale() const { return std::exp(log_scale()); }
  double noise() const { return std::exp(log_noise()); }
  double mix() const { return 1 / (1 + std::exp(-values[values.size() - 1])); }
  // ℓ of the numeric coordinates.
  Eigen::ArrayXd Lengths(int numeric) const { return values.head(numeric).array().exp(); }
};

// k between every row of `a` and every row of `b`, without noise, with what derivatives need.
struct Covariance {
  Eigen::MatrixXd k;      // n × m
  Eigen::MatrixXd slope;  // n × m: ∂k/∂r²; empty unless asked for
};
enum class Slopes { kNo, kYes };
Covariance Covary(const Theta& theta, const Inputs& a, const Inputs& b, Slopes slopes);
// The lower half of Covary's k of `a` with itself, bit by bit; what stands above it is not k.
Eigen::MatrixXd LowerCovariance(const Theta& theta, const Inputs& a);

// k between the same rows and thousands of others, a batch at a time, as Covary gives it up to
// rounding, without what each batch would compute again.
class Covariances {
 public:
  Covariances(const Theta& theta, const Inputs& a);
  Eigen::Index rows() const { return rows_; }
  // n × rows of `b`; the memory of `k` is used again.
  void With(const Inputs& b, Eigen::MatrixXd& k) const;

 private:
  Theta theta_;
  Eigen::Index rows_;
  Inputs inputs_;      // x is not kept
  Eigen::MatrixXd z_;  // -2 x / ℓ, |x / ℓ|², 1: times x' / ℓ, 1, |x' / ℓ|² it is r²
};

// k of the rows of `a` among themselves, with ½ Σ_ij weights_ij ∂k_ij/∂θ_t for all θ but the noise
// (whose place is 0). Of symmetric matrices only the lower half is computed and read.
class Gram {
 public:
  Gram(const Theta& theta, const Inputs& a);
  const Eigen::MatrixXd& k() const { return k_; }
  // `weights`: n × n.
  Eigen::VectorXd Pullback(const Eigen::MatrixXd& weights) const;

 private:
  const Theta& theta_;
  const Inputs& inputs_;
  Eigen::MatrixXd z_;                // x / ℓ
  Eigen::MatrixXd k_, slope_;        // as in Covariance
  Eigen::MatrixXd k_u_, k_u_slope_;  // k_u and ∂k/∂k_u · k_u; empty without categories
  Eigen::MatrixXd mix_slope_;        // ∂k/∂(logit w); empty unless both parts are there
};

}  // namespace shirabe::suggestion::gp
