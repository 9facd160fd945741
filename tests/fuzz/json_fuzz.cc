// Any text as JSON: what is within the limits is read as the parser alone reads it, and is no
// deeper than the limit.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/text/json_text.h"

namespace {

int LevelsOf(const nlohmann::json& json) {
  int levels = 0;
  if (!json.is_structured()) return levels;
  for (const auto& item : json) levels = std::max(levels, LevelsOf(item));
  return levels + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shirabe;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!CheckJsonLimits(text, kRequestJson).ok()) {
    CHECK(!ParseJson(text, kRequestJson).ok());
    return 0;
  }
  const auto json = ParseJson(text, kRequestJson);
  const auto alone = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  CHECK(json.ok() != alone.is_discarded());
  if (!json.ok()) return 0;
  CHECK(LevelsOf(*json) <= kRequestJson.levels);
  CHECK(*json == alone);
  CHECK(ParseServerJson(text) == alone);
  return 0;
}
