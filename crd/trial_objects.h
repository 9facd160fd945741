// The Trial and Suggestion objects of one experiment: made, changed and removed so that they show
// the window of its trials. Level-based: an object that was changed by another writer is put right,
// a deleted one of a running trial is made again. Used by one thread at a time.
#pragma once

#include <map>
#include <optional>

#include "crd/sync_context.h"
#include "crd/trial_window.h"

namespace shirabe::crd {

// What is to be shown of an experiment, and what is there.
struct ObjectsInput {
  const v1::Experiment& experiment;
  const TrialWindow& window;
  const kube::Json& owner;  // the Experiment object
  const TrialObjectNames& presence;
};

class TrialObjects {
 public:
  // Returns after how long it wants to be called again: at once if there was more to write than is
  // written in one go.
  StatusOr<absl::Duration> Put(const SyncContext& context, const ObjectsInput& showing);

 private:
  struct Pass;
  struct TrialWrite;
  // How a trial was when it was looked at, and until when that is enough (monotonic, as the other).
  struct WrittenTrial {
    uint64_t print = 0;
    absl::Duration until = -absl::InfiniteDuration();
    absl::Duration written = -absl::InfiniteDuration();  // its status, the last time
    bool settled = false;  // it has ended, and its object is as it should be
  };
  Status PutTrials(Pass& pass);
  Status RemoveOthers(Pass& pass);
  Status PutSuggestion(Pass& pass);

  std::map<int64_t, WrittenTrial> written_;
  int64_t stopped_at_ = 0;                // the trial before which the last pass was full
  std::optional<kube::Json> suggestion_;  // as it was last written, with its status
  absl::Duration suggested_;
};

}  // namespace shirabe::crd
