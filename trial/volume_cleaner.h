// What an executor is besides where trials save on a volume that outlives them and is not the
// executor's own: in a cluster. Called by the reconciler; thread-safe.
#pragma once

#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::trial {

class VolumeCleaner {
 public:
  virtual ~VolumeCleaner() = default;

  // Deletes, soon, what an experiment has left on the volume that its specification names, and
  // nothing else there. After RemoveFiles has succeeded; doing it again is fine. What the platform
  // does not do now is tried again, so there is no error.
  virtual void CleanVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) = 0;
};

}  // namespace shirabe::trial
