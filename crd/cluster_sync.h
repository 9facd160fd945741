// The synchronisation of custom resources: while it lives, Experiment objects of the cluster are
// experiments of the store, and what becomes of them shows in the cluster. Started by the leader;
// threads of its own. What it needs outlives it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "client/client.h"
#include "kube/api_client.h"
#include "kube/namespace_cache.h"

namespace shirabe::crd {

struct SyncOptions {
  kube::Client* kube = nullptr;
  client::Client* store = nullptr;
  Clock* clock = nullptr;
  std::string namespace_name;                  // only this one; "" = all
  kube::NamespaceCache* namespaces = nullptr;  // null = they are not looked after
  bool adopt_all = false;  // also what no label names, where the definitions are another's
  std::string instance;    // this process, for events
  int workers = 4;
  int finished_trials = 50;                    // objects of ended trials, for each experiment
  absl::Duration interval = absl::Seconds(1);  // between two writes about one experiment
};

class ClusterSync {
 public:
  // Returns at once; what is wrong, it says and tries again.
  static std::unique_ptr<ClusterSync> Start(SyncOptions options);
  virtual ~ClusterSync() = default;

  // Why it does not follow the cluster now, in words; "" if it does, also while the store fails.
  virtual std::string LastError() const = 0;
};

}  // namespace shirabe::crd
