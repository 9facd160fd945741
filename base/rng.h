// Random numbers that are the same on every machine: the library's distributions are not, so they
// stay out. A value type; one object must not be used by two threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shirabe {

// xoshiro256++ (Blackman & Vigna 2019), seeded through SplitMix64.
class Rng {
 public:
  explicit Rng(uint64_t seed);

  // An independent stream: the same (seed, index) gives the same numbers, whatever was drawn here.
  // The stream of suggestion i is root.Fork(i).
  Rng Fork(uint64_t index) const;

  uint64_t Next();
  // In [0, 1), 53 bits.
  double Uniform();
  // In [0, bound), without bias; bound > 0.
  uint64_t Below(uint64_t bound);
  // Standard normal (inverse of the distribution function, one draw each).
  double Normal();

  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
  uint64_t state_[4];
};

// A 64-bit mix of two words; the same everywhere, for ever. Not for secrets.
uint64_t Mix(uint64_t a, uint64_t b);
// A 64-bit hash of text; the same everywhere, for ever. Not for secrets.
uint64_t Fingerprint(const std::string& text);
// `bytes` random bytes from the kernel. For tokens.
std::string RandomBytes(int bytes);
// A seed from the kernel, for what need not be repeated: the spread of retries.
uint64_t RandomSeed();

}  // namespace shirabe
