// Checkpoints for tests.
#pragma once

#include <cstdint>
#include <string>

#include "base/names.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

// What an attempt has saved at a step.
inline v1::Checkpoint Saved(const AttemptKey& key, int64_t step) {
  v1::Checkpoint checkpoint;
  checkpoint.set_namespace_(key.trial.experiment.ns);
  checkpoint.set_experiment(key.trial.experiment.name);
  checkpoint.set_trial(key.trial.number);
  checkpoint.set_attempt(key.number);
  checkpoint.set_step(step);
  checkpoint.set_digest(std::string(64, 'a'));
  return checkpoint;
}

}  // namespace shirabe::trial
