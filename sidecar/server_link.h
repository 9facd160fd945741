// The sidecar's way to the server: rpc v1.Pods/Sync. A connection that does not answer is given up
// for a new one, because the server may have moved to another node. Used by one thread.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"

namespace shirabe::sidecar {

class ServerLink {
 public:
  virtual ~ServerLink() = default;
  // The server's answer, or its refusal; kUnavailable or kDeadlineExceeded if there was none.
  virtual StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request, absl::Duration timeout) = 0;
};

// To config.server, by TLS with config.ca, or in plain text without one.
std::unique_ptr<ServerLink> MakeServerLink(const v1::PodConfig& config);

}  // namespace shirabe::sidecar
