// What a call that waits says of its waiting, over HTTP (service/http/http_message.h) and gRPC
// (service/grpc/grpc_long_poll.h) alike, for service/common/long_polls.h. A plain value.
#pragma once

#include "absl/time/time.h"
#include "base/names.h"

namespace shirabe::service {

struct LongPollTerms {
  ExperimentKey experiment = {};  // whose changes may bring the answer; without a name: all
  absl::Duration patience = absl::ZeroDuration();
  absl::Duration poll = absl::InfiniteDuration();  // looked at so often without a change, too
};

}  // namespace shirabe::service
