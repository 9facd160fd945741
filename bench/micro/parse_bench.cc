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
#include "metrics/describe_source.h"
#include "metrics/json_line.h"
#include "metrics/line_parser.h"
#include "metrics/metrics_format.h"
#include "metrics/prometheus_text.h"
#include "metrics/tf_event.h"
#include "tests/metrics/tf_records.h"

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
    found += parsed.observations.size();
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

// Page after page of what a program serves: eight series of its own, and fifty of its runtime.
void BM_Exposition(benchmark::State& state) {
  std::string page = "# HELP loss what is left to lose\n# TYPE loss gauge\n";
  for (int i = 0; i < 8; ++i)
    page += "loss{split=\"valid\",fold=\"" + std::to_string(i) + "\"} 0.25\n";
  for (int i = 0; i < 50; ++i)
    page += "process_resident_memory_" + std::to_string(i) + " 1.5e+08\n";
  for (auto _ : state) benchmark::DoNotOptimize(ParseExposition(page, false).samples.size());
  state.SetItemsProcessed(state.iterations() * 58);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(page.size()));
}
BENCHMARK(BM_Exposition);

// One event with a scalar: framing, checksums, decoding.
void BM_TfScalarEvent(benchmark::State& state) {
  const std::string bytes = ScalarRecord("loss/valid", 1200, 0.25f);
  TfEvent event;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DecodeEvent(RecordAt(bytes).data, event));
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_TfScalarEvent);

// One event with an image, which is only checked and stepped over.
void BM_TfImageEvent(benchmark::State& state) {
  const std::string image = BytesField(4, std::string(1 << 20, 'i'));
  const std::string bytes = TfRecordOf(BytesField(5, BytesField(1, BytesField(1, "x") + image)));
  TfEvent event;
  for (auto _ : state) {
    benchmark::DoNotOptimize(DecodeEvent(RecordAt(bytes).data, event));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}
BENCHMARK(BM_TfImageEvent);

// The whole way: a file of events to points, in as many calls as it takes.
void BM_CollectEvents(benchmark::State& state) {
  const auto dir = std::filesystem::temp_directory_path() / "shirabe-events-bench";
  std::filesystem::create_directories(dir);
  std::string events;
  for (uint64_t i = 0; i < kFileLines; ++i) events += ScalarRecord("loss", i, 0.25f);
  std::ofstream(dir / "events.tfevents.1", std::ios::binary) << events;
  Source source;
  source.metrics = Metrics();
  source.files.path = dir.string();
  v1::MetricsCollectorSpec spec;
  spec.mutable_collector()->set_kind(v1::TENSOR_FLOW_EVENT);
  spec.mutable_source()->mutable_file_system_path()->set_path(dir.string());
  const auto collector = CreateCollector(spec).value();
  for (auto _ : state) {
    Collected collected;
    do {
      collected = collector->Collect(source, collected.cursor).value();
    } while (collected.more);
  }
  state.SetItemsProcessed(state.iterations() * kFileLines);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(events.size()));
  std::filesystem::remove_all(dir);
}
BENCHMARK(BM_CollectEvents)->Unit(benchmark::kMillisecond);

// The whole way: file to points, in as many calls as it takes. `items` are points, or lines where
// there is none.
void CollectFile(benchmark::State& state, std::string_view line, bool journal) {
  const auto dir = std::filesystem::temp_directory_path() / "shirabe-parse-bench";
  std::filesystem::create_directories(dir);
  Source source;
  source.metrics = Metrics();
  source.files.log = (dir / "log").string();
  source.files.metrics = (dir / "metrics").string();
  std::ofstream out(journal ? source.files.metrics : source.files.log);
  for (int i = 0; i < kFileLines; ++i) out << line << '\n';
  out.close();
  const auto collector = CreateCollector({}).value();
  size_t points = 0;
  for (auto _ : state) {
    Collected collected;
    do {
      collected = collector->Collect(source, collected.cursor).value();
      points += collected.observations.size();
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
  source.files.log = path;
  source.files.metrics = path + ".absent";
  const auto collector = CreateCollector({}).value();
  const v1::CollectorCursor cursor = collector->Collect(source, {})->cursor;
  for (auto _ : state)
    benchmark::DoNotOptimize(collector->Collect(source, cursor)->observations.size());
  std::filesystem::remove(path);
}
BENCHMARK(BM_CollectNothingNew)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shirabe::metrics
