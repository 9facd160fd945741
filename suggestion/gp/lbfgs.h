// Minimisation in a box by limited-memory BFGS, one evaluation at a time: the caller, which has the
// function, asks for the next point and tells what it found there. So several starts advance in
// lock-step and share one batched evaluation, each with a quasi-Newton matrix of its own.
//
//   x   point            d              f    value at x
//   g   gradient at x    d              H    inverse Hessian, from the last pairs (s, y)
//   s   x⁺ - x           d              y    g⁺ - g
//
// Two-loop recursion: J. Nocedal, "Updating quasi-Newton matrices with limited storage" (1980).
// Bounds by projection of the step, the coordinates held at a bound left out of H (D. Bertsekas,
// "Projected Newton methods", 1982); step length by Armijo's rule with quadratic interpolation.
// Not thread-safe; no state beyond the object.
#pragma once

#include <Eigen/Dense>
#include <deque>

namespace shirabe::suggestion::gp {

// lower ≤ upper, both of the size of the point.
struct Box {
  Eigen::VectorXd lower, upper;
  Eigen::VectorXd Clamp(const Eigen::VectorXd& x) const {
    return x.cwiseMax(lower).cwiseMin(upper);
  }
};

class Lbfgs {
 public:
  struct Options {
    int max_iterations = 100;
    double gradient_tolerance = 1e-3;  // of the largest component of the projected gradient
    double decrease_tolerance = 1e-9;  // of f in one iteration, relative to max(1, |f|)
  };

  // `start` is moved into the box. Everything may be infinite or NaN but the first value.
  Lbfgs(const Eigen::VectorXd& start, Box box, const Options& options);

  bool done() const { return done_; }
  // Where to evaluate next; only while not done.
  const Eigen::VectorXd& next() const { return trial_; }
  void Tell(double f, const Eigen::VectorXd& gradient);

  // The best so far.
  const Eigen::VectorXd& x() const { return x_; }
  double value() const { return f_; }

 private:
  struct Pair {
    Eigen::VectorXd s, y;
    double rho;  // 1 / sᵀy
  };

  bool AtBound(int i) const;
  Eigen::VectorXd Direction();
  void Propose();
  void Accept(double f, const Eigen::VectorXd& gradient);

  Box box_;
  Options options_;
  Eigen::VectorXd x_, g_, trial_, direction_;
  double f_ = 0;
  double step_ = 1;
  int iterations_ = 0, backtracks_ = 0;
  bool started_ = false, done_ = false;
  std::deque<Pair> pairs_;
};

// How far from the incumbent to look: a box that grows while it finds better points and shrinks
// while it does not, replayed from the results in the order of the trials. D. Eriksson et al.,
// "Scalable global optimization via local Bayesian optimization", NeurIPS 2019, section 3, with one
// box, whose centre is the best point, and which starts again when it has become too small. Pure;
// any thread.
//
//   L   side of the box before it is shaped by the lengths ℓ of the process, in units of the cube

// L after `scores` (larger is better; -infinity = it failed) of a space of `dimensions`, the first
// `initial` of which were not chosen by looking at the box.
double TrustRegionSide(const Eigen::VectorXd& scores, int dimensions, Eigen::Index initial);

// The box of side L around `centre`, longer where the function is flatter, within the unit cube.
Box TrustRegion(double side, const Eigen::VectorXd& centre, const Eigen::ArrayXd& lengths);

}  // namespace shirabe::suggestion::gp
