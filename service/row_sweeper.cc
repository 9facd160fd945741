#include "service/row_sweeper.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "client/store_prune.h"

namespace shirabe::service {
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

}  // namespace shirabe::service
