// Any bytes as an event file: its records, its events, and the way that the collector finds back
// after damage. Reading must neither crash nor hang, must end at the end of the bytes, and must
// never take a value from a record whose checksum is wrong. Seeds: tests/testdata/events.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "metrics/tf_event.h"

namespace {

using shirabe::metrics::Record;

void ReadEvent(std::string_view bytes) {
  shirabe::metrics::TfEvent event;
  if (!shirabe::metrics::DecodeEvent(bytes, event)) return;
  for (const auto& value : event.values) {
    std::string why;
    CHECK(shirabe::metrics::ScalarOf(value, why).has_value() == why.empty());
  }
}

// As the collector goes through a file.
void ReadFile(std::string_view bytes) {
  while (!bytes.empty()) {
    const Record record = shirabe::metrics::RecordAt(bytes);
    CHECK(record.bytes > 0);
    if (record.state == Record::State::kPartial) {
      CHECK(record.bytes > bytes.size());
      return;
    }
    if (record.state == Record::State::kBadLength) {
      const size_t next = shirabe::metrics::FindRecord(bytes.substr(1));
      if (next == std::string_view::npos) return;
      bytes.remove_prefix(next + 1);
      continue;
    }
    if (record.state == Record::State::kWhole) ReadEvent(record.data);
    bytes.remove_prefix(record.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadFile(bytes);
  // Checksums keep a fuzzer out of what lies behind them.
  ReadEvent(bytes);
  shirabe::metrics::SummaryValue tensor;
  tensor.tensor = bytes;
  std::string why;
  CHECK(shirabe::metrics::ScalarOf(tensor, why).has_value() == why.empty());
  return 0;
}
