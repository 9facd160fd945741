#include "suggestion/sobol_sequence.h"

#include <boost/random/sobol.hpp>

#include "base/rng.h"

namespace shirabe::suggestion {
namespace {

uint32_t ReverseBits(uint32_t x) {
  x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
  x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
  x = ((x >> 4) & 0x0F0F0F0Fu) | ((x & 0x0F0F0F0Fu) << 4);
  return __builtin_bswap32(x);
}

// A permutation in which each bit depends on the bits below it alone (Burley 2020, listing 3, after
// Laine and Karras): on reversed bits that is a scrambling of nested halves.
uint32_t LaineKarras(uint32_t x, uint32_t seed) {
  x += seed;
  x ^= x * 0x6C50B47Cu;
  x ^= x * 0xB82F1E52u;
  x ^= x * 0xC7AFE638u;
  x ^= x * 0x8D22F6E6u;
  return x;
}

uint32_t OwenScramble(uint32_t x, uint32_t seed) {
  return ReverseBits(LaineKarras(ReverseBits(x), seed));
}

}  // namespace

// The library offers points, not direction numbers. Its point n, in its Gray-code order, is the sum
// of the directions of the set bits of n ^ (n >> 1); for n = 2^(j+1) - 1 that is bit j alone. It
// skips the point 0, so that seed(n - 1) comes before point n.
SobolSequence::SobolSequence(int dimensions) : dimensions_(dimensions) {
  CHECK(dimensions >= 0 && dimensions <= kMaxDimensions);
  if (dimensions == 0) return;
  directions_.resize(static_cast<size_t>(dimensions) * kBits);
  boost::random::sobol_engine<uint32_t, kBits> engine(dimensions);
  for (int j = 0; j < kBits; ++j) {
    const auto n = static_cast<uint32_t>((uint64_t{1} << (j + 1)) - 1);
    engine.seed(n - 1);
    for (size_t i = j; i < directions_.size(); i += kBits) directions_[i] = engine();
  }
}

std::vector<double> SobolSequence::At(uint64_t index, uint64_t seed) const {
  constexpr int kRest = 53 - kBits;
  std::vector<double> point(dimensions_);
  for (int d = 0; d < dimensions_; ++d) {
    const uint32_t* direction = &directions_[static_cast<size_t>(d) * kBits];
    uint32_t x = 0;
    for (auto bits = static_cast<uint32_t>(index); bits != 0; bits &= bits - 1) {
      x ^= direction[__builtin_ctz(bits)];
    }
    // A sequence of more than 2^32 points goes on with another scrambling.
    const uint64_t scrambling = Mix(Mix(seed, d), index >> kBits);
    const uint64_t digits = OwenScramble(x, static_cast<uint32_t>(scrambling));
    const uint64_t rest = Mix(scrambling, index) >> (64 - kRest);
    point[d] = static_cast<double>(digits << kRest | rest) * 0x1p-53;
  }
  return point;
}

}  // namespace shirabe::suggestion
