// Any bytes as a page of metrics: neither crash nor hang, complaints in printable words, and what
// was read of a series is what its text reads as again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "metrics/http_scraper.h"
#include "metrics/prometheus_text.h"

namespace {

void CheckPrintable(const std::string& text) {
  for (const char c : text) CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool open_metrics : {false, true}) {
    const auto page = shirabe::metrics::ParseExposition(text, open_metrics);
    CheckPrintable(page.bad_sample);
    for (const auto& sample : page.samples) {
      CHECK(!sample.series.name.empty());
      std::string why;
      const auto* found = shirabe::metrics::FindSample(page, sample.series, why);
      CHECK(found != nullptr || !why.empty());
      CheckPrintable(why);
    }
  }
  shirabe::metrics::ScrapeState memory({"loss", "loss{a=\"b\"}"}, "/nonexistent");
  const std::string lines = memory.LinesFor(text, false, absl::FromUnixSeconds(1));
  CHECK(lines.empty() || lines.back() == '\n');
  // The same page again says nothing new.
  CHECK(memory.LinesFor(text, false, absl::FromUnixSeconds(2)).empty());
  return 0;
}
