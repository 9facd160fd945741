// What each attempt began with, and what it added: its trial's parent, the checkpoint that it
// resumed from, and its steps. `describe --lineage` shows it as a table, `export --lineage` as CSV
// or JSON lines. Reads page by page; used by one thread.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "client/client.h"

namespace shirabe::view {

// kNotFound if there is no such experiment.
StatusOr<std::string> DescribeLineage(client::Client& client, const ExperimentKey& key);

// A line for each attempt, in the order of trials and attempts, as CSV (after its header) or as
// JSON. Columns: trial, attempt, parent, parent_step, resumed_from (an attempt; empty: from the
// beginning), resumed_from_step, last_step, steps_gained, steps_redone, cause, seconds,
// cost.
Status EachLineageLine(client::Client& client, const ExperimentKey& key, bool csv,
                       const std::function<void(const std::string&)>& line);

}  // namespace shirabe::view
