#include "suggestion/gp/trust_region.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <vector>

namespace shirabe::suggestion::gp {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::VectorXd;

constexpr double kFirst = 0.8, kMaxLength = 1.6, kMinLength = 0.0078125;  // 2^-7
constexpr int kSuccesses = 3;                                             // in a row, to grow
constexpr int kMinFailures = 4;                                           // in a row, to shrink
// A success is better by this share of the distance between the best and the median so far.
constexpr double kWorthwhile = 1e-3;

// The largest and the (upper) median of a growing list, each value in O(log n).
class Order {
 public:
  void Add(double value) {
    best_ = empty() ? value : std::max(best_, value);
    upper_.push(value);
    lower_.push(upper_.top());
    upper_.pop();
    if (lower_.size() <= upper_.size()) return;
    upper_.push(lower_.top());
    lower_.pop();
  }
  bool empty() const { return upper_.empty(); }
  double best() const { return best_; }
  double median() const { return upper_.top(); }

 private:
  double best_ = 0;
  std::priority_queue<double> lower_;  // the smaller half
  std::priority_queue<double, std::vector<double>, std::greater<>> upper_;
};

}  // namespace

double TrustRegionSide(const VectorXd& scores, int dimensions, Index initial) {
  const int patience = std::max(kMinFailures, dimensions);
  double side = kFirst;
  int successes = 0, failures = 0;
  Order seen;
  for (Index i = 0; i < scores.size(); ++i) {
    if (i >= initial && i > 0) {
      const double best = seen.best(), spread = best - seen.median();
      const bool better = scores[i] > best + (std::isfinite(spread) ? kWorthwhile * spread : 0);
      successes = better ? successes + 1 : 0;
      failures = better ? 0 : failures + 1;
    }
    seen.Add(scores[i]);
    if (successes >= kSuccesses) {
      side = std::min(kMaxLength, 2 * side);
      successes = 0;
    }
    if (failures >= patience) {
      side /= 2;
      failures = 0;
      if (side < kMinLength) side = kFirst;
    }
  }
  return side;
}

Box TrustRegion(double side, const VectorXd& centre, const ArrayXd& lengths) {
  constexpr double kLongest = 10, kMinHalf = 1e-6;
  ArrayXd shape = lengths / lengths.mean();
  shape /= std::exp(shape.log().mean());
  const ArrayXd half = (0.5 * side * shape.min(kLongest)).max(kMinHalf);
  return {(centre.array() - half).max(0), (centre.array() + half).min(1)};
}

}  // namespace shirabe::suggestion::gp
