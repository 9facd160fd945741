// What happened to one experiment, as Events of the cluster on its object and, of one trial, on the
// Trial object too, where `kubectl describe` shows them: few enough not to flood a reader; all of
// them are in the database. Used by one thread at a time.
#pragma once

#include <string>

#include "crd/sync_context.h"

namespace shirabe::crd {

struct ClusterEvent {
  bool warning = false;
  std::string reason;
  std::string note;
  std::string id;  // makes it happen once: the same id is the same event
  absl::Time time;
};

class EventForwarder {
 public:
  // Those of the store that have come since the last call; at the first call, the fresh ones.
  Status Forward(const SyncContext& context, const kube::Json& object);

 private:
  bool MayTell(absl::Duration now);

  int64_t after_ = 0;
  bool begun_ = false;
  double tokens_ = 0;
  absl::Duration filled_ = absl::ZeroDuration();  // monotonic
  int64_t left_out_ = 0;
};

// An event of our own. Errors are not worth a retry: it is a copy.
Status CreateEvent(const SyncContext& context, const kube::Json& object, const ClusterEvent& text);

}  // namespace shirabe::crd
