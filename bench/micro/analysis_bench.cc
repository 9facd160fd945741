// What the analyses of a history of n trials and 20 parameters cost, as this processor runs them:
// importances with the parameters of the process at hand (as Bayesian optimisation leaves them) and
// without, and as they are compiled for every processor; PED-ANOVA, partial dependence, contour,
// ablation.
#include <benchmark/benchmark.h>

#include "suggestion/analysis/importance.h"
#include "suggestion/processor_level.h"
#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion::analysis {
namespace {

constexpr int kParameters = 20;

// A new one each time has other results, so that no fit is found in a cache.
History TwentyParameters(int count, bool fitted, uint64_t seed = 1) {
  const auto loss = [](const Point& x) {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum += std::sin(3 * x[j]) / static_cast<double>(1 + j);
    return sum + x[0] * x[1];
  };
  History history = RandomHistory(Reals(kParameters), count, loss, seed);
  if (!fitted) return history;
  gp::SurrogateMemo memo;
  memo.fitted_at = count;
  for (gp::Theta& theta : memo.thetas) theta = gp::DefaultTheta(kParameters, 0);
  history.set_memo(memo.Serialize());
  return history;
}

void ImportanceOfFitted(benchmark::State& state, const Analyses& analyses) {
  const History history = TwentyParameters(static_cast<int>(state.range(0)), true);
  for (auto _ : state) benchmark::DoNotOptimize(analyses.importances(history));
}

void ImportanceWithFit(benchmark::State& state) {
  uint64_t seed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const History history = TwentyParameters(static_cast<int>(state.range(0)), false, ++seed);
    state.ResumeTiming();
    benchmark::DoNotOptimize(AnalysesForThisProcessor().importances(history));
  }
}

void PedAnovaOfAll(benchmark::State& state) {
  const History history = TwentyParameters(static_cast<int>(state.range(0)), false);
  for (auto _ : state) benchmark::DoNotOptimize(PedAnovaOf(history));
}

void Dependence(benchmark::State& state, const std::vector<int>& axes) {
  const History history = TwentyParameters(static_cast<int>(state.range(0)), true);
  for (auto _ : state) {
    benchmark::DoNotOptimize(AnalysesForThisProcessor().partial_dependence(history, axes));
  }
}

void AblationOfFitted(benchmark::State& state) {
  const History history = TwentyParameters(static_cast<int>(state.range(0)), true);
  const auto ends = *DefaultEnds(history);
  for (auto _ : state) {
    benchmark::DoNotOptimize(AnalysesForThisProcessor().ablation(history, history.point(ends.from),
                                                                 history.point(ends.to)));
  }
}

BENCHMARK_CAPTURE(ImportanceOfFitted, every, kAnalyses)
    ->Name("analysis/importance/every_processor")
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ImportanceOfFitted, this, AnalysesForThisProcessor())
    ->Name("analysis/importance")
    ->Arg(50)
    ->Arg(200)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(ImportanceWithFit)
    ->Name("analysis/importance/with_fit")
    ->Arg(50)
    ->Arg(200)
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(PedAnovaOfAll)
    ->Name("analysis/ped_anova")
    ->Arg(1000)
    ->Arg(10000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Dependence, pdp, {0})
    ->Name("analysis/partial_dependence")
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Dependence, contour, {0, 1})
    ->Name("analysis/contour")
    ->Arg(1000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(AblationOfFitted)->Name("analysis/ablation")->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shirabe::suggestion::analysis
