#include "metrics/terminal_text.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace shirabe::metrics {
namespace {

constexpr char kEscape = '\x1b';

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0 = not UTF-8
};

uint8_t Byte(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

size_t SequenceLength(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

Character Decode(std::string_view text, size_t at) {
  const size_t bytes = SequenceLength(Byte(text, at));
  if (bytes <= 1) return {Byte(text, at), bytes};
  if (at + bytes > text.size()) return {};
  uint32_t code = Byte(text, at) & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((Byte(text, at + i) & 0xc0) != 0x80) return {};
    code = code << 6 | (Byte(text, at + i) & 0x3f);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return overlong || surrogate || code > 0x10ffff ? Character{} : Character{code, bytes};
}

struct Range {
  uint32_t first, last;
};

// What surrounds numbers without being a letter: signs, punctuation, arrows, boxes, emoji. A
// whole table of letters would be right in more places and help in none that were ever seen.
constexpr Range kDecoration[] = {
    {0x80, 0xa9},     {0xab, 0xb4},      {0xb6, 0xb9},     {0xbb, 0xbf},     {0xd7, 0xd7},
    {0xf7, 0xf7},     {0x2000, 0x2bff},  {0x3000, 0x3004}, {0x3008, 0x3020}, {0xe000, 0xf8ff},
    {0xfe00, 0xfe6f}, {0xfeff, 0xff0f},  {0xff1a, 0xff20}, {0xff3b, 0xff40}, {0xff5b, 0xff65},
    {0xffe0, 0xffff}, {0x1f000, 0x1ffff}};

bool IsWord(Character c) {
  if (c.bytes == 0) return false;
  if (c.code < 0x80) {
    const uint32_t lower = c.code | 0x20;
    return (lower >= 'a' && lower <= 'z') || (c.code >= '0' && c.code <= '9') || c.code == '_';
  }
  for (const Range& range : kDecoration) {
    if (c.code >= range.first && c.code <= range.last) return false;
  }
  return true;
}

// Past a sequence that ends in BEL or ESC \ (a window title); `at` if it never ends.
size_t SkipString(std::string_view line, size_t at) {
  for (size_t i = at; i < line.size(); ++i) {
    if (line[i] == '\a') return i + 1;
    if (line[i] == kEscape && i + 1 < line.size() && line[i + 1] == '\\') return i + 2;
  }
  return at;
}

// Past the escape sequence whose ESC is at `at` (ECMA-48).
size_t SkipEscape(std::string_view line, size_t at) {
  size_t i = at + 1;
  if (i >= line.size()) return i;
  if (line[i] == ']' || line[i] == 'P' || line[i] == '_' || line[i] == '^') {
    return SkipString(line, i + 1);
  }
  if (line[i] == '[') {
    ++i;
    while (i < line.size() && line[i] >= 0x20 && line[i] <= 0x3f) ++i;
  } else {
    while (i < line.size() && line[i] >= 0x20 && line[i] <= 0x2f) ++i;
  }
  return i < line.size() && line[i] >= 0x30 && line[i] <= 0x7e ? i + 1 : i;
}

}  // namespace

std::string_view StripAnsi(std::string_view line, std::string& scratch) {
  if (line.find(kEscape) == std::string_view::npos) return line;
  scratch.clear();
  for (size_t at = 0; at < line.size();) {
    const size_t escape = std::min(line.find(kEscape, at), line.size());
    scratch.append(line.substr(at, escape - at));
    at = escape < line.size() ? SkipEscape(line, escape) : escape;
  }
  return scratch;
}

size_t WordAt(std::string_view line, size_t at) {
  const Character c = at < line.size() ? Decode(line, at) : Character{};
  return IsWord(c) ? c.bytes : 0;
}

bool WordBefore(std::string_view line, size_t at) {
  for (size_t back = 1; back <= 4 && back <= at; ++back) {
    if ((Byte(line, at - back) & 0xc0) == 0x80) continue;
    const Character c = Decode(line, at - back);
    return c.bytes == back && IsWord(c);
  }
  return false;
}

std::string Excerpt(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (out.size() >= max_bytes) return out + "…";
    const Character c = Decode(text, at);
    const bool control = c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0);
    if (c.bytes == 0 || control) {
      out += absl::StrFormat("\\x%02x", Byte(text, at));
      at += 1;
    } else {
      out += text.substr(at, c.bytes);
      at += c.bytes;
    }
  }
  return out;
}

}  // namespace shirabe::metrics
