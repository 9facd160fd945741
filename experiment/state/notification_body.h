// What a webhook is sent of an experiment, as JSON: the same for each endpoint, of a bounded size,
// and nothing that its users may not see. Its fields are described in docs/design/formats.md. Pure
// functions.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

struct Occurrence {
  v1::NotificationCause cause = v1::NOTIFICATION_CAUSE_UNSPECIFIED;
  std::string reason;   // one word
  std::string message;  // for people
  absl::Time time;
  double spent = 0;  // by running attempts as well
};

// The same for each attempt to deliver it, and for no other.
std::string NotificationId(const v1::Experiment& experiment, int64_t number);

std::string NotificationBody(const v1::Experiment& experiment, const Occurrence& what,
                             int64_t number);

}  // namespace shirabe::experiment
