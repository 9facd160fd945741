// The files in algorithms/ and stoppers/ are exactly the registered names: a registrar that the
// linker drops, or a file without one, would be noticed by nobody else.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"
#include "tests/support/paths.h"

namespace shirabe::suggestion {
namespace {

std::vector<std::string> FilesIn(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(SourceDir()) / "suggestion" / folder;
  std::vector<std::string> names;
  if (!std::filesystem::exists(path)) return names;
  for (const auto& file : std::filesystem::directory_iterator(path)) {
    if (file.path().extension() == ".cc") names.push_back(file.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A file is named after its variant, with _ where the name has another character.
template <class Info>
std::vector<std::string> RegisteredIn() {
  std::vector<std::string> names;
  for (std::string name : Registry<Info>::Get().Names()) {
    if (name == "tell") continue;  // of settings_test.cc
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SuggestionRegistry, FilesAndNamesAreTheSame) {
  EXPECT_EQ(RegisteredIn<AlgorithmInfo>(), FilesIn("algorithms"));
  EXPECT_EQ(RegisteredIn<StopperInfo>(), FilesIn("stoppers"));
}

TEST(SuggestionRegistry, EveryAlgorithmSaysWhatItIs) {
  for (const std::string& name : Registry<AlgorithmInfo>::Get().Names()) {
    if (name == "tell") continue;
    const AlgorithmInfo& info = *Registry<AlgorithmInfo>::Get().Find(name);
    EXPECT_FALSE(info.help.empty()) << name;
    for (const SettingInfo& setting : info.settings) EXPECT_FALSE(setting.help.empty()) << name;
    for (const SettingInfo& setting : info.settings) {
      if (setting.default_value.empty()) continue;
      EXPECT_TRUE(ValidateSettings(info.settings, {{setting.name, setting.default_value}}).ok());
    }
  }
}

}  // namespace
}  // namespace shirabe::suggestion
