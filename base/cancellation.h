// Long work on behalf of a caller, and whether the caller still waits for it. The code that begins
// it, in the thread that does it, says when it is to end; loops deep below ask now and then and
// leave early:
//
//   CancelScope scope([&] { return context.IsCancelled(); });
//   auto proposal = algorithm->Propose(...);       // asks IsCancelled() in its loops
//   if (IsCancelled()) return ...;                 // the answer is not a whole one
//
// Once it is cancelled it stays so within the scope. Scopes nest: an inner one ends with the outer.
// Each thread has its own; outside of any scope nothing is ever cancelled.
#pragma once

#include <functional>

namespace shirabe {

class CancelScope {
 public:
  // `cancelled` is asked by this thread, perhaps thousands of times a second.
  explicit CancelScope(std::function<bool()> cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  friend bool IsCancelled();
  bool Ask();

  const std::function<bool()> cancelled_;
  CancelScope* const outer_;
  bool over_ = false;
};

// Whether the work of this thread should end.
bool IsCancelled();

}  // namespace shirabe
