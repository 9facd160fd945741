// Katib's metricsFormat: regular expressions with two groups, the name and the value, and every
// match in a line counts. RE2, so that no expression can take more than linear time. A collector
// compiles them once and shares them between its calls and threads.
#pragma once

#include <memory>

#include "base/status.h"
#include "metrics/line_parser.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "re2/re2.h"

namespace shirabe::metrics {

// For every expression of a user: nothing is logged, and what would take much memory is refused.
RE2::Options PatternOptions();

struct Patterns;
using PatternsPtr = std::shared_ptr<const Patterns>;  // shared by a collector and its parsers

// kInvalidArgument, naming spec.metricsCollectorSpec.source.filter.metricsFormat[i], for what RE2
// refuses and for fewer than two groups. Null where there is no filter.
StatusOr<PatternsPtr> CompilePatterns(const v1::FilterSpec& filter);

// Parsers of text by these patterns; of the default format (line_parser.h) without any.
//
// A number that goes on behind the value's group, where the expression ends with that group, is
// read whole: Katib's own default filter, written out, would make 1 of "loss=1e-5".
ParserMaker TextParserMaker(PatternsPtr patterns);

}  // namespace shirabe::metrics
