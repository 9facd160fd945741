// Finds pods of attempts that are not known. A process that dies between closing an attempt in the
// store and letting go of its pods leaves them without an owner. Whatever of an experiment of ours
// is unknown for long enough was closed: what is open is adopted before the first pass over the
// experiment. One without a pass has ended, or been deleted, if it is ours at all, which its folder
// says: the controller is told. Part of the executor `kubernetes`; called by one thread.
#pragma once

#include <map>
#include <set>

#include "absl/time/time.h"
#include "trial/kubernetes/attempt_table.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/kubernetes/teardowns.h"

namespace shirabe::trial {

class OrphanFinder {
 public:
  // All of them outlive it.
  OrphanFinder(const ClusterContext* context, const AttemptTable* attempts, Teardowns* teardowns)
      : context_(*context), attempts_(*attempts), teardowns_(*teardowns) {}

  // Looks around if it is time to: true then.
  bool OnTimer(absl::Duration now);
  absl::Duration NextDue() const { return next_; }

 private:
  void Release(const AttemptKey& key, const Teardowns::Object& object);

  const ClusterContext& context_;
  const AttemptTable& attempts_;
  Teardowns& teardowns_;
  absl::Duration next_;
  std::map<AttemptKey, absl::Duration> orphans_;  // and since when
  std::set<ExperimentKey> asked_;                 // experiments of orphans that were told once
};

}  // namespace shirabe::trial
