// What the executor `kubernetes` keeps on disk: the object and state of each attempt (below), and
// which experiments' objects are still to be deleted from the cluster, so that a restart in between
// leaves none behind: those that a template retains belong to nothing once the record of their
// experiment is gone, and only that said of what kind they are.
//   $SHIRABE_HOME/removals/<namespace>/<experiment>.json   the kind, in JSON
// Written before the experiment's files go, deleted once its objects have. One that is lost is only
// missed. Used by the executor `kubernetes`; thread-safe for different experiments: no state.
#pragma once

#include <map>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "kube/api_client.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/file_layout.h"
#include "trial/kubernetes/cluster_actions.h"

namespace shirabe::trial {

Status SaveRemoval(const FileLayout& layout, const ExperimentKey& experiment,
                   const ObjectKind& kind);
void ForgetRemoval(const FileLayout& layout, const ExperimentKey& experiment);
// Those that an earlier process has begun and not ended.
std::map<ExperimentKey, ObjectKind> FindRemovals(const FileLayout& layout);

// What an experiment's attempts are, by the object record of one of them; none for Jobs and pods,
// and if there is no record.
ObjectKind KindOfRecords(const FileLayout& layout, const ExperimentKey& experiment);

// Object and state records: kept beside the copies of an attempt's files, so that a restart forgets
// nothing that the cluster no longer tells: which object it is, and the state that its sidecar told
// last. Lost, they are only missed: the cluster is asked, and a live sidecar tells again.
// Thread-safe for different attempts: no state.

// `dir` is AttemptPaths::dir. kNotFound if there is none.
Status SaveObjectRecord(const std::string& dir, const kube::Ref& ref);
StatusOr<kube::Ref> LoadObjectRecord(const std::string& dir);

// Reaches the disk if the state is complete: then it is not told again.
Status SaveStateRecord(const std::string& dir, const v1::PodState& state);
StatusOr<v1::PodState> LoadStateRecord(const std::string& dir);

}  // namespace shirabe::trial
