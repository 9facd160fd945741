// Mutexes whose use clang checks (-Wthread-safety): a field says ABSL_GUARDED_BY(mutex_), a
// function that expects its caller to hold the mutex ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_), and a
// use without the lock does not compile (`tests/run.sh thread-safety`). They are the standard
// library's, so the sanitizers know them.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace shirabe {

// A std::mutex. Not recursive.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until the end of the scope; unlock() gives it up before, lock() takes it again.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { lock_.lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { lock_.unlock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// A condition variable for a MutexLock. The conditions are called with the mutex held; a lambda
// says so: `[this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; }`. A wait with a stop
// token also ends when a stop is requested. Waits that return bool answer what the condition last
// did.
class CondVar {
 public:
  template <typename Condition>
  void Wait(MutexLock& lock, Condition condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    changed_.wait(lock.lock_, std::move(condition));
  }
  template <typename Condition>
  bool Wait(MutexLock& lock, const std::stop_token& stop,
            Condition condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return changed_.wait(lock.lock_, stop, std::move(condition));
  }

  template <typename Condition>
  bool WaitFor(MutexLock& lock, absl::Duration timeout,
               Condition condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return changed_.wait_for(lock.lock_, Bounded(timeout), std::move(condition));
  }
  template <typename Condition>
  bool WaitFor(MutexLock& lock, const std::stop_token& stop, absl::Duration timeout,
               Condition condition) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return changed_.wait_for(lock.lock_, stop, Bounded(timeout), std::move(condition));
  }
  // Until a notification, or the timeout, or for no reason at all.
  void WaitFor(MutexLock& lock, absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    changed_.wait_for(lock.lock_, Bounded(timeout));
  }
  // Until a stop is requested or the timeout is over: a sleep that a stop cuts short.
  void SleepFor(MutexLock& lock, const std::stop_token& stop, absl::Duration timeout) {
    WaitFor(lock, stop, timeout, [] { return false; });
  }

  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  // An infinite wait added to the time of day would overflow.
  static std::chrono::nanoseconds Bounded(absl::Duration timeout) {
    return absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(24 * 365)));
  }

  std::condition_variable_any changed_;  // with stop tokens
};

}  // namespace shirabe
