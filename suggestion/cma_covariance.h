// The matrix C of CMA-ES with its symmetric roots: dense, or only its diagonal for many dimensions
// (the separable variant of Ros & Hansen 2008, "A simple modification in CMA-ES achieving linear
// time and space complexity"). Used by suggestion/cma.h. A value type.
//
//   C        d × d symmetric, positive definite; separable: its diagonal, d × 1
//   Q, D     C = Q D² Qᵀ, Q orthonormal, D diagonal and positive
//   C^½      Q D Qᵀ, the symmetric root          C^-½   Q D⁻¹ Qᵀ
//   y, z     y = C^½ z: a step before it is multiplied by σ, and the normal vector it came from
//
// The decomposition is made anew with every change, not every few generations as is usual: it costs
// d³ once in a generation (8 µs at d = 10), and a state without a hidden age is simple to restore.
#pragma once

#include <Eigen/Core>

#include "suggestion/cma_record.h"

namespace shirabe::suggestion {

class CmaCovariance {
 public:
  // The identity.
  CmaCovariance(int dimensions, bool separable);

  Eigen::VectorXd Root(const Eigen::VectorXd& z) const;
  Eigen::VectorXd InverseRoot(const Eigen::VectorXd& y) const;
  // C^-½ `delta` C^-½, for something of C's shape.
  Eigen::MatrixXd Whitened(const Eigen::MatrixXd& delta) const;

  // keep · C + Σ_k weights_k · y_k y_kᵀ, the y_k being the columns of `steps`; C itself stays.
  Eigen::MatrixXd Blend(double keep, const Eigen::MatrixXd& steps,
                        const Eigen::VectorXd& weights) const;
  // Makes C = `values`, of C's shape. False, and C stays, if that is not positive definite or its
  // condition is worse than doubles can carry.
  bool Set(const Eigen::MatrixXd& values);

  const Eigen::MatrixXd& values() const { return values_; }
  bool separable() const { return separable_; }
  Eigen::VectorXd Variances() const;  // the diagonal of C
  double Condition() const;           // (max D / min D)²
  double LogDeterminant() const;      // of C
  void Fields(CmaRecord& record);

 private:
  bool Decompose();

  bool separable_;
  Eigen::MatrixXd values_;  // C
  Eigen::MatrixXd axes_;    // Q; empty if separable
  Eigen::VectorXd roots_;   // D
};

}  // namespace shirabe::suggestion
