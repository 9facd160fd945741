// A client for one caller: what it may not do is refused (kPermissionDenied) before anything is
// looked at, and what it may not see is not in its lists. Made by the server's endpoints for a
// call, over the client of its store, which outlives it. As thread-safe as that one.
#pragma once

#include <memory>

#include "client/local_client.h"
#include "service/common/authorization.h"
#include "service/common/suggestion_scheduler.h"

namespace shirabe::service {

struct GuardOptions {
  // Trials run in a cluster, under the rights of their namespace, and not as processes of the
  // server's own machine: a user who is no administrator may run programs, and a template may name
  // whatever the cluster knows.
  bool in_cluster = false;
  // Whose turn it is to compute suggestions; null = everybody's.
  SuggestionScheduler* turns = nullptr;
};

std::unique_ptr<client::Client> Guard(client::LocalClient& client, Principal principal,
                                      GuardOptions rights);

}  // namespace shirabe::service
