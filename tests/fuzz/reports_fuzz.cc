// Any bytes as a line of hypertune's file, as a line of what was seen at an endpoint, and as a call
// of Kubeflow Trainer's: neither crash nor hang, complaints in printable words, steps from 0.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "metrics/http_scraper.h"
#include "metrics/json_line.h"
#include "metrics/trainer_status.h"

namespace {

using shirabe::metrics::LineParser;
using shirabe::metrics::ParsedLine;

void Check(const LineParser& parser, std::string_view line) {
  ParsedLine parsed;
  parser.Parse(line, parsed);
  for (const auto& reading : parsed.observations) CHECK(!reading.step || *reading.step >= 0);
  for (const char c : parsed.bad) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<std::string> metrics = {"loss", "a b"};
  static const auto hypertune = shirabe::metrics::MakeHypertuneParser(metrics);
  static const auto scrapes = shirabe::metrics::MakeScrapeParser(metrics);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Check(*hypertune, text);
  Check(*scrapes, text);
  const auto status = shirabe::metrics::ParseTrainerStatus(text);
  if (!status.ok()) return 0;
  shirabe::metrics::TrainerState memory;
  const auto points = shirabe::metrics::NewObservations(*status, memory);
  if (!points.ok()) return 0;
  CHECK(points->size() <= status->metrics.size());
  CHECK(shirabe::metrics::NewObservations(*status, memory)->size() <= points->size());
  return 0;
}
