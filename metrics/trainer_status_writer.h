// What is new in the status calls of one attempt (metrics/trainer_status.h) as lines of its metrics
// file, as if the program had written them there. Used by the endpoints that such calls come to: on
// one machine that of the executor (trial/local/status_endpoint.h), in a pod the sidecar's. One
// thread at a time.
#pragma once

#include <string>

#include "base/status.h"
#include "metrics/trainer_status.h"

namespace shirabe::metrics {

class TrainerStatusWriter {
 public:
  // `mode` is that of the file where the program has made none; others may belong to another user.
  TrainerStatusWriter(std::string metrics_file, unsigned mode)
      : file_(std::move(metrics_file)), mode_(mode) {}

  // Whether the call had anything new. kInvalidArgument, naming the field, for what is no such
  // call; any other error: it could not be written, and counts as new when it comes again.
  StatusOr<bool> Write(const std::string& body);

 private:
  const std::string file_;
  const unsigned mode_;
  TrainerState state_;
};

}  // namespace shirabe::metrics
