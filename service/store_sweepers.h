// Keeps the disk of a server from filling with old logs: looks at them now and then, and deletes
// the oldest where there are too many (client/leftover_files.h). One thread of its own. The client
// outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "client/client.h"
#include "trial/file_layout.h"

namespace shirabe::service {

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

}  // namespace shirabe::service
