#include "suggestion/cma_progress.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shirabe::suggestion {
namespace {

constexpr double kFlat = 1e-11;
constexpr double kNarrow = 1e-9;

// b - a ≥ 0 for finite numbers, without overflow to infinity.
double Distance(double a, double b) { return std::min(b - a, std::numeric_limits<double>::max()); }

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

CmaProgress::CmaProgress(int dimensions, int64_t population) {
  const auto slow = static_cast<int64_t>(
      std::ceil(30.0 * dimensions / static_cast<double>(std::max<int64_t>(1, population))));
  flat_after_ = 10 + slow;
  stagnant_after_ = 120 + slow;
}

void CmaProgress::Observe(std::vector<double> losses) {
  if (losses.empty()) return;
  const auto [least, greatest] = std::minmax_element(losses.begin(), losses.end());
  const double best = *least;
  latest_ = Distance(best, *greatest);
  range_ = std::max(range_, Distance(best, Median(losses)));
  if (static_cast<int64_t>(bests_.size()) == stagnant_after_) bests_.erase(bests_.begin());
  bests_.push_back(best);
}

bool CmaProgress::Ended() const { return Flat() || Stagnant(); }

bool CmaProgress::Flat() const {
  if (static_cast<int64_t>(bests_.size()) < flat_after_) return false;
  const auto [least, greatest] = std::minmax_element(bests_.end() - flat_after_, bests_.end());
  return std::max(Distance(*least, *greatest), latest_) <= kFlat * range_;
}

bool CmaProgress::Stagnant() const {
  if (static_cast<int64_t>(bests_.size()) < stagnant_after_) return false;
  const int64_t part = stagnant_after_ * 3 / 10;
  return Median({bests_.end() - part, bests_.end()}) >=
         Median({bests_.begin(), bests_.begin() + part});
}

bool CmaProgress::Narrow(const Eigen::VectorXd& deviations) {
  return deviations.size() > 0 && deviations.maxCoeff() < kNarrow;
}

void CmaProgress::Fields(CmaRecord& record) {
  record.List(bests_, stagnant_after_);
  record.Number(range_);
  record.Number(latest_);
}

}  // namespace shirabe::suggestion
