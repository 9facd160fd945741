// The token that proves a report is of the attempt that was handed out: what `ask -o env` prints,
// and `tell` and `report` find again in their environment.
#pragma once

namespace shirabe::cmd {

// Beside SHIRABE_TRIAL, whose attempt's it is. In hexadecimal.
inline constexpr char kTrialTokenVariable[] = "SHIRABE_TRIAL_TOKEN";

}  // namespace shirabe::cmd
