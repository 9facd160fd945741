// Plain scalars, resolved as sigs.k8s.io/yaml does (its YAML 1.1 with two differences that JSON
// forces: timestamps stay text, and so does a float too large for a double).
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

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

}  // namespace shirabe
