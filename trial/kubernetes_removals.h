// Which experiments' objects are still to be deleted from the cluster, on disk, so that a restart
// in between leaves none behind: those that a template retains belong to nothing once the record of
// their experiment is gone, and only that said of what kind they are.
//   $SHIRABE_HOME/removals/<namespace>/<experiment>.json   the kind, in JSON
// Written before the experiment's files go, deleted once its objects have. One that is lost is only
// missed. Used by the executor `kubernetes`; thread-safe for different experiments: no state.
#pragma once

#include <map>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "trial/kubernetes_actions.h"
#include "trial/layout.h"

namespace shirabe::trial {

Status SaveRemoval(const Layout& layout, const ExperimentKey& experiment, const ObjectKind& kind);
void ForgetRemoval(const Layout& layout, const ExperimentKey& experiment);
// Those that an earlier process has begun and not ended.
std::map<ExperimentKey, ObjectKind> FindRemovals(const Layout& layout);

// What an experiment's attempts are, by the records of one of them (kubernetes_record.h); none for
// Jobs and pods, and if there is no record.
ObjectKind KindOfRecords(const Layout& layout, const ExperimentKey& experiment);

}  // namespace shirabe::trial
