// How patient the executor `kubernetes` is. Tests are less so.
#pragma once

#include "absl/time/time.h"

namespace shirabe::trial {

struct PodTimes {
  absl::Duration start = absl::Milliseconds(20);   // for an object to be made, by whoever starts it
  absl::Duration silence = absl::Seconds(40);      // of a node that is not ready, before it is dead
  absl::Duration unseen = absl::Seconds(15);       // of a node that nobody has told us of
  absl::Duration last_words = absl::Seconds(20);   // for the rest, after a program's end
  absl::Duration heed = absl::Milliseconds(1500);  // for a sidecar to take a stop, before SIGTERM
  absl::Duration ask_events = absl::Seconds(5);    // of waiting, before events are looked up
  absl::Duration events_again = absl::Seconds(30);
  absl::Duration retry = absl::Seconds(2);    // what the API server did not do
  absl::Duration settle = absl::Minutes(10);  // for all experiments to be owned again, at the start
  absl::Duration stray = absl::Seconds(20);   // of a pod that nobody knows, before it goes
  absl::Duration stall = absl::Minutes(2);    // of a watch, before it is given up
  absl::Duration sync = absl::Seconds(2);     // between two requests of a sidecar
  absl::Duration prune = absl::Seconds(30);   // for a sidecar to delete what is not kept
  absl::Duration logs = absl::Seconds(3);     // between two looks at a log, where there is none
};

}  // namespace shirabe::trial
