// How far the attempts of a trial are, or of what follows an experiment (spec.shirabe.onSuccess),
// for those who read or follow a log. Any thread.
#pragma once

#include "base/names.h"
#include "base/status.h"
#include "client/client.h"

namespace shirabe::client {

struct Execution {
  int32_t attempts = 0;
  bool ended = false;  // there will be no more of them
};

// kNotFound if there is no such trial, or if nothing follows the experiment.
StatusOr<Execution> ExecutionOf(Client& client, const TrialKey& key);

}  // namespace shirabe::client
