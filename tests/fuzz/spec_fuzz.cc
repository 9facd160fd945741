// Any text as an Experiment: what is valid prints to text that reads back as the same message.
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "experiment/spec/parse_spec.h"
#include "google/protobuf/util/message_differencer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using shirabe::experiment::ParseExperiments;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& parsed : ParseExperiments(text)) {
    for (const auto& finding : parsed.findings) {
      CHECK(!finding.message.empty() && finding.line > 0);
      shirabe::experiment::FormatFinding(finding, "file");
    }
    if (shirabe::experiment::HasErrors(parsed.findings)) continue;
    const std::string yaml = shirabe::experiment::ToYaml(parsed.experiment);
    const auto again = ParseExperiments(yaml);
    CHECK(again.size() == 1);
    CHECK(!shirabe::experiment::HasErrors(again[0].findings));
    CHECK(
        google::protobuf::util::MessageDifferencer::Equals(parsed.experiment, again[0].experiment));
    CHECK(shirabe::experiment::CheckSameExperiment(parsed.experiment, again[0].experiment).ok());
  }
  return 0;
}
