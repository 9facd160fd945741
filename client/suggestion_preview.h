// What the algorithm of an experiment would try next, without storing anything. Called by the
// local client. It reads the store and starts no thread.
#pragma once

#include <string>

#include "base/status.h"
#include "client/client.h"
#include "db/store.h"
#include "experiment/experiment_controller.h"

namespace shirabe::client {

// From the trials in `store` if the experiment is there, else as if it had no trial. The points of
// spec.shirabe.start that have not been tried come first.
StatusOr<v1::SuggestReply> SuggestNext(db::Store& store, const v1::Experiment& experiment,
                                       int count);

// What has come of asking for a trial of an ask-and-tell experiment. Used by the client over a
// store. Any thread.

// The trial that the caller has open, running; else why there is none and will not be; else it is
// pending, with the reason for that, if it is known: `controller` is that of this process, or null.
StatusOr<v1::AskReply> FindAskReply(db::Store& store, const ExperimentKey& key,
                                    const std::string& caller, experiment::Controller* controller);

}  // namespace shirabe::client
