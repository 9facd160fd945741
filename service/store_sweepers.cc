#include "service/store_sweepers.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "client/copy_retention.h"
#include "client/leftover_files.h"
#include "client/store_prune.h"

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

namespace {

constexpr absl::Duration kThinInterval = absl::Minutes(10);

}  // namespace

RowSweeper::RowSweeper(client::LocalClient* client, int64_t keep, Clock* clock)
    : client_(client),
      keep_(keep),
      clock_(clock),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

RowSweeper::~RowSweeper() {
  thread_.request_stop();
  thread_.join();
}

void RowSweeper::Run(std::stop_token stop) {
  std::map<ExperimentKey, client::ThinProgress> progress;
  while (keep_ > 0 && !stop.stop_requested()) {
    const auto thinned = client::ThinObservations(
        client_->store(), {.ns = "",
                           .keep = keep_,
                           .ended_before = clock_->Now() - client::kRowsUntouched,
                           .progress = &progress});
    if (!thinned.ok()) {
      Log(LogLevel::kWarning, "failed to thin observations out",
          {{"error", Message(thinned.status())}});
    } else if (thinned->observations > 0) {
      Log(LogLevel::kInfo, "thinned observations out",
          {{"trials", absl::StrCat(thinned->trials)},
           {"observations", absl::StrCat(thinned->observations)}});
    }
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, kThinInterval);
  }
}

namespace {

constexpr absl::Duration kCopiesInterval = absl::Minutes(30);

}  // namespace

CopySweeper::CopySweeper(client::LocalClient* client, Clock* clock)
    : client_(client), clock_(clock), thread_([this](std::stop_token stop) { Run(stop); }) {}

CopySweeper::~CopySweeper() {
  thread_.request_stop();
  thread_.join();
}

void CopySweeper::Run(std::stop_token stop) {
  while (client_->stores() != nullptr && !stop.stop_requested()) {
    const auto removed =
        client::RemoveOldCopies(*client_, {.ns = "", .clock = clock_, .stop = stop});
    if (!removed.ok()) {
      Log(LogLevel::kWarning, "failed to look for copies that may go",
          {{"error", Message(removed.status())}});
    } else {
      for (const client::RemovedCopies& one : *removed) {
        const bool failed = !one.error.empty();
        Log(failed ? LogLevel::kWarning : LogLevel::kInfo,
            failed ? "failed to delete copies whose time is over"
                   : "deleted copies whose time is over",
            {{"experiment", ToString(one.experiment)}, {"store", one.store}, {"error", one.error}});
      }
    }
    MutexLock lock(mutex_);
    changed_.SleepFor(lock, stop, kCopiesInterval);
  }
}

}  // namespace shirabe::service
