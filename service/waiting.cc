#include "service/waiting.h"

namespace shirabe::service {

std::optional<StatusOr<client::Asked>> WaitingAsk::Look(bool last) {
  StatusOr<client::Asked> asked = client_->FindAsked(key_, caller_);
  if (asked.ok() && asked->pending && !last) return std::nullopt;
  return asked;
}

Status WaitingDeletion::Begin() {
  return client_->Delete(key_, absl::ZeroDuration(), [](absl::Duration) { return true; });
}

// The records go first. Asking for it again then says whether files are left.
std::optional<Status> WaitingDeletion::Look(bool last) {
  Status found = client_->GetExperiment(key_).status();
  if (absl::IsNotFound(found)) {
    Status gone = Begin();
    if (gone.ok() || absl::IsNotFound(gone)) return absl::OkStatus();
    if (last || !absl::IsDeadlineExceeded(gone)) return gone;
    return std::nullopt;
  }
  if (!found.ok()) return found;
  if (!last) return std::nullopt;
  return absl::DeadlineExceededError("experiment " + ToString(key_) +
                                     " is not deleted yet: its deletion has been asked for, and "
                                     "goes on; wait longer");
}

}  // namespace shirabe::service
