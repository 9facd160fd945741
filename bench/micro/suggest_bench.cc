// The cost of the next suggestion after n trials, for every registered algorithm, and of the
// history that it reads. Grid gets a space without continuous parameters, with and without a memo.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

Space Continuous() {
  return Make({Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM), Double("momentum", {0, 1}),
               Double("drop", {0, 0.5, 0.05}), Int("width", {16, 1024}, v1::LOG_UNIFORM),
               Categorical("opt", {"sgd", "adam", "lion"})});
}

Space TenReals() {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < 10; ++i) parameters.push_back(Double("x" + std::to_string(i), {0, 1}));
  return Make(parameters);
}

Space Finite() {
  return Make({Int("a", {1, 100}), Double("b", {0, 1, 0.01}), Discrete("c", {8, 16, 32, 64}),
               Categorical("d", {"x", "y", "z"})});
}

void Propose(benchmark::State& state, const std::string& name, const Space& space, bool memo) {
  const auto algorithm = *CreateAlgorithm(name, {.space = space});
  History history(space);
  const auto n = static_cast<int>(state.range(0));
  if (n > 0) {  // the algorithm's own points, so that a grid has tried the first n
    const Proposal past = *algorithm->Propose(history, n, Rng(1));
    for (size_t i = 0; i < past.suggestions.size(); ++i) {
      history.Add(past.suggestions[i].point,
                  {.state = TrialState::kCompleted, .loss = 1.0 / static_cast<double>(i + 1)});
    }
    if (memo) history.set_memo(past.memo);
  }
  for (auto _ : state) benchmark::DoNotOptimize(algorithm->Propose(history, 1, Rng(1)));
}

void AddTrial(benchmark::State& state, const Space& space) {
  Rng rng(1);
  std::vector<Point> points;
  for (int i = 0; i < 4096; ++i) points.push_back(space.Sample(rng));
  auto history = std::make_unique<History>(space);
  size_t i = 0;
  for (auto _ : state) {
    if (i % 100000 == 0) history = std::make_unique<History>(space);
    history->Add(points[i++ % points.size()], {});
  }
}

const bool registered = [] {
  for (const std::string& name : Registry<AlgorithmInfo>::Get().Names()) {
    const bool continuous = CreateAlgorithm(name, {.space = Continuous()}).ok();
    const Space space = continuous ? Continuous() : Finite();
    for (bool memo : {true, false}) {
      const std::string label = "suggest/" + name + (memo ? "" : "/without_memo");
      for (int n : {0, 1000, 100000}) {
        benchmark::RegisterBenchmark(label.c_str(), Propose, name, space, memo)
            ->Arg(n)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  // The sizes at which the peers were timed.
  for (const char* name : {"tpe", "multivariate-tpe", "de", "nsga2"}) {
    for (int n : {100, 1000}) {
      const std::string label = std::string("suggest/") + name + "/ten_reals";
      benchmark::RegisterBenchmark(label.c_str(), Propose, name, TenReals(), true)
          ->Arg(n)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::RegisterBenchmark("suggest/history_add", AddTrial, Continuous());
  return true;
}();

}  // namespace
}  // namespace shirabe::suggestion
