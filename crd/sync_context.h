// What the parts of the synchronisation share. All of it outlives them.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/rate_limits.h"
#include "base/task_pool.h"
#include "client/client.h"
#include "crd/trial_window.h"
#include "kube/api_client.h"
#include "kube/watch_cache.h"

namespace shirabe::crd {

struct SyncContext {
  kube::Client* kube = nullptr;
  client::Client* store = nullptr;
  Clock* clock = nullptr;
  kube::WatchCache* experiments = nullptr;
  kube::WatchCache* trials = nullptr;    // those that we made
  TrialObjectIndex* presence = nullptr;  // of those
  TaskPool* writers = nullptr;           // who waits for the answers about Trial objects
  // Of statuses that tell of no end: where it is used up, those that are not old yet wait.
  RateLimiter* progress_writes = nullptr;
  std::string namespace_name;  // only this one; "" = all
  bool labelled_only = false;  // the definitions are not ours
  std::string instance;        // this process, for events
  int finished_trials = 50;    // objects of trials that have ended, for each experiment
};

// How much longer a status that tells of no end waits, being so old: at least until `least`, and up
// to `most` for its share of progress_writes. 0 = it is written now.
absl::Duration ProgressWait(const SyncContext& context, absl::Duration age, absl::Duration least,
                            absl::Duration most);

}  // namespace shirabe::crd
