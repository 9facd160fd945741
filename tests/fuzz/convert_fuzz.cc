// Any text as a file of another system, as each of them, and as the config of a job: what comes
// without an error is a valid Experiment, which reads back as itself, and every field has its line.
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "convert/conversion.h"
#include "convert/report.h"
#include "experiment/spec/parse_spec.h"

namespace {

using shirabe::convert::Conversion;

void CheckConversion(const Conversion& conversion) {
  shirabe::convert::ReportLines(conversion, "file");
  CHECK(shirabe::convert::ReportJson(conversion, "file")["fields"].size() ==
        conversion.notes.size());
  for (const auto& finding : conversion.findings) CHECK(!finding.message.empty());
  if (shirabe::experiment::HasErrors(conversion.findings)) return;
  for (const auto& note : conversion.notes) {
    const bool left_out = note.outcome == shirabe::convert::Outcome::kLeftOut;
    CHECK(note.became.empty() == left_out);
    CHECK(!left_out || !note.remark.empty());
  }
  const auto parsed =
      shirabe::experiment::ParseExperiments(shirabe::experiment::ToYaml(conversion.experiment));
  CHECK(parsed.size() == 1);
  CHECK(!shirabe::experiment::HasErrors(parsed[0].findings));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto found = shirabe::convert::ConvertIfForeign(text, {.name = "fuzz"});
  if (found) CheckConversion(*found);
  for (const std::string& format : shirabe::convert::FormatNames()) {
    CheckConversion(shirabe::convert::Convert(text, {.from = format, .name = "fuzz"}));
  }
  CheckConversion(shirabe::convert::ConvertTrainingJob(
      {.name = "fuzz", .config = std::string(text), .args = {"--a"}}));
  return 0;
}
