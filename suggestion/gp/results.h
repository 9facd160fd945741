// What a history says to a Gaussian process. Plain data; pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "suggestion/history.h"

namespace shirabe::suggestion::gp {

// Each list in the order of the trials.
struct Results {
  static constexpr int64_t kMaxPoints = 1000;  // a process costs the cube of their number
  static constexpr int64_t kMaxOthers = 256;   // failed, and pending

  std::vector<Point> points;     // of trials with a finite loss
  std::vector<double> scores;    // their negative losses: larger is better
  std::vector<int64_t> numbers;  // theirs
  std::vector<Point> failed;     // of trials that ended without one
  std::vector<Point> pending;
  std::vector<double> ends;  // the scores of all that ended; -infinity for the failed
  int64_t initial = 0;       // the first of `ends`: chosen before there were results

  // Two different scores, or there is nothing to learn.
  bool Learnable() const;
};

// `initial`: so many trials were chosen without looking at results. Where there are too many
// points, the latest half of what is allowed stays, and of the others the best.
Results Gather(const History& history, int64_t initial);

}  // namespace shirabe::suggestion::gp
