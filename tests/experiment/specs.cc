#include "tests/experiment/specs.h"

#include <algorithm>
#include <filesystem>

#include "base/file_io.h"
#include "tests/support/paths.h"

namespace shirabe::experiment {
namespace {

const std::string kFolder = SourceDir() + "/tests/testdata/specs/";

}  // namespace

std::string ReadTestFile(const std::string& name) {
  auto text = ReadFile(kFolder + name);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *std::move(text) : "";
}

std::vector<std::string> KatibFiles() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "katib")) {
    names.push_back("katib/" + entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace shirabe::experiment
