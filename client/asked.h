// What has come of asking for a trial of an ask-and-tell experiment: see Client::FindAsked. Used by
// the client over a store. Any thread.
#pragma once

#include <string>

#include "client/client.h"
#include "db/store.h"

namespace shirabe::client {

// The trial that whoever asks has open, running; else why there is none and will not be; else it is
// pending, with the reason for that, if it is known.
StatusOr<Asked> FindAsked(db::Store& store, const ExperimentKey& key, const std::string& caller);

}  // namespace shirabe::client
