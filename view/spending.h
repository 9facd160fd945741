// What attempts and experiments have taken, in seconds and money, as people read it. Money is only
// spoken of where a machine has a price. Called by the tables and descriptions. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/records/attempt_spending.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::view {

using client::Spending;
using client::SpendingOf;

// The experiment's record counts closed attempts only: this puts the open ones on top.
void AddRunning(const std::vector<v1::Attempt>& open, absl::Time now, v1::Experiment& experiment);

// 12.50, 0.0417, 3.1e-05: cents where they say enough.
std::string AmountText(double amount);
// 0.0417 USD; "" for nothing.
std::string MoneyText(const v1::Experiment& experiment, double amount);
// 0.4s, 12.5s, then as ages are: 12m.
std::string SecondsText(double seconds);

// Cost, budget, waste, preemptions and refused writes as (label, text); "" = nothing to say. The
// experiment is one with its running attempts added.
std::vector<std::pair<std::string, std::string>> SpendingLines(const v1::Experiment& experiment);

// How often the platform has taken machines of each pool away, and how often to save there so that
// what is done again stays below a twentieth of the time: half an interval is lost, on average.
// A table; "" without a preemption. `interval_seconds`: what the experiment asks for, 0 = nothing.
std::string PreemptionTable(const std::vector<v1::Attempt>& attempts, double interval_seconds,
                            absl::Time now);

}  // namespace shirabe::view
