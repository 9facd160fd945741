// Takes an attempt's new metric values from its collector into the batch, the attempt's cursor and
// the trial's observation, all of which are committed together.
#pragma once

#include "base/status.h"
#include "db/store.h"
#include "experiment/state.h"
#include "metrics/collector.h"

namespace shirabe::experiment {

struct Ingested {
  bool news = false;  // something was read
  bool more = false;  // there is more to read at once
};

// Reads on from the attempt's cursor. `source` says where, and whether the program has ended.
StatusOr<Ingested> Ingest(State& state, Live& live, const metrics::Source& source,
                          db::Store& store);

}  // namespace shirabe::experiment
