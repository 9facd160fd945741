// One line of output → the observations in it. A LineParser knows one notation: text in Katib's
// default format and its relatives (here), a user's regular expressions (metrics_format.h), JSON
// (json_line.h). Collectors make one for each call. Parse is const and may run on several threads,
// each with a ParsedLine of its own.
//
// A wanted metric followed by something that only looks like a number is never half a number: the
// line is bad, and says why. The line's other observations stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace shirabe::metrics {

struct ParsedObservation {
  int metric = 0;  // index into the wanted metrics
  double value = 0;
  std::optional<int64_t> step;
  std::optional<absl::Time> time;
};

struct ParsedLine {
  std::vector<ParsedObservation> observations;  // in the order of the line
  std::string bad;      // the first thing that could not be read, and why; "" = none
  bool done = false;    // JSON: {"done": true}
  std::string scratch;  // for the parser

  void Clear();
};

class LineParser {
 public:
  virtual ~LineParser() = default;
  // `line` has no line end; `out` is cleared first.
  virtual void Parse(std::string_view line, ParsedLine& out) const = 0;
  // Whether a carriage return ends a line, as a progress bar means it.
  virtual bool ReturnEndsLine() const { return true; }
};

// Makes a parser for these metrics, which are distinct and not empty.
using ParserMaker = std::function<std::unique_ptr<LineParser>(std::vector<std::string> metrics)>;

// `loss=0.3`, `loss: 0.3`, `"loss": 0.3`, several on a line, after any text. A name is found only
// as a whole word (letters, digits and _, joined by . / -). A line may begin with an RFC 3339 time.
std::unique_ptr<LineParser> MakeTextParser(std::vector<std::string> metrics);

// The names that text in that format gives numbers to, each once, in the order of their first
// appearance, at most `limit`: what a trial whose metric was not found did print.
std::vector<std::string> NamesIn(std::string_view text, size_t limit);

// ---- for the other notations -------------------------------------------------------------------

// The characters from `at` on that belong to one number or would have to: "0.5" of "0.5 s", but
// "1_000", "0,5", "0x10" and "0.5.1" whole, so that they are refused and not cut short.
std::string_view NumberToken(std::string_view line, size_t at);

// Why `token` is not a number, in words.
std::string WhyNotNumber(std::string_view token);

// The RFC 3339 time at the beginning of `line`, if there is one before the first space.
std::optional<absl::Time> LeadingTime(std::string_view line);

// An RFC 3339 time; without a zone it is taken as UTC.
std::optional<absl::Time> ParseTime(std::string_view text);

// Index of `name` in `metrics`, or -1.
int FindMetric(const std::vector<std::string>& metrics, std::string_view name);

}  // namespace shirabe::metrics
