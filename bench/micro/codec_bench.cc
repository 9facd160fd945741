// The codec between unit coordinates and values, one axis each: what every trial pays once per
// parameter, and every look-up of a visited point too (Key).
#include <benchmark/benchmark.h>

#include "suggestion/space/search_space.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

struct Case {
  const char* name;
  v1::ParameterSpec parameter;
};

std::vector<Case> Cases() {
  return {{"double", Double("x", {-3, 5})},
          {"double_log", Double("x", {1e-5, 1e-1}, v1::LOG_UNIFORM)},
          {"double_normal", Double("x", {-3, 5}, v1::NORMAL)},
          {"double_step", Double("x", {0, 1, 0.001})},
          {"int", Int("x", {1, 1024})},
          {"int_log", Int("x", {1, 1024}, v1::LOG_UNIFORM)},
          {"int_2^53", Int("x", {0, 0x1p53})},
          {"discrete", Discrete("x", {8, 16, 32, 64, 128})},
          {"categorical", Categorical("x", {"sgd", "adam", "lion"})}};
}

std::vector<Point> Points(const Space& space) {
  std::vector<Point> points;
  Rng rng(1);
  for (int i = 0; i < 1024; ++i) points.push_back(space.Sample(rng));
  return points;
}

void Decode(benchmark::State& state, const Space& space) {
  const std::vector<Point> points = Points(space);
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(space.Decode(points[i++ % points.size()]));
}

void Encode(benchmark::State& state, const Space& space) {
  std::vector<std::vector<v1::Assignment>> values;
  for (const Point& point : Points(space)) values.push_back(space.Decode(point));
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(*space.Encode(values[i++ % values.size()]));
}

void Key(benchmark::State& state, const Space& space) {
  const std::vector<Point> points = Points(space);
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(space.Key(points[i++ % points.size()]));
}

const bool registered = [] {
  for (const Case& one : Cases()) {
    const Space space = Make({one.parameter});
    const std::string name = std::string("/") + one.name;
    benchmark::RegisterBenchmark(("codec/decode" + name).c_str(), Decode, space);
    benchmark::RegisterBenchmark(("codec/encode" + name).c_str(), Encode, space);
    benchmark::RegisterBenchmark(("codec/key" + name).c_str(), Key, space);
  }
  return true;
}();

}  // namespace
}  // namespace shirabe::suggestion
