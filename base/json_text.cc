#include "base/json_text.h"

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

namespace shirabe {
namespace {

Status Beyond(const std::string& what) { return absl::InvalidArgumentError(what); }

// Past the closing quote of the text that begins at `at`, or the end.
size_t SkipText(std::string_view text, size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

}  // namespace

Status CheckJsonLimits(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return Beyond(absl::StrCat("the JSON has ", text.size(), " bytes, and at most ", limits.bytes,
                               " are taken"));
  }
  std::vector<int64_t> counts;  // of the values of each list and object that is open
  int64_t values = 1;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = SkipText(text, at);
      continue;
    }
    ++at;
    if (c == '{' || c == '[') {
      if (static_cast<int>(counts.size()) >= limits.levels) {
        return Beyond(absl::StrCat("the JSON has more than ", limits.levels,
                                   " levels of lists and objects in one another"));
      }
      counts.push_back(c == '{' ? 1 : -limits.values);  // a list has no limit of its own
      ++values;
    } else if ((c == '}' || c == ']') && !counts.empty()) {
      counts.pop_back();
    } else if (c == ',') {
      if (!counts.empty() && ++counts.back() > limits.keys) {
        return Beyond(absl::StrCat("an object of the JSON has more than ", limits.keys, " keys"));
      }
      ++values;
    }
    if (values > limits.values) {
      return Beyond(absl::StrCat("the JSON has more than ", limits.values, " values"));
    }
  }
  return absl::OkStatus();
}

Status CheckJsonLevels(std::string_view text, int levels) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max() / 2;
  return CheckJsonLimits(text,
                         {.bytes = text.size(), .levels = levels, .values = kAny, .keys = kAny});
}

}  // namespace shirabe
