// Keeps every experiment of a store going: owns those that have not ended, those that come, and
// those whose owner has died; gives back what has ended. One thread of its own. The client and the
// controller outlive it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "client/client.h"
#include "client/local_client.h"
#include "experiment/experiment_controller.h"
#include "trial/file_layout.h"

namespace shirabe::service {

class ExperimentOwner {
 public:
  ExperimentOwner(client::LocalClient* client, experiment::Controller* controller, Clock* clock);
  // What it owns stays with the controller.
  ~ExperimentOwner();

  // Why the store cannot be read, in words; "" if it can. For /readyz.
  std::string LastError() const;
  // Whether all experiments that were there at the start have been looked at.
  bool Ready() const;

 private:
  void Run(std::stop_token stop);
  Status Refresh();
  void TryOwn();
  void GiveBack();
  void ReleaseFreeMemory();

  client::LocalClient* const client_;
  experiment::Controller* const controller_;
  Clock* const clock_;
  int64_t revision_ = 0;            // of the last look
  std::set<ExperimentKey> wanted_;  // to be owned
  absl::Duration try_at_;           // monotonic; those that another process owns
  bool gave_back_ = false;          // since memory was returned
  absl::Duration return_at_;        // monotonic
  mutable std::mutex mutex_;
  std::string last_error_;  // guarded by mutex_
  bool ready_ = false;      // guarded by mutex_
  std::jthread thread_;     // last: it uses the rest
};

// Keeps the disk of a server from filling with old logs: looks at them now and then, and deletes
// the oldest where there are too many (client/old_logs.h). One thread of its own. The client
// outlives it.
class LogSweeper {
 public:
  // What may be kept of attempts that have ended, in bytes; 0 = everything, and nothing is done.
  // They lie in `home`, that of the client's store.
  LogSweeper(client::Client* client, const std::string& home, int64_t bytes);
  ~LogSweeper();

 private:
  void Run(std::stop_token stop);

  client::Client* const client_;
  const trial::Layout layout_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::condition_variable_any changed_;  // only to be woken by the stop
  std::jthread thread_;                  // last: it uses the rest
};

}  // namespace shirabe::service
