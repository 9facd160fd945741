#include "base/text/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shirabe {
namespace {

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) != lower[i]) return false;
  }
  return true;
}

std::optional<double> ParseUnsigned(std::string_view text) {
  if (EqualsIgnoringCase(text, "nan")) return std::numeric_limits<double>::quiet_NaN();
  if (EqualsIgnoringCase(text, "inf") || EqualsIgnoringCase(text, "infinity")) {
    return std::numeric_limits<double>::infinity();
  }
  if (text.empty() || !(text[0] == '.' || (text[0] >= '0' && text[0] <= '9'))) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) {
    return std::nullopt;
  }
  // from_chars leaves the value alone when it is out of range; strtod rounds it.
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);
  }
  return value;
}

}  // namespace

std::string FormatNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end);
}

std::optional<double> ParseNumber(std::string_view text) {
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  const auto value = ParseUnsigned(sign ? text.substr(1) : text);
  if (!value) return std::nullopt;
  return text[0] == '-' ? -*value : *value;
}

std::string FormatBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // What one decimal would round up to 1024.0 is 1.0 of the next unit.
  for (; amount >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return absl::StrFormat("%.1f %s", amount, kUnits[unit]);
}

}  // namespace shirabe
