// The file of $CLOUD_ML_HP_METRIC_FILE, as the library cloudml-hypertune writes it: with each
// report it truncates the file and writes its last 100 reports anew, one JSON object a line,
// numbers as strings:
//   {"checkpoint_path": "", "global_step": "3", "loss": "0.23", "timestamp": 1795249800.5, "trial":
//   "7"}
// Each line counts once, whatever the file looks like meanwhile: the cursor keeps a fingerprint of
// each of the last 100 lines read, and a line among them is the same report again (its time stamp
// makes it unique). What is half written, or changes while it is read, is left to the next call. A
// report that came and went between two calls, more than 100 reports apart, was never to be seen.
//
// A global_step of 0 is also what the library writes for none. A metric's first point may be at
// step 0; a later 0 means none, and is counted. Stateless and thread-safe.
#pragma once

#include <string>

#include "base/status.h"
#include "metrics/intake.h"

namespace shirabe::metrics {

Status ReadHypertune(const std::string& path, Intake& intake);

}  // namespace shirabe::metrics
