// What a point promises, as the logarithm of a utility, so that it can be compared and climbed even
// where the utility itself is 1e-300. Immutable, any thread; the posteriors must outlive it.
//
//   m     scenarios: what the trials that are still running may give    f*   incumbent, one each
//   μ, v  mean (one a scenario) and variance (the same in all) of y at a point
//   σ     √v                          z    (μ - f*) / σ
//
//   kLogEi   log ((1/m) Σ σ h(z))     h and its logarithm: suggestion/gp/normal_distribution.h
//   kLogPi   log ((1/m) Σ Φ(z))
//   kUcb     (1/m) Σ μ + 1.96 σ
//
// With a feasibility posterior (of labels 1 = gave a result, -1 = did not), plus
// log Φ(μ_c / √(v_c + σ_c²)): the probability that the point gives a result at all, which makes it
// constrained EI (J. Gardner et al., "Bayesian optimization with inequality constraints", 2014).
// Scenarios: J. Wilson et al., "Maximizing acquisition functions for Bayesian optimization" (2018).
#pragma once

#include <Eigen/Dense>

#include "suggestion/gp/gaussian_process.h"

namespace shirabe::suggestion::gp {

enum class Utility { kLogEi, kLogPi, kUcb };

class Acquisition {
 public:
  // `incumbents`: one a scenario of `objective`. `feasibility` may be null.
  Acquisition(Utility utility, const Posterior& objective, Eigen::RowVectorXd incumbents,
              const Posterior* feasibility);

  // One value a point, of many: in blocks that stay in the processor's cache.
  Eigen::VectorXd EvaluateAll(const Inputs& points) const;
  // One value a point; with `gradient`, also by the numeric coordinates, points × p.
  Eigen::VectorXd Evaluate(const Inputs& points, Eigen::MatrixXd* gradient = nullptr) const;

  // ℓ of the numeric coordinates, in which the function is about equally steep.
  Eigen::ArrayXd Lengths() const;
  // Points that the objective's process has learned from.
  Eigen::Index size() const { return objective_.size(); }
  // Probability of a result at each point; 1 without a feasibility posterior.
  Eigen::VectorXd Feasibility(const Inputs& points) const;

 private:
  struct Derivatives {
    Eigen::MatrixXd mean;      // points × m
    Eigen::VectorXd variance;  // points
  };
  // Of one scenario, with its derivatives by μ and σ.
  struct Score {
    double value, by_mean, by_sigma;
  };
  Score ScoreOf(double mean, double sigma, double incumbent) const;
  Eigen::VectorXd Combine(const Posterior::Prediction& prediction, Derivatives* derivatives) const;
  void AddFeasibility(const Inputs& points, Eigen::VectorXd& values,
                      Eigen::MatrixXd* gradient) const;

  Utility utility_;
  const Posterior& objective_;
  Eigen::RowVectorXd incumbents_;
  const Posterior* feasibility_;
};

}  // namespace shirabe::suggestion::gp
