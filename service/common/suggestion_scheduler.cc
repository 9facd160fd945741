#include "service/common/suggestion_scheduler.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "suggestion/processor_turn.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kCancelPollInterval =
    absl::Milliseconds(50);  // whether who waits has gone

Status HasGone() { return absl::CancelledError("the caller has gone"); }

}  // namespace

SuggestionLimits SuggestionLimits::Default() {
  SuggestionLimits limits;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  limits.running = std::max(2, cores / 2);
  limits.running_of_one = limits.running / 2;
  return limits;
}

Status SuggestionScheduler::Enter(const std::string& caller, int64_t bytes) {
  const MutexLock lock(mutex_);
  Use& use = uses_[caller];
  const int had = use.running + use.waiting;
  if (had >= limits_.of_one) {
    return absl::ResourceExhaustedError(
        absl::StrCat(had, " requests for suggestions of this caller are under way, and no more ",
                     "are taken: ask again when one of them is answered"));
  }
  if (use.bytes + bytes > limits_.bytes_of_one) {
    const Status full = absl::ResourceExhaustedError(absl::StrCat(
        "the requests for suggestions of this caller take ", use.bytes + bytes,
        " bytes together, and at most ", limits_.bytes_of_one, " are taken: send fewer trials"));
    if (had == 0) uses_.erase(caller);
    return full;
  }
  ++use.waiting;
  use.bytes += bytes;
  return absl::OkStatus();
}

Status SuggestionScheduler::AwaitTurn(const std::string& caller) {
  MutexLock lock(mutex_);
  Use& use = uses_[caller];
  const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ < limits_.running && away_ < limits_.away &&
           use.running < limits_.running_of_one;
  };
  while (!free()) {
    if (IsCancelled()) return HasGone();
    turn_.WaitFor(lock, kCancelPollInterval);
  }
  if (IsCancelled()) return HasGone();
  --use.waiting;
  ++use.running;
  ++running_;
  return absl::OkStatus();
}

void SuggestionScheduler::Leave(const std::string& caller, int64_t bytes, bool ran) {
  const MutexLock lock(mutex_);
  Use& use = uses_[caller];
  use.bytes -= bytes;
  --(ran ? use.running : use.waiting);
  if (ran) --running_;
  if (use.running + use.waiting == 0) uses_.erase(caller);
  turn_.NotifyAll();
}

void SuggestionScheduler::GiveBack() {
  const MutexLock lock(mutex_);
  --running_;
  ++away_;
  turn_.NotifyAll();
}

// One that is cancelled has only to end, and does not wait.
void SuggestionScheduler::GetAgain() {
  MutexLock lock(mutex_);
  while (running_ >= limits_.running && !IsCancelled()) turn_.WaitFor(lock, kCancelPollInterval);
  ++running_;
  --away_;
}

// An answer that was cut short is none.
Status SuggestionScheduler::Work(const std::function<Status()>& work) {
  const suggestion::ProcessorTurn turn([this] { GiveBack(); }, [this] { GetAgain(); });
  const absl::Duration deadline = clock_->Monotonic() + limits_.longest;
  bool late = false;
  Status status;
  {
    const CancelScope scope([&] { return late = late || clock_->Monotonic() > deadline; });
    status = work();
    if (!IsCancelled()) return status;
  }
  if (!late) return HasGone();
  return absl::DeadlineExceededError(
      absl::StrCat("computing took longer than ", absl::FormatDuration(limits_.longest),
                   ": ask for fewer suggestions, or choose a quicker algorithm (spec.algorithm)"));
}

Status SuggestionScheduler::Run(const std::string& caller, int64_t bytes,
                                const std::function<Status()>& work) {
  RETURN_IF_ERROR(Enter(caller, bytes));
  bool ran = false;
  const absl::Cleanup leave = [&] { Leave(caller, bytes, ran); };
  RETURN_IF_ERROR(AwaitTurn(caller));
  ran = true;
  return Work(work);
}

}  // namespace shirabe::service
