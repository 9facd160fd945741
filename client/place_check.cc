#include "client/place_check.h"

#include "experiment/conditions.h"
#include "experiment/spec/local_support.h"
#include "trial/kubernetes/checkpoint_volume.h"

namespace shirabe::client {

Status PlaceCheck::Check(const v1::Experiment& experiment) const {
  const v1::ShirabeSpec& ours = experiment.spec().shirabe();
  if (host_paths) RETURN_IF_ERROR(trial::CheckHostPath(ours.checkpoint().volume(), *host_paths));
  RETURN_IF_ERROR(experiment::CheckPackagesFetched(experiment));
  const ExperimentKey key = experiment::KeyOf(experiment);
  const auto check =
      cluster == nullptr ? &artifacts::StoreTable::Check : &artifacts::StoreTable::CheckForPods;
  if (stores != nullptr && ours.has_artifacts()) {
    RETURN_IF_ERROR((*stores.*check)(ours.artifacts().store(), key.ns, artifacts::kCopyStoreField));
  }
  if (stores != nullptr && ours.has_code()) {
    RETURN_IF_ERROR((*stores.*check)(ours.code().store(), key.ns, artifacts::kCodeStoreField));
  }
  if (cluster == nullptr || ours.ask_and_tell()) return absl::OkStatus();
  const Status fits = trial::CheckSharedClaim(*cluster, key, experiment.spec());
  return absl::IsInvalidArgument(fits) ? fits : absl::OkStatus();
}

}  // namespace shirabe::client
