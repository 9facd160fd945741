// The parts that the state of CMA-ES consists of, and how they are written to a memo (CmaRecord):
// the matrix C with its symmetric roots (CmaCovariance), the draws of a generation
// (OrthogonalSampler), and the probabilities of categories (CmaCategories). CmaCovariance is dense,
// or only its diagonal for many dimensions (the separable variant of Ros & Hansen 2008, "A simple
// modification in CMA-ES achieving linear time and space complexity"). Used by
// suggestion/cmaes/cma.h. Value types.
//
//   C        d × d symmetric, positive definite; separable: its diagonal, d × 1
//   Q, D     C = Q D² Qᵀ, Q orthonormal, D diagonal and positive
//   C^½      Q D Qᵀ, the symmetric root          C^-½   Q D⁻¹ Qᵀ
//   y, z     y = C^½ z: a step before it is multiplied by σ, and the normal vector it came from
//
// The decomposition is computed again with every change, not every few generations as is usual: it
// costs d³ once in a generation (8 µs at d = 10), and a state without a hidden age is simple to
// restore.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shirabe::suggestion {

// A flat sequence of numbers that states are written to and read from: how the distributions of
// CMA-ES travel in a memo. One list of fields serves both directions, so that they cannot disagree:
//
//   void Fields(CmaRecord& record) { record.Number(sigma_); record.Vector(mean_); }
//
// The reader trusts nothing: sizes are those of the object that is read into, a number that is
// missing or not finite ends it with ok() = false, and what was read so far is to be thrown away.
// Doubles are kept to the bit, little-endian. Not for two threads at once.
class CmaRecord {
 public:
  // Writes, to text().
  CmaRecord() = default;
  // Reads `text`, which is copied.
  explicit CmaRecord(std::string text) : reads_(true), text_(std::move(text)) {}

  void Number(double& value);
  // Up to 2^53, as a number.
  void Integer(int64_t& value);
  // All bits of a word.
  void Word(uint64_t& value);
  // Of fixed size.
  void Vector(Eigen::VectorXd& values);
  // Of fixed size; a square matrix is symmetric and only its lower half is kept.
  void Matrix(Eigen::MatrixXd& values);
  // Of any length up to `most`.
  void List(std::vector<double>& values, int64_t most);

  // What was read makes no sense.
  void Reject() { ok_ = false; }

  bool reads() const { return reads_; }
  // Whether everything asked for was there and made sense.
  bool ok() const { return ok_; }
  // A reader has used up its text.
  bool AtEnd() const { return next_ == text_.size(); }
  const std::string& text() const { return text_; }

 private:
  bool reads_ = false;
  bool ok_ = true;
  std::string text_;
  size_t next_ = 0;  // the first byte that has not been read
};

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

// Makes the draws of a generation orthogonal to each other, d at a time: directions that are tried
// once are not tried again by chance, and the mean moves by a better estimate from as many trials.
// Used by suggestion/cmaes/cma_search.h. A value type.
//
//   z        normal vector of length ‖z‖ in ℝ^d       q_k    orthonormal directions of the block
//
// z' = ‖z‖ v / ‖v‖ with v = z − Σ_k q_k (q_kᵀ z): the length stays that of a normal vector and the
// direction is uniform among those left, so that each z' alone is N(0, I) as before. H. Wang,
// M. Emmerich, T. Bäck, "Mirrored Orthogonal Sampling with Pairwise Selection in Evolution
// Strategies" (SAC 2014), without the mirrors, which active weights do not bear.
class OrthogonalSampler {
 public:
  // z'.
  Eigen::VectorXd Turned(const Eigen::VectorXd& z) const;
  // Takes in a vector of the generation, turned or of another origin.
  void Add(const Eigen::VectorXd& z);

 private:
  Eigen::VectorXd Rest(const Eigen::VectorXd& z) const;

  std::vector<Eigen::VectorXd> directions_;  // q_k; the block is full with d of them
};

// The categorical side of CMA-ES: independent probabilities of the categories, moved by the same
// ranking as the normal distribution. Used by suggestion/cmaes/cma_search.h. A value type; it draws
// no random numbers of its own.
//
//   K_k      number of categories of parameter k           q_kc   probability of category c of it
//   ν        Σ_k (K_k − 1), degrees of freedom             w_i    weight of member i, Σ⁺ w_i = 1
//   G        Σ⁺ w_i (onehot(c_i) − q), natural gradient    ε      its rate, δ / ‖F^½ G‖, at most 1
//   F        Fisher information of q                       δ      trust region, 1 / Δ
//   s, γ     accumulated direction and its expected length; they adapt Δ
//
// R. Hamano, S. Saito, M. Nomura, K. Uchida, S. Shirakawa, "CatCMA: Stochastic Optimization for
// Mixed-Category Problems" (GECCO 2024); δ by Y. Akimoto et al., "Adaptive Stochastic Natural
// Gradient Method for One-Shot Neural Architecture Search" (ICML 2019), Algorithm 1 and appendix B.
// Differently from there ε is at most 1: that already makes q the frequencies among the selected.
// The margin: no q_kc falls below (1 − 0.73^(1/number of parameters)) / (K_k − 1), so that all
// parameters at once take their likeliest category with a probability of at most 0.73.
class CmaCategories {
 public:
  // One K per parameter, each at least 1. All categories are equally likely.
  explicit CmaCategories(const std::vector<int>& counts);

  int size() const { return static_cast<int>(q_.size()); }
  // The category of parameter `k` that a number in [0, 1) draws.
  int Draw(int k, double unit) const;
  double probability(int k, int category) const { return q_[k][category]; }
  // One generation: the categories of its members, a column each, and their weights.
  void Tell(const Eigen::MatrixXi& members, const Eigen::VectorXd& weights);
  // Half of every probability becomes the frequency among `members`: where a search begins.
  void Begin(const Eigen::MatrixXi& members);
  void Fields(CmaRecord& record);

 private:
  Eigen::VectorXd Frequencies(int k, const Eigen::MatrixXi& members,
                              const Eigen::VectorXd& weights) const;
  void AdaptTrust(const Eigen::VectorXd& direction);
  void KeepMargin(int k);

  std::vector<Eigen::VectorXd> q_;
  Eigen::VectorXd s_;   // ν
  double gamma_ = 0;    // γ
  double inverse_ = 1;  // Δ
};

}  // namespace shirabe::suggestion
