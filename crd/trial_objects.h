// The Trial and Suggestion objects of one experiment: made, changed and removed so that they show
// the window of its trials. Level-based: an object that somebody changed is put right, one of a
// running trial that somebody deleted is made again. Used by one thread at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "crd/context.h"
#include "crd/presence.h"
#include "crd/trial_window.h"

namespace shirabe::crd {

// What is to be shown of an experiment, and what is there.
struct Showing {
  const v1::Experiment& experiment;
  const TrialWindow& window;
  const kube::Json& owner;  // the Experiment object
  const Presence& presence;
};

class TrialObjects {
 public:
  // Returns after how long it wants to be called again: at once
  // if there was more to write than is written in one go.
  StatusOr<absl::Duration> Put(const Context& context, const Showing& showing);

 private:
  struct Pass;
  Status LookAtTrial(Pass& pass, const v1::Trial& trial);
  Status PutTrial(Pass& pass, const v1::Trial& trial);
  Status PutObject(Pass& pass, const ObjectJson& wanted, const v1::Trial& trial);
  Status PutStatus(Pass& pass, const ObjectJson& wanted, const kube::Json& there,
                   const v1::Trial& trial);
  Status RemoveOthers(Pass& pass);
  Status PutSuggestion(Pass& pass);

  // How a trial was when it was looked at, and until when that is enough.
  struct Left {
    uint64_t print = 0;
    absl::Duration until;  // monotonic
  };
  std::map<int64_t, Left> left_;
  std::set<int64_t> settled_;                // ended trials whose objects are as they should be
  std::map<int64_t, absl::Duration> shown_;  // when a running trial's progress was last written
  std::optional<kube::Json> suggestion_;     // as it was last written, with its status
  absl::Duration suggested_;
};

}  // namespace shirabe::crd
