// All trials of an experiment, a page at a time: for lists and exports that must not grow in memory
// with the experiment. A page is small enough to stay in the processor's cache.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "client/client.h"

namespace shirabe::client {

// In the order of their numbers, until `page` (which may change what it is given) says no. It is
// not called for an experiment without trials.
Status EachTrialPage(Client& client, const ExperimentKey& key,
                     const std::function<bool(std::vector<v1::Trial>&)>& page);

}  // namespace shirabe::client
