// Numbers as text: the shortest form that reads back as the same double, and the strict reverse.
// Used only where a value enters or leaves (experiment/spec/parse_spec, trial/trial_template,
// metrics/line_parser, view/record_json); everywhere else a number is a number.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace shirabe {

// 0.001, 1e-05, 32, NaN, Infinity, -Infinity. Never locale-dependent.
std::string FormatNumber(double value);

// The whole of `text`, as a decimal number: optional sign, digits, point, exponent. Also nan, inf
// and infinity in any case. nullopt for anything else: "", "1_000", "0.5.1", "0,5", "0x10", " 1".
// What is too large becomes infinity, too small zero, as IEEE rounds.
std::optional<double> ParseNumber(std::string_view text);

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Doubles hold every integer up to it.
inline constexpr double kMaxExactInteger = 9007199254740992.0;  // 2^53

// Equal, or both not a number.
inline bool SameNumber(double a, double b) { return a == b || (a != a && b != b); }

// 512 B, 1.5 KiB, 2.0 GiB: for people.
std::string FormatBytes(int64_t bytes);

}  // namespace shirabe
