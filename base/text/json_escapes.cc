#include "base/text/json_escapes.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text/json_text.h"

namespace shirabe {
namespace {

constexpr size_t kEscape = 6;  // characters of \ud83d

// The number of the escape that begins at i; 0 if none does.
uint32_t EscapeAt(std::string_view text, size_t i) {
  const std::string_view escape = text.substr(std::min(i, text.size()), kEscape);
  uint32_t code = 0;
  if (escape.size() < kEscape || escape[0] != '\\' || escape[1] != 'u') return 0;
  const auto read = std::from_chars(escape.data() + 2, escape.data() + kEscape, code, 16);
  return read.ptr == escape.data() + kEscape ? code : 0;
}

// The character of the pair of escapes that begins at i; 0 if none does.
uint32_t PairAt(std::string_view text, size_t i) {
  const uint32_t high = EscapeAt(text, i);
  const uint32_t low = EscapeAt(text, i + kEscape);
  if (high < 0xD800 || high > 0xDBFF || low < 0xDC00 || low > 0xDFFF) return 0;
  return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

bool HasPair(std::string_view text) {
  for (size_t i = 0; (i = text.find("\\u", i)) != text.npos; ++i) {
    if (PairAt(text, i) != 0) return true;
  }
  return false;
}

void AppendUtf8(uint32_t character, std::string& text) {
  text += static_cast<char>(0xF0 | (character >> 18));
  for (int bits = 12; bits >= 0; bits -= 6) {
    text += static_cast<char>(0x80 | ((character >> bits) & 0x3F));
  }
}

}  // namespace

std::string JoinEscapedPairs(std::string_view text) {
  if (!HasPair(text) || ReadJsonOrDiscarded(text, kRequestJson).is_discarded()) {
    return std::string(text);
  }
  std::string joined;
  for (size_t i = 0; i < text.size();) {
    const uint32_t character = text[i] == '\\' ? PairAt(text, i) : 0;
    if (character != 0) {
      AppendUtf8(character, joined);
      i += 2 * kEscape;
    } else {
      // Of a backslash what it escapes too, which may be another.
      const size_t length = text[i] == '\\' ? 2 : 1;
      joined += text.substr(i, length);
      i += length;
    }
  }
  return joined;
}

}  // namespace shirabe
