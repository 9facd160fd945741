// Prometheus' text format, and OpenMetrics', which differs little: what a program says at its
// /metrics. One sample a line:
//   name{label="value",other="…"} 0.25 1795249800000 # {trace="…"} 0.3
// where labels, time stamp (milliseconds; in OpenMetrics seconds) and exemplar may be missing, and
// a name that is no word stands in quotes within the braces. Pure functions; any bytes are
// accepted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace shirabe::metrics {

// A time series: its name and its labels. Also what a wanted metric is in this format: the series
// of that name whose labels are at least these.
struct Series {
  std::string name;
  std::map<std::string, std::string> labels;
  bool operator==(const Series&) const = default;
};

struct Sample {
  Series series;
  double value = 0;
  std::optional<absl::Time> time;
};

struct Exposition {
  std::vector<Sample> samples;  // in the order of the page
  int bad_lines = 0;            // that are neither a sample nor a comment
  std::string bad_sample;       // the first of them, shortened
};

Exposition ParseExposition(std::string_view text, bool open_metrics);

// `loss` or `loss{split="valid"}`; nullopt if it is neither.
std::optional<Series> ParseSeries(std::string_view text);

// As it is written, labels in the order of their names.
std::string ToString(const Series& series);

// The sample of the series that is wanted: of several the one that has no labels beyond the wanted
// ones. Null with empty `why`: there is none; with `why` in words: it is not clear which.
const Sample* FindSample(const Exposition& page, const Series& wanted, std::string& why);

}  // namespace shirabe::metrics
