// Plain scalars, resolved as sigs.k8s.io/yaml does (its YAML 1.1 with two differences that JSON
// forces: timestamps stay text, and so does a float too large for a double); and the escapes of
// JSON that YAML does not know.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text/json_text.h"
#include "base/text/number.h"
#include "base/text/yaml_tree.h"

namespace shirabe {
namespace {

using Kind = YamlNode::Kind;

bool Contains(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool IsTrueWord(std::string_view text) {
  return Contains(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"});
}

bool IsFalse(std::string_view text) {
  return Contains(text,
                  {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"});
}

bool IsNull(std::string_view text) { return Contains(text, {"", "~", "null", "Null", "NULL"}); }

std::optional<double> SpecialFloat(std::string_view text) {
  if (Contains(text, {".nan", ".NaN", ".NAN"})) return std::numeric_limits<double>::quiet_NaN();
  if (Contains(text, {".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"})) return kInfinity;
  if (Contains(text, {"-.inf", "-.Inf", "-.INF"})) return -kInfinity;
  return std::nullopt;
}

// The base that the prefix of an unsigned integer names, and the prefix removed.
int ParseBasePrefix(std::string& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  switch (digits[1]) {
    case 'x':
    case 'X': digits.erase(0, 2); return 16;
    case 'o':
    case 'O': digits.erase(0, 2); return 8;
    case 'b':
    case 'B': digits.erase(0, 2); return 2;
    default: digits.erase(0, 1); return 8;
  }
}

struct Integer {
  double value = 0;
  std::optional<int64_t> exact;
};

// Decimal, 0x…, 0b…, 0o… or 0…: an optional sign, underscores already removed.
std::optional<Integer> ParseInteger(const std::string& plain) {
  const bool negative = plain[0] == '-';
  std::string digits = plain.substr(negative || plain[0] == '+' ? 1 : 0);
  const int base = ParseBasePrefix(digits);
  if (digits.empty() || !std::isxdigit(static_cast<unsigned char>(digits[0]))) return std::nullopt;
  uint64_t magnitude = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, magnitude, base);
  if (end != last || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too large for 64 bits. The value is what a decimal reader makes of it; other bases are rare
    // enough to stay text, as they are not written in practice.
    if (base != 10) return std::nullopt;
    return Integer{ParseNumber(plain).value_or(0), std::nullopt};
  }
  Integer result;
  result.value = negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (magnitude < kLimit || (negative && magnitude == kLimit)) {
    result.exact = static_cast<int64_t>(negative ? -magnitude : magnitude);
  }
  return result;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool IsFloatSyntax(std::string_view text) {
  size_t i = 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - start;
  };
  const auto take = [&](std::string_view any) {
    if (i == text.size() || any.find(text[i]) == any.npos) return false;
    ++i;
    return true;
  };
  take("+-");
  const size_t whole = digits();
  const size_t fraction = take(".") ? digits() : 0;
  if (whole + fraction == 0) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return i == text.size();
}

bool ResolveNumber(YamlNode& scalar) {
  const std::string_view text = scalar.text;
  if (const auto special = SpecialFloat(text)) {
    scalar.number = *special;
    return true;
  }
  if (text.empty() || std::string_view("0123456789+-.").find(text[0]) == text.npos) return false;
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  if (plain.empty()) return false;
  if (const auto integer = ParseInteger(plain)) {
    scalar.number = integer->value;
    scalar.integer = integer->exact;
    return true;
  }
  if (!IsFloatSyntax(plain)) return false;
  const auto value = ParseNumber(plain);
  if (!value || !std::isfinite(*value)) return false;
  scalar.number = *value;
  return true;
}

}  // namespace

void ResolvePlain(YamlNode& scalar) {
  scalar.boolean = IsTrueWord(scalar.text);
  if (IsNull(scalar.text)) {
    scalar.kind = Kind::kNull;
  } else if (scalar.boolean || IsFalse(scalar.text)) {
    scalar.kind = Kind::kBoolean;
  } else {
    scalar.kind = ResolveNumber(scalar) ? Kind::kNumber : Kind::kString;
  }
}

std::string Describe(const YamlNode& node) {
  std::string text = node.text.size() <= 40 ? node.text : node.text.substr(0, 37) + "...";
  switch (node.kind) {
    case Kind::kNull: return "null";
    case Kind::kBoolean: return "the boolean " + text;
    case Kind::kNumber: return "the number " + text;
    case Kind::kString: return "\"" + text + "\"";
    case Kind::kSequence: return "a list";
    case Kind::kMapping: return "a mapping";
  }
  return "";
}

// ---- escapes of JSON ----------------------------------------------------------------------------

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
