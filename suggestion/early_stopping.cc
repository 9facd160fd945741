#include "suggestion/early_stopping.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text/number.h"

namespace shirabe::suggestion {

std::string MetricDirection::Show(double loss) const {
  if (!std::isfinite(loss)) return "no finite value";
  return absl::StrFormat("%.4g", maximize ? -loss : loss);
}

namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

// The mean of n numbers from that of n - 1. Exact where all are the same, or equal trials would be
// worse than their own median; and without a difference that could overflow.
double NextMean(double mean, double loss, int64_t n) {
  if (!std::isfinite(loss) || !std::isfinite(mean)) return kWorst;
  const auto count = static_cast<double>(n);
  const double difference = loss - mean;
  if (std::isfinite(difference)) return mean + difference / count;
  return mean * ((count - 1) / count) + loss / count;
}

}  // namespace

void Curve::Append(int64_t step, double loss) {
  CHECK(empty() || step > last().step);
  Point next{.step = step, .loss = loss, .best = kWorst, .mean = 0, .reports = 1};
  if (!empty()) {
    next.best = last().best;
    next.mean = last().mean;
    next.reports = last().reports + 1;
  }
  if (std::isfinite(loss)) next.best = std::min(next.best, loss);
  next.mean = NextMean(next.mean, loss, next.reports);
  // The newest report is there in any case, until the next one comes.
  if (!empty() && last().reports % every_ != 0) points_.pop_back();
  if (static_cast<int64_t>(points_.size()) == kMaxCurvePoints) Thin();
  points_.push_back(next);
}

void Curve::Thin() {
  every_ *= 2;
  std::erase_if(points_, [this](const Point& point) { return point.reports % every_ != 0; });
}

const Curve::Point* Curve::At(int64_t step) const {
  const auto after = std::upper_bound(points_.begin(), points_.end(), step,
                                      [](int64_t s, const Point& point) { return s < point.step; });
  return after == points_.begin() ? nullptr : &*std::prev(after);
}

double Curve::MeanFrom(int64_t first, const Point& end) const {
  const auto from =
      std::lower_bound(points_.begin(), points_.end(), first,
                       [](const Point& point, int64_t number) { return point.reports < number; });
  if (from == points_.begin() || end.reports < first || !std::isfinite(end.mean)) return end.mean;
  const Point& before = *std::prev(from);
  const double earlier =
      static_cast<double>(before.reports) / static_cast<double>(end.reports - before.reports);
  const double mean = end.mean + (end.mean - before.mean) * earlier;
  // Rounding gives no mean below the least of what it is of. Two huge ones may have no difference.
  return std::isfinite(mean) ? std::max(mean, end.best) : end.mean;
}

Curve CurveOf(const std::map<int64_t, double>& losses) {
  Curve curve;
  for (const auto& [step, loss] : losses) curve.Append(step, loss);
  return curve;
}

const Curve* FindCurve(const Curves& curves, int64_t index) {
  if (index < 0 || index >= static_cast<int64_t>(curves.size())) return nullptr;
  return curves[index].empty() ? nullptr : &curves[index];
}

CurvePeers PeersAt(int64_t index, int64_t step, const History& history, const Curves& curves) {
  CurvePeers peers;
  const auto known = std::min<int64_t>(history.size(), static_cast<int64_t>(curves.size()));
  for (int64_t i = 0; i < known; ++i) {
    const TrialState state = history.trial(i).state;
    if (i == index || state == TrialState::kInfeasible || curves[i].last_step() < step) continue;
    if (curves[i].At(step) == nullptr) continue;
    peers.all.push_back(i);
    if (state == TrialState::kCompleted) peers.ended.push_back(i);
  }
  return peers;
}

}  // namespace shirabe::suggestion
