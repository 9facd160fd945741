#include "tests/metrics/testing.h"

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/text/number.h"

namespace shirabe::metrics {

std::string Show(const LineParser& parser, const std::vector<std::string>& metrics,
                 std::string_view line) {
  ParsedLine parsed;
  parser.Parse(line, parsed);
  std::string text;
  for (const ParsedObservation& observation : parsed.observations) {
    absl::StrAppend(&text, text.empty() ? "" : " ", metrics[observation.metric],
                    observation.step ? absl::StrCat("@", *observation.step) : "", "=",
                    FormatNumber(observation.value));
  }
  return parsed.bad.empty() ? text : text + (text.empty() ? "!" : " !");
}

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  path_ = absl::StrCat(base == nullptr ? "/tmp" : base, "/shirabe-metrics-XXXXXX");
  CHECK(mkdtemp(path_.data()) != nullptr);
}

TempDir::~TempDir() { (void)RemoveAll(path_); }

void Write(const std::string& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
}

void Append(const std::string& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary | std::ios::app) << contents;
}

}  // namespace shirabe::metrics
