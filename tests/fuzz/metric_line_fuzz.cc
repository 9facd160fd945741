// Any bytes as a program's output: the parsers must neither crash nor hang, say why a line is bad
// in printable words, and a line without the metric's name must give nothing.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "metrics/json_line.h"
#include "metrics/line_parser.h"
#include "metrics/metrics_format.h"

namespace {

using shirabe::metrics::LineParser;
using shirabe::metrics::ParsedLine;

const std::vector<std::string>& Metrics() {
  static const std::vector<std::string> metrics = {"loss", "val/loss", "a b"};
  return metrics;
}

std::unique_ptr<LineParser> PatternParser() {
  shirabe::v1::FilterSpec filter;
  filter.add_metrics_format(R"(([\w|-]+)\s*=\s*((-?\d+)(\.\d+)?))");
  filter.add_metrics_format(R"((\w+) (.*))");
  return shirabe::metrics::TextParserMaker(shirabe::metrics::CompilePatterns(filter).value())(
      Metrics());
}

void Check(const LineParser& parser, std::string_view line) {
  ParsedLine parsed;
  parser.Parse(line, parsed);
  for (const auto& reading : parsed.observations) {
    CHECK(reading.metric >= 0 && reading.metric < static_cast<int>(Metrics().size()));
    CHECK(!reading.step || *reading.step >= 0);
  }
  for (const char c : parsed.bad) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto text = shirabe::metrics::MakeTextParser(Metrics());
  static const auto json = shirabe::metrics::MakeJsonParser(Metrics());
  static const auto patterns = PatternParser();
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  Check(*text, line);
  Check(*json, line);
  Check(*patterns, line);
  shirabe::metrics::NamesIn(line, 100);
  return 0;
}
