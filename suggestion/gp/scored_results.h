// What a history says to a Gaussian process: the points with their scores (Results), and the warps
// of those scores (Warp). Plain data; pure; any thread.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "suggestion/history.h"

namespace shirabe::suggestion::gp {

// Each list in the order of the trials.
struct Results {
  // A process costs the cube of their number: one core takes 0.05 s for a value and its gradient
  // at 1,000, and 0.47 s at 2,000 (bench/RESULTS.md), which an accelerator has time for.
  static constexpr int64_t kMaxPoints = 1000, kMaxAccelerated = 2000;
  static constexpr int64_t kMaxOthers = 256;  // failed, and pending

  std::vector<Point> points;     // of trials with a finite loss
  std::vector<double> scores;    // their negative losses, bounded: larger is better
  std::vector<int64_t> numbers;  // theirs
  std::vector<Point> failed;     // of trials that ended without one
  std::vector<Point> pending;
  std::vector<double> ends;  // the scores of all that ended; -infinity for the failed
  int64_t initial = 0;       // the first of `ends`: chosen before there were results

  // Two different scores, or there is nothing to learn.
  bool Learnable() const;
};

// By trial: the negative loss of the first objective, -infinity where there is none. That of a part
// is no better than the best of the whole ones: the trial was stopped because it was worse, and its
// part may be the easy one.
std::vector<double> ScoresOf(const History& history);

// `initial`: so many trials were chosen without looking at results. Where there are too many
// points, the latest half of what is allowed (`most`: gp/engine_choice.h) stays, and of the others
// the best.
Results Gather(const History& history, int64_t initial, int64_t most = Results::kMaxPoints);

// Which of so many results a process has, by index: all of them, or, where they are too many, the
// latest half of what is allowed and of the others the best. `scores` in order of time.
std::vector<int64_t> KeptResults(const std::vector<double>& scores,
                                 int64_t most = Results::kMaxPoints);

// A score that is worse than the median of the distinct ones by more than 10^12 times what the best
// is better, such as the 10^25 of a training that diverged, becomes one that is as much worse:
// beside it, the differences of the others would be lost to rounding. What the best is better
// counts as at least a millionth of its size. `scores` finite.
void BoundWorst(std::span<double> scores);

// Monotone maps of the objective that a Gaussian process finds easier: most losses of a search are
// bad in one way or another, and how bad matters less than the shape of the good half. Each is made
// from the values seen so far and ends with mean 0 and deviation 1. Immutable, any thread.
//
//   f    scores as given, larger is better, finite     n
//   y    warped scores                                 n
//   λ    power of the Yeo-Johnson map
//
// none          y = standardised f
// Yeo-Johnson   of standardised f, λ by maximum likelihood on a grid: I. Yeo, R. Johnson, "A new
//               family of power transformations", Biometrika 87 (2000), (2.1), (3.1)
// half-rank     the half below the median takes the quantiles of a normal distribution whose
//               deviation is that of the half above: X. Song et al., "The Vizier Gaussian process
//               bandit algorithm" (2024), 4.1, without its logarithm
enum class WarpKind { kNone, kYeoJohnson, kHalfRank };
inline constexpr WarpKind kWarpKinds[] = {WarpKind::kNone, WarpKind::kYeoJohnson,
                                          WarpKind::kHalfRank};
std::string NameOf(WarpKind kind);

class Warp {
 public:
  // `scores` finite, not all equal, n ≥ 2.
  Warp(WarpKind kind, const Eigen::VectorXd& scores);

  const Eigen::VectorXd& warped() const { return warped_; }
  // The score whose image is `y`: between neighbours by interpolation, beyond them by continuing.
  double Unwarp(double y) const;

 private:
  Eigen::VectorXd warped_;
  std::vector<std::pair<double, double>> pairs_;  // (y, f), ascending, distinct in y
};

// Mean 0, deviation 1, without overflow; all 0 where the values are equal.
Eigen::VectorXd Standardize(const Eigen::VectorXd& values);

// How well `predicted` orders the better half of `scores`, in [0, 1]: the share of pairs in the
// right order, weighted by 1 / rank of the better one.
double Concordance(const Eigen::VectorXd& scores, const Eigen::VectorXd& predicted);

}  // namespace shirabe::suggestion::gp
