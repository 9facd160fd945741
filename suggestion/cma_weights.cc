#include "suggestion/cma_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shirabe::suggestion {
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
