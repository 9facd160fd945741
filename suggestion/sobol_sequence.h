// Points that fill the unit cube more evenly than random ones: Sobol's sequence with Owen's
// scrambling, random access by index, nothing kept between calls. Used by the algorithm of that
// name, and by others for their first points and candidates. Immutable, any thread.
//
//   i     index of a point, from 0                 d   dimension
//   V_dj  direction number j of dimension d        S   scrambling, one per seed and dimension
//
//   x_d(i) = S(⊕ over the set bits j of i of V_dj) / 2^32, continued by random bits to 53
//
// Direction numbers: S. Joe, F. Kuo, "Constructing Sobol sequences with better two-dimensional
// projections", SIAM J. Sci. Comput. 30 (2008). Scrambling: A. Owen, "Randomly permuted
// (t,m,s)-nets and (t,s)-sequences" (1995), by the hash of S. Laine and T. Karras, "Stratified
// sampling for stochastic transparency" (2011), in the form of B. Burley, "Practical hash-based
// Owen scrambling", JCGT 9 (2020). Within the first 2^32 points no two share 32 digits, and below a
// unique prefix Owen's digits are independent random bits: hence the continuation.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace shirabe::suggestion {

class SobolSequence {
 public:
  static constexpr int kMaxDimensions = 3667;  // of the table of direction numbers
  // 0 ≤ dimensions ≤ kMaxDimensions.
  explicit SobolSequence(int dimensions);

  // Point `index`, every coordinate in [0, 1).
  std::vector<double> At(uint64_t index, uint64_t seed) const;

 private:
  static constexpr int kBits = 32;

  int dimensions_;
  std::vector<uint32_t> directions_;  // dimensions_ × kBits
};

}  // namespace shirabe::suggestion
