// Answers of the API server that are believed for a while, by what was asked. An error is kept only
// where it is an answer: kUnauthenticated and kPermissionDenied. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shirabe::kube {

// Of Status or StatusOr<…>.
template <class Answer>
class TtlCache {
 public:
  std::optional<Answer> Find(const std::string& asked, absl::Duration now) {
    const MutexLock lock(mutex_);
    const auto found = answers_.find(asked);
    if (found == answers_.end() || found->second.second <= now) return std::nullopt;
    return found->second.first;
  }

  void Keep(const std::string& asked, const Answer& answer, absl::Duration until) {
    const Status& status = StatusOf(answer);
    const bool refused = absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status);
    if (!status.ok() && !refused) return;
    const MutexLock lock(mutex_);
    if (answers_.size() >= kMaxAnswers) answers_.clear();
    answers_.insert_or_assign(asked, std::pair(answer, until));
  }

 private:
  static constexpr size_t kMaxAnswers = 4096;

  static const Status& StatusOf(const Status& answer) { return answer; }
  template <class Value>
  static const Status& StatusOf(const StatusOr<Value>& answer) {
    return answer.status();
  }

  Mutex mutex_;
  // And until when (monotonic).
  std::map<std::string, std::pair<Answer, absl::Duration>> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::kube
