// A Gaussian process over what was observed: the prior of its parameters, their most probable
// values, and the posterior of the function. Larger y is better. Pure but for Posterior::Append;
// any thread, one call at a time per object.
//
//   n   observed points                     y   their values, standardised    n × m (m scenarios)
//   K   k(X, X) + σ²I         n × n         L   its Cholesky factor           n × n
//   β   mean of the process, (1ᵀK⁻¹y) / (1ᵀK⁻¹1) by generalised least squares
//   α   K⁻¹ (y - β)           n × m         p, c, θ, ℓ   as in suggestion/gp/kernel.h
//
//   log p(y, θ) = -½ (y-β)ᵀα - Σ log L_ii + log p(θ)           Rasmussen & Williams (2006), (2.30)
//   μ(x) = β + k(x,X) α         v(x) = k(x,x) - |L⁻¹ k(X,x)|²                         (2.25),
//   (2.26) left out, the i-th point is predicted as y_i - α_i / (K⁻¹)_ii (5.12)
//
// Lengths grow with √p a priori, because distances do: C. Hvarfner et al., "Vanilla Bayesian
// optimization performs great in high dimensions", ICML 2024.
#pragma once

#include <Eigen/Dense>
#include <memory>
#include <optional>
#include <utility>

#include "suggestion/gp/kernel.h"
#include "suggestion/gp/lbfgs.h"

namespace shirabe::suggestion::gp {

// Of θ: where it starts if nothing else is known, and the box it is kept in.
Theta DefaultTheta(int numeric, int categorical);
Box ThetaBox(int numeric, int categorical);

// -log p(θ) up to a constant, of p numeric and c categorical coordinates; adds its gradient.
double NegativeLogPrior(const Theta& theta, int p, int c, Eigen::VectorXd& gradient);

// -log p(y, θ) up to a constant, and its gradient; an infinite value where K cannot be factored.
double NegativeLogPosterior(const Theta& theta, const Inputs& inputs, const Eigen::VectorXd& y,
                            Eigen::VectorXd& gradient);

struct Fitted {
  Theta theta;
  double value;         // NegativeLogPosterior
  int evaluations = 0;  // of it: what the fit cost
};
// The search for the most probable θ near `start`: evaluate NegativeLogPosterior where it says.
Lbfgs BeginFit(const Inputs& inputs, const Theta& start);
Fitted Fit(const Inputs& inputs, const Eigen::VectorXd& y, const Theta& start);

class Posterior {
 public:
  // A K that cannot be factored gets a growing multiple of I added: 1e-10 of s² first, then ten
  // times more each time.
  Posterior(const Theta& theta, const Inputs& inputs);
  // With an L⁻¹ that was computed elsewhere.
  Posterior(const Theta& theta, const Inputs& inputs, Eigen::MatrixXd inverse);

  // Values of the points so far, in one scenario or several. β is that of the first, or as given.
  void SetTargets(const Eigen::MatrixXd& y) { SetTargets(y, std::nullopt); }
  void SetTargets(const Eigen::MatrixXd& y, std::optional<double> mean);
  // The same in `scenarios` scenarios, from one.
  void Split(Eigen::Index scenarios);
  // One more point; O(n²). `y`: its value in each scenario.
  void Append(const Inputs& point, const Eigen::RowVectorXd& y);

  struct Prediction {
    Eigen::MatrixXd mean;      // points × m
    Eigen::VectorXd variance;  // points, of the function without noise, > 0
    Covariance cross;          // with the observed points
    Eigen::MatrixXd solved;    // L⁻¹ k(X, x), n × points
    // By the numeric coordinates, only from a Scorer: ∂mean_k/∂x_j in column k p + j, ∂v/∂x_j.
    Eigen::MatrixXd mean_slopes, variance_slope;
  };
  Prediction Predict(const Inputs& points, Slopes slopes = Slopes::kNo) const;
  // Mean and variance, and what Pullback needs, by a scorer where there is one that has learned
  // from the same points: another engine's numbers, which differ in their last digits.
  Prediction Score(const Inputs& points, Slopes slopes = Slopes::kNo) const;
  // Its mean alone, which costs n a point and not n²; points × m.
  Eigen::MatrixXd Mean(const Inputs& points) const;
  // With respect to the numeric coordinates of each point, the gradient of Σ mean_bar · mean +
  // variance_bar · variance; points × p. The prediction must have slopes.
  Eigen::MatrixXd Pullback(const Inputs& points, const Prediction& prediction,
                           const Eigen::MatrixXd& mean_bar,
                           const Eigen::VectorXd& variance_bar) const;

  // The same of other values than the targets: β of one scenario, and K⁻¹ y of several.
  double MeanOf(const Eigen::VectorXd& y) const;
  Eigen::MatrixXd Solve(const Eigen::MatrixXd& y) const;

  // Each observed point as the others predict it, in the first scenario.
  Eigen::VectorXd LeaveOneOut() const;

  // Who scores in place of this processor, until a point is appended or scenarios begin.
  class Scorer {
   public:
    virtual ~Scorer() = default;
    // Mean and variance, with their slopes if wanted. False: it cannot any more.
    virtual bool Score(const Inputs& points, Slopes slopes, Prediction& prediction) const = 0;
  };
  void SetScorer(std::shared_ptr<const Scorer> scorer) {  // shared: by copies of the posterior
    scorer_ = std::move(scorer);
  }
  bool has_scorer() const { return scorer_ != nullptr; }

  const Theta& theta() const { return theta_; }
  const Inputs& inputs() const { return inputs_; }
  Eigen::Index size() const { return inverse_.rows(); }
  Eigen::Index scenarios() const { return alpha_.cols(); }
  const Eigen::MatrixXd& targets() const { return y_; }
  double mean() const { return mean_; }                        // β
  const Eigen::MatrixXd& inverse() const { return inverse_; }  // L⁻¹

 private:
  Theta theta_;
  Inputs inputs_;
  Eigen::MatrixXd inverse_;   // L⁻¹
  Eigen::MatrixXd whitened_;  // L⁻¹ (y - β)
  Eigen::MatrixXd alpha_;
  Eigen::MatrixXd y_;                     // n × m
  double mean_ = 0;                       // β
  std::shared_ptr<const Scorer> scorer_;  // shared: by copies; null = none
};

}  // namespace shirabe::suggestion::gp
