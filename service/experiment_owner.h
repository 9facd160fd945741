// Keeps every experiment of a store going: owns those that have not ended, those that come, and
// those whose owner has died; gives back what has ended. One thread of its own. The client and the
// controller outlive it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "client/client.h"
#include "client/local_client.h"
#include "experiment/experiment_controller.h"

namespace shirabe::service {

class ExperimentOwner {
 public:
  ExperimentOwner(client::LocalClient* client, experiment::Controller* controller, Clock* clock);
  // What it owns stays with the controller.
  ~ExperimentOwner();

  // Why the store cannot be read or written, in words, also while it does not answer; "" if it can
  // be. For /readyz.
  std::string LastError() const;
  // Whether all experiments that were there at the start have been looked at.
  bool Ready() const;

 private:
  void Run(std::stop_token stop);
  void Asking();
  Status Refresh();
  bool NoteAnswer();
  void TryOwn();
  void GiveBack();
  void ReleaseFreeMemory();

  client::LocalClient* const client_;
  experiment::Controller* const controller_;
  Clock* const clock_;
  int64_t revision_ = 0;            // of the last look
  std::set<ExperimentKey> wanted_;  // to be owned
  absl::Duration try_at_;           // monotonic; those that another process owns
  absl::Duration answered_at_;      // monotonic; when the store was last heard of
  absl::Duration owners_until_;     // monotonic; until then others may renew what looks expired
  bool gave_back_ = false;          // since memory was returned
  absl::Duration return_at_;        // monotonic
  mutable Mutex mutex_;
  std::string last_error_ ABSL_GUARDED_BY(mutex_);  // of reading
  std::string own_error_ ABSL_GUARDED_BY(mutex_);   // of writing down that it owns one
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  // Monotonic; since when an answer of the store is awaited: infinite = none is.
  absl::Duration asked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace shirabe::service
