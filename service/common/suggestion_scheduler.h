// Whose turn it is to compute suggestions for a caller of the server: so many at the same time in
// all, fewer of one caller, a short queue for each, and a limit of the bytes that one caller's
// requests hold and of the time that one computation takes. What waits for a GPU leaves its turn to
// others meanwhile, so that as many as the GPU takes together come to it. The experiments that the
// server itself runs do not queue here (experiment/state/algorithm_workers.h). Made once by the
// server. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/rate_limits.h"
#include "base/status.h"

namespace shirabe::service {

struct SuggestionLimits {
  int running = 2;                             // of all callers, at the same time
  int running_of_one = 1;                      // of one caller
  int away = 64;                               // that wait for another device meanwhile
  int of_one = 8;                              // of one caller, those that wait included
  int64_t bytes_of_one = 32 << 20;             // of one caller's requests
  absl::Duration longest = absl::Seconds(60);  // of one computation
  // Half the cores of this machine, so that the other half does what the server is for.
  static SuggestionLimits Default();
};

class SuggestionScheduler {
 public:
  SuggestionScheduler(SuggestionLimits limits, Clock* clock) : limits_(limits), clock_(clock) {}

  // Waits for a turn and does the work in this thread, which may ask IsCancelled(). kCancelled
  // where the caller has gone, kResourceExhausted where it has too many of them or too large ones,
  // kDeadlineExceeded where it took too long; else what `work` says.
  Status Run(const std::string& caller, int64_t bytes, const std::function<Status()>& work);

 private:
  struct Use {
    int running = 0;
    int waiting = 0;
    int64_t bytes = 0;
  };
  Status Enter(const std::string& caller, int64_t bytes);
  Status AwaitTurn(const std::string& caller);
  Status Work(const std::function<Status()>& work);
  void Leave(const std::string& caller, int64_t bytes, bool ran);
  // While what has a turn waits for a GPU, another one has it (suggestion/processor_turn.h).
  void GiveBack();
  void GetAgain();

  const SuggestionLimits limits_;
  Clock* const clock_;
  Mutex mutex_;
  CondVar turn_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int away_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Use> uses_ ABSL_GUARDED_BY(mutex_);  // of callers that have something here
};

// What one caller may hold of a server at the same time, over all of its endpoints together. Made
// by the server before its listeners. Thread-safe.
struct Quotas {
  // Calls that wait for a point, a change or a deletion. They hold no thread.
  Quota waits{{.what = "waiting calls", .caller = 256, .all = 8192}};
  // Event streams and followed logs.
  Quota streams{{.what = "event streams", .caller = 512, .all = 8192}};
  // Of request bodies that are being read or are at work, as they are received.
  Quota bodies{{.what = "bytes of request bodies", .caller = 64 << 20, .all = 512 << 20}};
  // Of columns and curves that are being sent, which a slow reader may hold for long.
  Quota charts{{.what = "bytes of columns being sent", .caller = 256 << 20, .all = 1 << 30}};
  // Of gRPC, each of which holds a thread while it is at work.
  Quota calls{{.what = "calls at work", .caller = 128, .all = 0}};
};

}  // namespace shirabe::service
