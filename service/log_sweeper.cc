#include "service/log_sweeper.h"

#include "base/log.h"
#include "client/old_logs.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Minutes(5);

}  // namespace

LogSweeper::LogSweeper(client::Client* client, const std::string& home, int64_t bytes)
    : client_(client),
      layout_(home),
      bytes_(bytes),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

LogSweeper::~LogSweeper() {
  thread_.request_stop();
  thread_.join();
}

void LogSweeper::Run(std::stop_token stop) {
  while (bytes_ > 0 && !stop.stop_requested()) {
    const Status swept = client::RemoveOldLogs(*client_, layout_, bytes_);
    if (!swept.ok()) {
      Log(LogLevel::kWarning, "old logs could not be deleted", {{"error", Message(swept)}});
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, absl::ToChronoSeconds(kBetweenLooks), [] { return false; });
  }
}

}  // namespace shirabe::service
