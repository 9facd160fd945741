#include "trial/executor.h"

namespace shirabe::trial {

StatusOr<v1::SyncReply> Executor::Sync(const v1::SyncRequest&, const std::string&) {
  return absl::UnimplementedError(
      "attempts run on the machine of this server: there is no pod to hear of");
}

}  // namespace shirabe::trial
