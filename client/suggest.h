// What the algorithm of an experiment would try next, without storing anything. Called by the
// local client. It reads the store and starts no thread.
#pragma once

#include "base/status.h"
#include "client/client.h"
#include "db/store.h"

namespace shirabe::client {

// From the trials in `store` if the experiment is there, else as if it had no trial. The points of
// spec.shirabe.start that have not been tried come first.
StatusOr<Candidates> SuggestNext(db::Store& store, const v1::Experiment& experiment, int count);

}  // namespace shirabe::client
