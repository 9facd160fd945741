// Keeps the store of a server from filling with observations of trials that have ended: looks at
// new ones now and then, and thins them out (client/observation_retention.h). One thread of its
// own. The client outlives it.
#pragma once

#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "client/local_client.h"

namespace shirabe::service {

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

}  // namespace shirabe::service
