// Any path on any object: an answer, the same one twice, and one that Validate foretold.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trial/gjson/gjson.h"

namespace shirabe::trial {
namespace {

// An object of our own, so that a fuzzer that finds only paths goes deep as well.
const Json& Sample() {
  static const Json sample = {
      {"status",
       {{"phase", "Succeeded"},
        {"active", 1},
        {"conditions",
         {{{"type", "Complete"}, {"status", "True"}}, {{"type", "Failed"}, {"status", "False"}}}}}},
      {"a.b", {1, 2.5, true, nullptr, "text", {{"x", {{"y", {1}}}}}}}};
  return sample;
}

void Check(const std::string& path, const Json& object) {
  const bool valid = ValidateGjson(path).ok();
  const auto selected = SelectGjson(path, object);
  const auto holds = MatchesGjson(path, object);
  CHECK(selected.ok() == valid);
  CHECK(holds.ok() == valid);
  CHECK(!valid || !*holds || !selected->is_null());
  CHECK(!valid || *selected == *SelectGjson(path, object));
}

// Text is a path, a newline, and JSON.
void RunOne(std::string_view text) {
  const size_t cut = text.find('\n');
  const std::string path(text.substr(0, cut));
  Check(path, Sample());
  if (cut == std::string_view::npos) return;
  const Json object = Json::parse(text.substr(cut + 1), nullptr, /*allow_exceptions=*/false);
  if (!object.is_discarded()) Check(path, object);
}

}  // namespace
}  // namespace shirabe::trial

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shirabe::trial::RunOne(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
