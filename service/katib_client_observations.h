// The observations of Katib's clients, kept where ours are: reports go to the trial's owner and are
// durable when it has committed them, as those of any program. Made by the server for one call, or
// for all calls of a port.
//
// A trial is found by "namespace/name", or by its name: in `ns`, or where that is "" in the one
// namespace that has such a trial; with several, kInvalidArgument names them. Observations belong
// to their trial and go when its experiment is deleted, so that Delete refuses
// (kFailedPrecondition) what is there; and whoever runs a trial here also stops it, so that
// SetEarlyStopped is OK only for a trial that has been.
#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "service/katib_observations.h"

namespace shirabe::service {

// The client outlives what is made of it.
std::unique_ptr<KatibObservations> MakeClientObservations(client::Client& client,
                                                          const std::string& ns);
// One that is its own.
std::unique_ptr<KatibObservations> MakeClientObservations(std::unique_ptr<client::Client> client,
                                                          const std::string& ns);

}  // namespace shirabe::service
