#include "base/rng.h"

#include <sys/random.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "base/statistics.h"
#include "base/status.h"

namespace shirabe {
namespace {

uint64_t SplitMix(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

uint64_t RotateLeft(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

}  // namespace

Rng::Rng(uint64_t seed) : seed_(seed) {
  uint64_t state = seed;
  for (uint64_t& word : state_) word = SplitMix(state);
}

Rng Rng::Fork(uint64_t index) const { return Rng(Mix(seed_, index)); }

uint64_t Rng::Next() {
  const uint64_t result = RotateLeft(state_[0] + state_[3], 23) + state_[0];
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = RotateLeft(state_[3], 45);
  return result;
}

double Rng::Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

uint64_t Rng::Below(uint64_t bound) {
  CHECK(bound > 0);
  const uint64_t threshold = -bound % bound;  // rejects the words that would favour small results
  for (;;) {
    const uint64_t word = Next();
    if (word >= threshold) return word % bound;
  }
}

double Rng::Normal() {
  double u = Uniform();
  while (u == 0) u = Uniform();
  return NormalQuantile(u);
}

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t state = a;
  const uint64_t first = SplitMix(state);
  state = first ^ b;
  return SplitMix(state);
}

uint64_t Fingerprint(const std::string& text) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, then mixed
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3u;
  return Mix(hash, text.size());
}

std::string RandomBytes(int bytes) {
  std::string result(bytes, '\0');
  CHECK(getrandom(result.data(), result.size(), 0) == bytes);
  return result;
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  std::memcpy(&seed, RandomBytes(sizeof seed).data(), sizeof seed);
  return seed;
}

}  // namespace shirabe
