// Keeps the disk of a server from filling with old logs: looks at them now and then, and deletes
// the oldest where there are too many (client/old_logs.h). One thread of its own. The client
// outlives it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "client/client.h"
#include "trial/layout.h"

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
  const trial::Layout layout_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::condition_variable_any changed_;  // only to be woken by the stop
  std::jthread thread_;                  // last: it uses the rest
};

}  // namespace shirabe::service
