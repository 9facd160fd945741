// What the executor `kubernetes` keeps beside the copies of an attempt's files, so that a restart
// forgets nothing that the cluster no longer tells: which object it is, and the state that its
// sidecar told last. Lost, they are only missed: the cluster is asked, and a live sidecar tells
// again. Thread-safe for different attempts: no state.
#pragma once

#include <string>

#include "base/status.h"
#include "kube/client.h"
#include "proto/shirabe/v1/pod.pb.h"

namespace shirabe::trial {

// `dir` is AttemptPaths::dir. kNotFound if there is none.
Status SaveObjectRecord(const std::string& dir, const kube::Ref& ref);
StatusOr<kube::Ref> LoadObjectRecord(const std::string& dir);

// Reaches the disk if the state is complete: then nobody tells it again.
Status SaveStateRecord(const std::string& dir, const v1::PodState& state);
StatusOr<v1::PodState> LoadStateRecord(const std::string& dir);

}  // namespace shirabe::trial
