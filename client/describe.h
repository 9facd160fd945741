// All about one record as text for people: what it is, how it is, and why. Called by the command
// line; reads through the client.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "client/client.h"

namespace shirabe::client {

// kNotFound if there is no such record.
StatusOr<std::string> DescribeExperiment(Client& client, const ExperimentKey& key, absl::Time now);
StatusOr<std::string> DescribeTrial(Client& client, const TrialKey& key, absl::Time now);

}  // namespace shirabe::client
