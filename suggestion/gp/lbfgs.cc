#include "suggestion/gp/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace shirabe::suggestion::gp {

namespace {

using Eigen::VectorXd;

constexpr size_t kMemory = 10;      // pairs kept
constexpr int kMaxBacktracks = 20;  // within one line search
constexpr double kArmijo = 1e-4;    // share of the predicted decrease that is enough
constexpr double kCurvature = 1e-10;

}  // namespace

Lbfgs::Lbfgs(const VectorXd& start, Box box, const Options& options)
    : box_(std::move(box)), options_(options), x_(box_.Clamp(start)), trial_(x_) {}

void Lbfgs::Tell(double f, const VectorXd& gradient) {
  if (!started_) {
    started_ = true;
    x_ = trial_;
    f_ = f;
    g_ = gradient;
    if (!std::isfinite(f) || !gradient.allFinite()) done_ = true;
    if (!done_) Propose();
    return;
  }
  const double predicted = g_.dot(trial_ - x_);
  if (std::isfinite(f) && gradient.allFinite() && f <= f_ + kArmijo * predicted) {
    return Accept(f, gradient);
  }
  if (++backtracks_ >= kMaxBacktracks) {
    done_ = true;
    return;
  }
  // The minimum of the parabola through f, its slope and the value found, kept away from both ends.
  double factor = 0.1;
  const double rise = f - f_ - predicted;
  if (std::isfinite(f) && rise > 0) factor = std::clamp(-0.5 * predicted / rise, 0.1, 0.5);
  step_ *= factor;
  trial_ = box_.Clamp(x_ + step_ * direction_);
}

void Lbfgs::Accept(double f, const VectorXd& gradient) {
  Pair pair{trial_ - x_, gradient - g_, 0};
  const double decrease = f_ - f;
  const double sy = pair.s.dot(pair.y);
  x_ = trial_;
  f_ = f;
  g_ = gradient;
  if (sy > kCurvature * pair.s.norm() * pair.y.norm()) {
    pair.rho = 1 / sy;
    pairs_.push_back(std::move(pair));
    if (pairs_.size() > kMemory) pairs_.pop_front();
  }
  ++iterations_;
  const bool stalled = decrease < options_.decrease_tolerance * std::max(1.0, std::abs(f_));
  if (stalled || iterations_ >= options_.max_iterations) {
    done_ = true;
    return;
  }
  Propose();
}

bool Lbfgs::AtBound(int i) const {
  return (x_[i] <= box_.lower[i] && g_[i] > 0) || (x_[i] >= box_.upper[i] && g_[i] < 0);
}

// -H·g over the coordinates that are free.
VectorXd Lbfgs::Direction() {
  VectorXd q = g_;
  const auto hold = [&] {
    for (int i = 0; i < q.size(); ++i) {
      if (AtBound(i)) q[i] = 0;
    }
  };
  hold();
  const VectorXd steepest = -q;
  std::vector<double> a(pairs_.size());
  for (size_t k = pairs_.size(); k-- > 0;) {
    a[k] = pairs_[k].rho * pairs_[k].s.dot(q);
    q -= a[k] * pairs_[k].y;
  }
  if (pairs_.empty()) {
    q *= std::min(1.0, 1 / (g_.norm() + 1e-12));
  } else {
    q *= pairs_.back().s.dot(pairs_.back().y) / pairs_.back().y.squaredNorm();
  }
  for (size_t k = 0; k < pairs_.size(); ++k) {
    q += (a[k] - pairs_[k].rho * pairs_[k].y.dot(q)) * pairs_[k].s;
  }
  hold();
  if (q.dot(g_) > 0) return -q;
  pairs_.clear();
  return steepest;
}

void Lbfgs::Propose() {
  const VectorXd projected = x_ - box_.Clamp(x_ - g_);
  if (projected.size() == 0 || projected.cwiseAbs().maxCoeff() < options_.gradient_tolerance) {
    done_ = true;
    return;
  }
  direction_ = Direction();
  step_ = 1;
  backtracks_ = 0;
  trial_ = box_.Clamp(x_ + direction_);
}

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
