// Learning curves: what running trials have reported so far, as the early-stopping rules read it.
// The reconciler appends a point when a trial reports its objective; the rules compare curves at
// equal steps. Value types without locks: one writer, and readers only of copies.
//
// Losses are minimised. A loss that is not finite is the worst there is, never the best: a curve
// that has diverged must look bad to every rule, and must not make a median unusable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "suggestion/history.h"

namespace shirabe::suggestion {

// The losses of one trial by step, ascending; only rows that count. Memory is bounded: a curve that
// has become long keeps every second, fourth, … of its reports and the newest, each with what is
// exact for all reports so far.
class Curve {
 public:
  static constexpr int64_t kMost = 2048;  // points kept

  struct Point {
    int64_t step = 0;
    double loss = 0;      // as reported; may be NaN
    double best = 0;      // least finite loss of the reports so far, +infinity if there is none
    double mean = 0;      // of the reports so far, +infinity if one was not finite
    int64_t reports = 0;  // so far, this one included
  };

  // `step` is greater than the last one's.
  void Append(int64_t step, double loss);

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // The newest report; not of an empty curve.
  const Point& last() const { return points_.back(); }
  int64_t last_step() const { return empty() ? 0 : last().step; }
  // The newest report at or before `step`; null if there is none.
  const Point* At(int64_t step) const;

 private:
  void Thin();

  std::vector<Point> points_;
  int64_t every_ = 1;  // reports of whose number this is a divisor are kept, and the newest
};

// From losses by step.
Curve CurveOf(const std::map<int64_t, double>& losses);

// By trial index (number - 1); empty where nothing was observed, and shorter than the history where
// the newest trials have reported nothing.
using Curves = std::vector<Curve>;

// Null where the trial has reported nothing.
const Curve* FindCurve(const Curves& curves, int64_t index);

// The other trials that trial `index` can be compared with at `step`: what they had reported by
// then. They have ended with a result, or were stopped early, and have reached the step: a curve is
// never compared with one that ended before it.
std::vector<Curve::Point> EndedPeers(int64_t index, int64_t step, const History& history,
                                     const Curves& curves);

}  // namespace shirabe::suggestion
