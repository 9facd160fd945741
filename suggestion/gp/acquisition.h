// What a point promises, as the logarithm of a utility, so that it can be compared and climbed even
// where the utility itself is 1e-300. Immutable, any thread; the posteriors must outlive it.
//
//   m     scenarios: what the trials that are still running may give    f*   incumbent, one each
//   μ, v  mean (one a scenario) and variance (the same in all) of y at a point
//   σ     √v                          z    (μ - f*) / σ
//
// Of one objective (ObjectiveAcquisition):
//   kLogEi   log ((1/m) Σ σ h(z))     h and its logarithm: suggestion/gp/normal_distribution.h
//   kLogPi   log ((1/m) Σ Φ(z))
//   kUcb     (1/m) Σ μ + 1.96 σ
//
// Of several, whose processes are independent (HypervolumeAcquisition): the expected improvement of
// the hypervolume, exactly. What is not dominated yet is a union of disjoint boxes [l, u], and
//   log ((1/m) Σ_scenarios Σ_boxes Π_j (E_j(l_j) - E_j(u_j))),  E_j(t) = E (y_j - t)₊ = σ_j h(z)
// (K. Yang et al., "Multi-objective Bayesian global optimization using expected hypervolume
// improvement gradient", 2019).
//
// Each chance of success adds log Φ(μ_c / √(v_c + σ_c²)), the probability that what its process
// knows is positive: of labels (1 = gave a result, -1 = did not), or of the margin of a constraint.
// That makes it constrained EI (J. Gardner et al., "Bayesian optimization with inequality
// constraints", 2014).
// Scenarios: J. Wilson et al., "Maximizing acquisition functions for Bayesian optimization" (2018).
#pragma once

#include <Eigen/Dense>
#include <utility>
#include <vector>

#include "suggestion/gp/gaussian_process.h"

namespace shirabe::suggestion::gp {

// What must be positive for a result to count.
struct Chance {
  const Posterior* posterior;
  double noise = 0;  // variance of what is observed, beside that of the function
};

// All chances of a point, together. Immutable, any thread.
class Chances {
 public:
  explicit Chances(std::vector<Chance> all) : all_(std::move(all)) {}
  // Adds their logarithms to values, one a point, and, unless null, their gradients.
  void AddTo(const Inputs& points, Eigen::VectorXd& values, Eigen::MatrixXd* gradient) const;
  // That all succeed, at each point.
  Eigen::VectorXd Probability(const Inputs& points) const;

 private:
  std::vector<Chance> all_;
};

class Acquisition {
 public:
  virtual ~Acquisition() = default;
  // One value a point, of many: in blocks that stay in the processor's cache, or, where another
  // engine scores, all at once.
  Eigen::VectorXd EvaluateAll(const Inputs& points) const;
  // One value a point; with `gradient`, also by the numeric coordinates, points × p.
  Eigen::VectorXd Evaluate(const Inputs& points, Eigen::MatrixXd* gradient = nullptr) const {
    return Compute(points, gradient);
  }
  // ℓ of the numeric coordinates, in which the function is about equally steep.
  virtual Eigen::ArrayXd Lengths() const = 0;
  // Points that the processes have learned from.
  virtual Eigen::Index size() const = 0;
  // By another engine than the processor (suggestion/gp/engine.h).
  virtual bool ScoredElsewhere() const = 0;

 private:
  virtual Eigen::VectorXd Compute(const Inputs& points, Eigen::MatrixXd* gradient) const = 0;
};

enum class Utility { kLogEi, kLogPi, kUcb };

class ObjectiveAcquisition : public Acquisition {
 public:
  // `incumbents`: one a scenario of `objective`.
  ObjectiveAcquisition(Utility utility, const Posterior& objective, Eigen::RowVectorXd incumbents,
                       std::vector<Chance> chances);

  Eigen::ArrayXd Lengths() const override;
  Eigen::Index size() const override { return objective_.size(); }
  bool ScoredElsewhere() const override { return objective_.has_scorer(); }

 private:
  struct Derivatives {
    Eigen::MatrixXd mean;      // points × m
    Eigen::VectorXd variance;  // points
  };
  // Of one scenario, with its derivatives by μ and σ.
  struct Score {
    double value, by_mean, by_sigma;
  };
  Eigen::VectorXd Compute(const Inputs& points, Eigen::MatrixXd* gradient) const override;
  Score ScoreOf(double mean, double sigma, double incumbent) const;
  Eigen::VectorXd Combine(const Posterior::Prediction& prediction, Derivatives* derivatives) const;

  Utility utility_;
  const Posterior& objective_;
  Eigen::RowVectorXd incumbents_;
  Chances chances_;
};

// Larger is better in each coordinate; upper may be ∞.
struct ScoreBox {
  std::vector<double> lower, upper;
};

class HypervolumeAcquisition : public Acquisition {
 public:
  // `objectives`: with as many scenarios each. `boxes`: what is not dominated in each scenario,
  // disjoint, in the units of y. Without any box only the chances count.
  HypervolumeAcquisition(std::vector<const Posterior*> objectives,
                         const std::vector<std::vector<ScoreBox>>& boxes,
                         std::vector<Chance> chances);

  Eigen::ArrayXd Lengths() const override;
  Eigen::Index size() const override { return objectives_[0]->size(); }
  bool ScoredElsewhere() const override;

 private:
  // Boxes share their sides: E is computed once for each.
  struct Scenario {
    std::vector<double> edges;  // of the first objective, then of the next, …
    std::vector<int> ends;      // by objective: behind its last edge
    // Places among the edges, of each box and objective the lower side, then the upper one, which
    // is edges.size() for ∞.
    std::vector<int> sides;
  };
  // Of one point in one scenario; derivatives by objective.
  struct Score {
    double value;
    std::vector<double> by_mean, by_sigma;
  };
  struct Scratch;
  Eigen::VectorXd Compute(const Inputs& points, Eigen::MatrixXd* gradient) const override;
  // With `score`'s derivatives unless they are empty.
  void ScoreOf(const Scenario& scenario, Scratch& scratch, Score& score) const;
  // The same by logarithms, where the improvement is too small a number.
  void LogScoreOf(const Scenario& scenario, const Scratch& scratch, Score& score) const;

  std::vector<const Posterior*> objectives_;
  std::vector<Scenario> scenarios_;
  Chances chances_;
};

}  // namespace shirabe::suggestion::gp
