#include "base/cancellation.h"

#include <utility>

namespace shirabe {
namespace {

thread_local CancelScope* innermost = nullptr;

}  // namespace

CancelScope::CancelScope(std::function<bool()> cancelled)
    : cancelled_(std::move(cancelled)), outer_(innermost) {
  innermost = this;
}

CancelScope::~CancelScope() { innermost = outer_; }

bool CancelScope::Ask() {
  if (!over_) over_ = cancelled_() || (outer_ != nullptr && outer_->Ask());
  return over_;
}

bool IsCancelled() { return innermost != nullptr && innermost->Ask(); }

}  // namespace shirabe
