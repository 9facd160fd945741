// How fast output is read: lines without a metric are nearly all of a log, so theirs is the speed
// that counts. Bytes and items (lines or points) a second.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "metrics/collector.h"
#include "metrics/json_line.h"
#include "metrics/parse.h"
#include "metrics/pattern.h"

namespace shirabe::metrics {
namespace {

constexpr char kPlainLine[] =
    "2026-11-21T08:30:00Z INFO trainer.py:128: batch 1200 of 4800, 312.5 samples/s, 41 C";
constexpr char kMetricLine[] = "epoch 12: loss=0.23125 val_loss=0.31 Validation-accuracy=0.9325";
constexpr char kJsonLine[] = R"({"step": 120, "metrics": {"loss": 0.23125, "lr": 0.001}})";
constexpr int kFileLines = 40'000;

std::vector<std::string> Metrics() { return {"loss", "Validation-accuracy"}; }

void ParseLines(benchmark::State& state, const LineParser& parser, std::string_view line) {
  ParsedLine parsed;
  size_t found = 0;
  for (auto _ : state) {
    parser.Parse(line, parsed);
    found += parsed.readings.size();
    benchmark::DoNotOptimize(found);
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(line.size() + 1));
}

void BM_TextWithoutMetric(benchmark::State& state) {
  ParseLines(state, *MakeTextParser(Metrics()), kPlainLine);
}
BENCHMARK(BM_TextWithoutMetric);

void BM_TextWithMetrics(benchmark::State& state) {
  ParseLines(state, *MakeTextParser(Metrics()), kMetricLine);
}
BENCHMARK(BM_TextWithMetrics);

// Katib's default filter as a regular expression, for comparison.
void BM_PatternWithMetrics(benchmark::State& state) {
  v1::FilterSpec filter;
  filter.add_metrics_format(R"(([\w|-]+)\s*=\s*((-?\d+)(\.\d+)?))");
  ParseLines(state, *TextParserMaker(CompilePatterns(filter).value())(Metrics()), kMetricLine);
}
BENCHMARK(BM_PatternWithMetrics);

void BM_Json(benchmark::State& state) { ParseLines(state, *MakeJsonParser(Metrics()), kJsonLine); }
BENCHMARK(BM_Json);

// The whole way: file to points, in as many calls as it takes. `items` are points, or lines where
// there is none.
void CollectFile(benchmark::State& state, std::string_view line, bool journal) {
  const auto dir = std::filesystem::temp_directory_path() / "shirabe-parse-bench";
  std::filesystem::create_directories(dir);
  Source source;
  source.metrics = Metrics();
  source.log = (dir / "log").string();
  source.metrics_file = (dir / "metrics").string();
  std::ofstream out(journal ? source.metrics_file : source.log);
  for (int i = 0; i < kFileLines; ++i) out << line << '\n';
  out.close();
  const auto collector = CreateCollector({}).value();
  size_t points = 0;
  for (auto _ : state) {
    Collected collected;
    do {
      collected = collector->Collect(source, collected.cursor).value();
      points += collected.points.size();
    } while (collected.more);
  }
  const int64_t lines = state.iterations() * kFileLines;
  state.SetItemsProcessed(points == 0 ? lines : static_cast<int64_t>(points));
  state.SetBytesProcessed(lines * static_cast<int64_t>(line.size() + 1));
  std::filesystem::remove_all(dir);
}

void BM_CollectLogWithoutMetric(benchmark::State& state) { CollectFile(state, kPlainLine, false); }
BENCHMARK(BM_CollectLogWithoutMetric)->Unit(benchmark::kMillisecond);

void BM_CollectLog(benchmark::State& state) { CollectFile(state, kMetricLine, false); }
BENCHMARK(BM_CollectLog)->Unit(benchmark::kMillisecond);

void BM_CollectMetricsFile(benchmark::State& state) { CollectFile(state, kJsonLine, true); }
BENCHMARK(BM_CollectMetricsFile)->Unit(benchmark::kMillisecond);

// A poll of a running attempt that has printed nothing since the last one.
void BM_CollectNothingNew(benchmark::State& state) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "shirabe-parse-bench.log").string();
  std::ofstream(path) << kMetricLine << '\n';
  Source source;
  source.metrics = Metrics();
  source.log = path;
  source.metrics_file = path + ".absent";
  const auto collector = CreateCollector({}).value();
  const v1::CollectorCursor cursor = collector->Collect(source, {})->cursor;
  for (auto _ : state) benchmark::DoNotOptimize(collector->Collect(source, cursor)->points.size());
  std::filesystem::remove(path);
}
BENCHMARK(BM_CollectNothingNew)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shirabe::metrics
