// Must not compile with the preset thread-safety: tests/run.sh expects it to refuse Unlocked, and
// nothing else.
#include "base/mutex.h"

namespace shirabe {

class Counter {
 public:
  int Locked() {
    MutexLock lock(mutex_);
    changed_.Wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ > 0; });
    return count_;
  }
  int Unlocked() { return count_; }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace shirabe
