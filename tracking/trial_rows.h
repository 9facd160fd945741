// The values of a trial that count, one after the other: for exports, which must not hold all of
// them. By attempt, step and metric.
#pragma once

#include <functional>

#include "base/names.h"
#include "base/status.h"
#include "client/client.h"

namespace shirabe::tracking {

// An error of `row` ends it, and is returned.
Status EachRow(client::Client& client, const TrialKey& key,
               const std::function<Status(const db::StoredObservation&)>& row);

}  // namespace shirabe::tracking
