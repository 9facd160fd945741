#include "suggestion/space/interval_distribution.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace shirabe::suggestion {
IntervalDistribution IntervalDistribution::Uniform(Interval interval) {
  return IntervalDistribution(interval);
}

IntervalDistribution IntervalDistribution::Normal(Interval interval, double mean,
                                                  double deviation) {
  IntervalDistribution spread(interval);
  spread.normal_ = true;
  spread.mean_ = mean;
  spread.deviation_ = deviation;
  spread.below_ = NormalCdf((interval.lo - mean) / deviation);
  spread.mass_ = NormalCdf((interval.hi - mean) / deviation) - spread.below_;
  return spread;
}

double IntervalDistribution::Cdf(double t) const {
  if (!normal_) return (t - interval_.lo) / (interval_.hi - interval_.lo);
  return (NormalCdf((t - mean_) / deviation_) - below_) / mass_;
}

double IntervalDistribution::Quantile(double x) const {
  if (!(x > 0)) return interval_.lo;
  if (x >= 1) return interval_.hi;
  const double t = normal_ ? mean_ + deviation_ * NormalQuantile(below_ + x * mass_)
                           : interval_.lo + x * (interval_.hi - interval_.lo);
  return std::clamp(t, interval_.lo, interval_.hi);
}

namespace {

__extension__ using Uint128 = unsigned __int128;

// ⌊x · n⌋ for 0 < x < 1, exact: with doubles alone, x · n would round up to the next level.
uint64_t Part(double x, uint64_t n) {
  const auto fraction = static_cast<uint64_t>(std::ldexp(x, 64));
  return static_cast<uint64_t>((static_cast<Uint128>(fraction) * n) >> 64);
}

}  // namespace

LevelPartition LevelPartition::Equal(uint64_t count) { return LevelPartition(count); }

LevelPartition LevelPartition::ByMass(uint64_t count, const IntervalDistribution& spread,
                                      LevelPositions positions) {
  LevelPartition shares(count);
  shares.spread_ = spread;
  shares.positions_ = positions;
  return shares;
}

uint64_t LevelPartition::Level(double x) const {
  if (!(x > 0)) return 0;
  if (x >= 1) return count_ - 1;
  if (!spread_) return Part(x, count_);
  uint64_t k = NearLevel(x);
  while (k > 0 && LowerEdge(k) > x) --k;
  while (k + 1 < count_ && LowerEdge(k + 1) <= x) ++k;
  return k;
}

double LevelPartition::Coordinate(uint64_t k) const {
  if (spread_) return (LowerEdge(k) + LowerEdge(k + 1)) / 2;
  double x = (static_cast<double>(k) + 0.5) / static_cast<double>(count_);
  // With more than 2^52 levels a share is hardly wider than the distance of two doubles, and the
  // rounded middle may lie just outside.
  for (uint64_t level = Level(x); level != k; level = Level(x)) {
    x = std::nextafter(x, level < k ? 1.0 : 0.0);
  }
  return x;
}

bool LevelPartition::Distinguishable() const {
  // Mass falls off towards the ends, so that one of the two end levels has the smallest share. The
  // bound leaves some hundred roundings of room.
  constexpr double kSmallest = 0x1p-46;
  return !spread_ || count_ == 1 ||
         (LowerEdge(1) >= kSmallest && 1 - LowerEdge(count_ - 1) >= kSmallest);
}

double LevelPartition::LowerEdge(uint64_t k) const {
  if (k == 0) return 0;
  if (k >= count_) return 1;
  const double middle = static_cast<double>(k) - 0.5;
  return spread_->Cdf(positions_.log ? std::log(positions_.min + middle * positions_.step)
                                     : middle);
}

// Where the inverse of the distribution function points; right but for rounding.
uint64_t LevelPartition::NearLevel(double x) const {
  const double t = spread_->Quantile(x);
  const double position = positions_.log ? (std::exp(t) - positions_.min) / positions_.step : t;
  const double last = static_cast<double>(count_ - 1);
  return static_cast<uint64_t>(std::clamp(std::round(position), 0.0, last));
}

}  // namespace shirabe::suggestion
