// Reads one attempt: first the metrics file of the contract (JSON lines, see json_line.h), to its
// end, then what else its collector reads. A metric that the metrics file has named is taken from
// nowhere else: whoever reports it there means it. Every collector is a call of Collect here.
// Stateless and thread-safe.
#pragma once

#include <string>

#include "base/status.h"
#include "metrics/collector.h"
#include "metrics/parse.h"

namespace shirabe::metrics {

// What a collector reads besides the metrics file.
struct Feed {
  std::string path;  // "" = nothing
  ParserMaker make_parser;
};

StatusOr<Collected> ReadAttempt(const Source& source, const Feed& feed,
                                const v1::CollectorCursor& cursor);

}  // namespace shirabe::metrics
