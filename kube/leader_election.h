// Leader election by a coordination.k8s.io Lease, as controllers do: one of several replicas leads.
// The lease is no fence: what the leader writes to the database carries the epoch of the database's
// own lease. Clocks of replicas are never compared. One thread of its own; needs get, create and
// patch of leases.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kube/api_client.h"

namespace shirabe::kube {

struct ElectionOptions {
  // Outlives the election. Best one of its own, with an `answer` of renew/2 and one try: a call
  // that hangs for longer costs the leadership.
  Client* client = nullptr;
  Clock* clock = nullptr;
  std::string namespace_name;
  std::string name;
  std::string identity;  // of this replica: its pod's name
  absl::Duration lease = absl::Seconds(15);
  absl::Duration renew = absl::Seconds(10);  // leadership is given up when not renewed for so long
  absl::Duration retry = absl::Seconds(2);
};

class Election {
 public:
  static std::unique_ptr<Election> Start(ElectionOptions options);
  // Gives the lease up, if it holds it: call when nothing is led any more.
  virtual ~Election() = default;

  // True once this replica leads; false if `timeout` passed first.
  virtual bool Await(absl::Duration timeout) = 0;
  // False as soon as `renew` has passed without a renewal, even if our thread hangs; once lost,
  // this replica is a candidate again.
  virtual bool leads() const = 0;
  virtual std::string holder() const = 0;   // as last seen; "" = none
  virtual int64_t transitions() const = 0;  // of the lease: grows when it changes hands
  virtual std::string LastError() const = 0;
};

}  // namespace shirabe::kube
