#include "service/log_sweeper.h"

#include "base/log.h"
#include "client/leftover_files.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kSweepInterval = absl::Minutes(5);

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
      Log(LogLevel::kWarning, "failed to delete old logs", {{"error", Message(swept)}});
    }
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, kSweepInterval);
  }
}

}  // namespace shirabe::service
