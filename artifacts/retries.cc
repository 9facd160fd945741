#include "artifacts/retries.h"

#include <algorithm>

#include "base/mutex.h"

namespace shirabe::artifacts {
namespace {

// The same for a call that answers with more than a status.
template <class Value>
StatusOr<Value> AnswerWithRetries(const RetryPolicy& policy, const std::stop_token& stop,
                                  const std::function<StatusOr<Value>()>& attempt) {
  StatusOr<Value> answer = absl::CancelledError("interrupted");
  const Status status = WithRetries(policy, stop, [&] {
    answer = attempt();
    return answer.status();
  });
  if (!status.ok()) return status;
  return answer;
}

}  // namespace

bool IsWorthRetrying(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDataLoss(status);
}

Status WithRetries(const RetryPolicy& policy, const std::stop_token& stop,
                   const std::function<Status()>& attempt) {
  Mutex mutex;  // serialises nothing: a sleep that a stop cuts short needs one
  CondVar never;
  for (int tried = 1;; ++tried) {
    if (stop.stop_requested()) return absl::CancelledError("interrupted");
    const Status status = attempt();
    if (!IsWorthRetrying(status) || tried >= policy.attempts) return status;
    MutexLock lock(mutex);
    never.SleepFor(lock, stop, policy.backoff.Delay(tried - 1));
  }
}

Status RetryingStore::Put(const std::string& key, const PutSource& source, std::stop_token stop) {
  return WithRetries(policy_, stop, [&] { return store_->Put(key, source, stop); });
}

Status RetryingStore::Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
                          std::stop_token stop) {
  ByteRange left = range;
  Status sunk;  // an error of the sink is the caller's own: it has had its piece
  const auto count = [&](std::string_view piece) {
    left.first += static_cast<int64_t>(piece.size());
    if (left.bytes >= 0) left.bytes -= static_cast<int64_t>(piece.size());
    sunk = sink(piece);
    return sunk;
  };
  const Status got = WithRetries(policy_, stop, [&]() -> Status {
    if (!sunk.ok()) return absl::AbortedError("");
    return store_->Get(key, left, count, stop);
  });
  return sunk.ok() ? got : sunk;
}

StatusOr<ObjectInfo> RetryingStore::Head(const std::string& key, std::stop_token stop) {
  return AnswerWithRetries<ObjectInfo>(policy_, stop, [&] { return store_->Head(key, stop); });
}

StatusOr<ObjectPage> RetryingStore::List(const std::string& prefix, const std::string& after,
                                         std::stop_token stop) {
  return AnswerWithRetries<ObjectPage>(policy_, stop,
                                       [&] { return store_->List(prefix, after, stop); });
}

Status RetryingStore::Remove(const std::string& key, std::stop_token stop) {
  return WithRetries(policy_, stop, [&] { return store_->Remove(key, stop); });
}

}  // namespace shirabe::artifacts
