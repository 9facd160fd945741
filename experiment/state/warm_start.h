// What earlier experiments found, as the algorithm of a new one may learn from it
// (spec.shirabe.warmStart). Two spaces match if every parameter of the new one was searched before,
// with the same kind of values; bounds may differ. The objective must be the same metric in the
// same direction, or the losses would mean something else.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "db/store.h"
#include "suggestion/history.h"

namespace shirabe::experiment {

struct WarmStart {
  std::vector<suggestion::PriorTrial> trials;  // by source, then by number
  int64_t breaking = 0;            // a constraint of this experiment, or without the metric of one
  int64_t left_out = 0;            // trials outside of the new space
  std::vector<std::string> notes;  // what differs, or is gone, in words; each names its experiment
};

// "38 trials of earlier experiments, 4 left out: …", with the notes.
std::string ToString(const WarmStart& warm_start);

// Reads the trials that had ended with a result when `experiment` was created: the same ones each
// time, even if an earlier experiment still runs. One that no longer exists, or no longer matches,
// is left out with a note. Errors are the store's.
StatusOr<WarmStart> ReadWarmStart(db::Store& store, const v1::Experiment& experiment,
                                  const suggestion::Space& space);

// Before an experiment is created: kInvalidArgument, naming the earlier experiment, the parameter
// and the fix, if one does not exist or does not match.
Status CheckWarmStart(db::Store& store, const v1::Experiment& experiment);

}  // namespace shirabe::experiment
