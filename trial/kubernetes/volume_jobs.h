// The Job that deletes what an experiment has left on the volume of its checkpoints: `shirabe pod
// clean` in a pod of our image that mounts nothing else, as the user who wrote the files and where
// the trials ran. It may be started twice and ends well where nothing is left. The cluster removes
// it an hour after its end; until then it says by its name that the folder may still have old files
// in it, so that no experiment of the same name begins among them. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/executor.h"

namespace shirabe::trial {

// nullopt where the checkpoints go without it: with the pod, or with a claim of each trial.
std::optional<Json> MakeCleaner(const ExperimentKey& experiment, const v1::ExperimentSpec& spec,
                                const PodOptions& options);

// The same for single checkpoints that the experiment does not keep, of attempts whose sidecars are
// gone: nothing else mounts their folders. nullopt as above. It deletes nothing yet: see PrunerFor.
constexpr int kMaxPrunedAtOnce = 100;
std::optional<Json> MakePruner(const ExperimentKey& experiment, const v1::ExperimentSpec& spec,
                               const PodOptions& options);
// With what it is to delete: at most kMaxPrunedAtOnce checkpoints.
Json PrunerFor(Json pruner, const std::vector<v1::Checkpoint>& checkpoints);
std::string PrunerName(const ExperimentKey& experiment);

std::string CleanerName(const ExperimentKey& experiment);

// Whether a Job that is there has nothing left to delete.
bool HasCleaned(const Json& job);
// Whether it has ended, well or not.
bool HasEnded(const Json& job);

}  // namespace shirabe::trial
