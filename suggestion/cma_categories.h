// The categorical side of CMA-ES: independent probabilities of the categories, moved by the same
// ranking as the normal distribution. Used by suggestion/cma_search.h. A value type; it draws no
// random numbers of its own.
//
//   K_k      number of categories of parameter k           q_kc   probability of category c of it
//   ν        Σ_k (K_k − 1), degrees of freedom             w_i    weight of member i, Σ⁺ w_i = 1
//   G        Σ⁺ w_i (onehot(c_i) − q), natural gradient    ε      its rate, δ / ‖F^½ G‖, at most 1
//   F        Fisher information of q                       δ      trust region, 1 / Δ
//   s, γ     accumulated direction and its expected length; they adapt Δ
//
// R. Hamano, S. Saito, M. Nomura, K. Uchida, S. Shirakawa, "CatCMA: Stochastic Optimization for
// Mixed-Category Problems" (GECCO 2024); δ by Y. Akimoto et al., "Adaptive Stochastic Natural
// Gradient Method for One-Shot Neural Architecture Search" (ICML 2019), Algorithm 1 and appendix B.
// Differently from there ε is at most 1: that already makes q the frequencies among the selected.
// The margin: no q_kc falls below (1 − 0.73^(1/number of parameters)) / (K_k − 1), so that all
// parameters at once take their likeliest category with a probability of at most 0.73.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "suggestion/cma_record.h"

namespace shirabe::suggestion {

class CmaCategories {
 public:
  // One K per parameter, each at least 1. All categories are equally likely.
  explicit CmaCategories(const std::vector<int>& counts);

  int size() const { return static_cast<int>(q_.size()); }
  // The category of parameter `k` that a number in [0, 1) draws.
  int Draw(int k, double unit) const;
  double probability(int k, int category) const { return q_[k][category]; }
  // One generation: the categories of its members, a column each, and their weights.
  void Tell(const Eigen::MatrixXi& members, const Eigen::VectorXd& weights);
  // Half of every probability becomes the frequency among `members`: where a search begins.
  void Begin(const Eigen::MatrixXi& members);
  void Fields(CmaRecord& record);

 private:
  Eigen::VectorXd Frequencies(int k, const Eigen::MatrixXi& members,
                              const Eigen::VectorXd& weights) const;
  void AdaptTrust(const Eigen::VectorXd& direction);
  void KeepMargin(int k);

  std::vector<Eigen::VectorXd> q_;
  Eigen::VectorXd s_;   // ν
  double gamma_ = 0;    // γ
  double inverse_ = 1;  // Δ
};

}  // namespace shirabe::suggestion
