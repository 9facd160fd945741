// Every fuzz target on every seed and on cut ones, without a fuzzer: so that targets are built, and
// what they assert holds, wherever the tests run. CMakeLists.txt gives each its own name.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file_io.h"
#include "tests/support/paths.h"

extern "C" {
using FuzzTarget = int(const uint8_t* data, size_t size);
FuzzTarget convert_fuzz;
FuzzTarget exposition_fuzz, gjson_fuzz, grpc_web_frames_fuzz, http_framing_fuzz, http_request_fuzz;
FuzzTarget json_fuzz, katib_fuzz;
FuzzTarget metric_line_fuzz, package_fuzz, reports_fuzz, spec_fuzz, submit_fuzz, template_fuzz,
    tf_events_fuzz;
FuzzTarget yaml_fuzz;
}

namespace shirabe {
namespace {

constexpr int kCuts = 8;

struct Named {
  const char* name;
  FuzzTarget* run;
};

// The name is what a failure shows.
void PrintTo(const Named& target, std::ostream* out) { *out << target.name; }

constexpr Named kTargets[] = {
    {"convert", &convert_fuzz},
    {"exposition", &exposition_fuzz},
    {"gjson", &gjson_fuzz},
    {"grpc_web", &grpc_web_frames_fuzz},
    {"http_framing", &http_framing_fuzz},
    {"http_request", &http_request_fuzz},
    {"json", &json_fuzz},
    {"katib", &katib_fuzz},
    {"metric_line", &metric_line_fuzz},
    {"package", &package_fuzz},
    {"reports", &reports_fuzz},
    {"spec", &spec_fuzz},
    {"submit", &submit_fuzz},
    {"template", &template_fuzz},
    {"tf_events", &tf_events_fuzz},
    {"yaml", &yaml_fuzz},
};

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {"", "\n", "GET /metrics\n", "x=1\n", "{\"a\": [1]}"};
  for (const char* folder : {"/tests/testdata", "/tests/fuzz/corpus", "/deploy/examples"}) {
    const std::string path = SourceDir() + folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (!entry.is_regular_file()) continue;
      auto text = ReadFile(entry.path());
      EXPECT_TRUE(text.ok()) << text.status();
      if (text.ok()) seeds.push_back(*std::move(text));
    }
  }
  return seeds;
}

TEST(FuzzTargets, AreAllListed) {
  size_t files = 0;
  const std::string folder = SourceDir() + "/tests/fuzz";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files += entry.path().string().ends_with("_fuzz.cc") ? 1 : 0;
  }
  EXPECT_EQ(std::size(kTargets), files);
}

class Fuzz : public testing::TestWithParam<Named> {};

TEST_P(Fuzz, SeedsAndWhatIsLeftOfThemWhenCut) {
  const std::vector<std::string> seeds = Seeds();
  ASSERT_GT(seeds.size(), 20u);
  for (const std::string& seed : seeds) {
    for (int i = 1; i <= kCuts; ++i) {
      const std::string input = seed.substr(0, seed.size() * i / kCuts);
      GetParam().run(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fuzz, testing::ValuesIn(kTargets),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace shirabe
