// Learning rates that follow the signal: under noise, and on functions with many local optima, the
// steps of single generations contradict each other, and smaller steps of the same kind average
// over them. Used by suggestion/cma.h where the setting lr_adapt is true. A value type.
//
//   Δ        natural step of one generation (of m, or of Σ = σ²C), in the coordinates in which the
//            distribution is the standard normal one; any shape
//   E, V     moving averages of Δ and of |Δ|², both with rate β
//   SNR      (|E|² − β/(2−β) V) / (V − |E|²), estimated ratio of signal to noise
//   η        the factor to apply to Δ, in (0, 1]: kept where SNR = α η
//
// M. Nomura, Y. Akimoto, I. Ono, "CMA-ES with Learning Rate Adaptation: Can CMA-ES with Default
// Population Size Solve Multimodal and Noisy Problems?" (GECCO 2023), section 4: α = 1.4, γ = 0.1,
// β = 0.1 for m and 0.03 for Σ.
#pragma once

#include <Eigen/Core>

#include "suggestion/cma_record.h"

namespace shirabe::suggestion {

class CmaRate {
 public:
  // For steps of `rows` × `columns`, averaged with rate `beta`.
  CmaRate(Eigen::Index rows, Eigen::Index columns, double beta)
      : beta_(beta), mean_(Eigen::MatrixXd::Zero(rows, columns)) {}

  // Takes in one step; value() follows.
  void Observe(const Eigen::MatrixXd& step);
  double value() const { return rate_; }
  void Fields(CmaRecord& record);

 private:
  double beta_;
  Eigen::MatrixXd mean_;  // E
  double square_ = 0;     // V
  double rate_ = 1;       // η
};

}  // namespace shirabe::suggestion
