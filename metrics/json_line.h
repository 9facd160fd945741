// One JSON object a line, as the File collector's JSON format and the metrics file hold it:
//   {"step": 120, "metrics": {"loss": 0.23}}        ours
//   {"loss": 0.23, "epoch": 1, "timestamp": "2026-11-21T08:30:00Z"}   Katib's
// Both are read everywhere. "step" is the point's step, in either; "epoch" is not (a line a batch
// would overwrite itself); "timestamp" is RFC 3339 or seconds since 1970.
//
// Values are numbers or quoted numbers. NaN, Infinity and -Infinity may be bare, as Python writes
// them; null is no value, and not an error. A line that is no JSON is bad and gives nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metrics/line_parser.h"

namespace shirabe::metrics {

std::unique_ptr<LineParser> MakeJsonParser(std::vector<std::string> metrics);

// The same, with the step in "global_step", as the library hypertune writes it; see
// attempt_reader.h.
std::unique_ptr<LineParser> MakeHypertuneParser(std::vector<std::string> metrics);

}  // namespace shirabe::metrics
