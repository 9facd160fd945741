// What keeps the disk and the store of a server from filling: each looks now and then, in a thread
// of its own, at what attempts that have ended left there. The clients outlive them.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "client/client.h"
#include "client/local_client.h"
#include "trial/file_layout.h"

namespace shirabe::service {

// Deletes the oldest logs where there are too many (client/leftover_files.h).
class LogSweeper {
 public:
  // What may be kept of attempts that have ended, in bytes; 0 = everything, and nothing is done.
  // They lie in `home`, that of the client's store.
  LogSweeper(client::Client* client, const std::string& home, int64_t bytes);
  ~LogSweeper();

 private:
  void Run(std::stop_token stop);

  client::Client* const client_;
  const trial::FileLayout layout_;
  const int64_t bytes_;
  Mutex mutex_;          // serialises nothing; changed_ wants one
  CondVar changed_;      // only to be woken by the stop
  std::jthread thread_;  // last: it uses the rest
};

// Thins out the observations of trials that have ended (client/observation_retention.h).
class RowSweeper {
 public:
  // What stays of each metric of a trial; 0 = everything, and nothing is done.
  RowSweeper(client::LocalClient* client, int64_t keep, Clock* clock);
  ~RowSweeper();

 private:
  void Run(std::stop_token stop);

  client::LocalClient* const client_;
  const int64_t keep_;
  Clock* const clock_;
  Mutex mutex_;          // serialises nothing; changed_ wants one
  CondVar changed_;      // only to be woken by the stop
  std::jthread thread_;  // last: it uses the rest
};

// Deletes the copies in artifact stores whose time there is over (client/copy_retention.h).
class CopySweeper {
 public:
  CopySweeper(client::LocalClient* client, Clock* clock);
  // Waits for the request to a store that is under way.
  ~CopySweeper();

 private:
  void Run(std::stop_token stop);

  client::LocalClient* const client_;
  Clock* const clock_;
  Mutex mutex_;          // serialises nothing; changed_ wants one
  CondVar changed_;      // only to be woken by the stop
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace shirabe::service
