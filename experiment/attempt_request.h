// What an executor and a collector are told about one attempt. Pure functions.
#pragma once

#include <string>

#include "base/status.h"
#include "experiment/state/experiment_state.h"
#include "metrics/collector.h"
#include "trial/executor.h"

namespace shirabe::experiment {

// The annotation of an experiment that came as an object of a cluster: that object's uid.
inline constexpr char kObjectUid[] = "shirabe.dev/object-uid";

// A trial and its open attempt.
struct AttemptRecords {
  const v1::Trial& trial;
  const v1::Attempt& attempt;
};

AttemptKey KeyOf(const ExperimentState& state, const v1::Attempt& attempt);

// The template rendered with the trial's assignments, and the environment of the contract with
// training code, less the paths, which the executor knows.
StatusOr<trial::AttemptRequest> RequestFor(const ExperimentState& state,
                                           const AttemptRecords& records,
                                           const std::string& working_dir);

// The same with another template, and without a working directory.
StatusOr<trial::AttemptRequest> RequestFrom(const ExperimentState& state,
                                            const AttemptRecords& records,
                                            const v1::TrialTemplate& trial_template);

// Where this attempt's metrics are.
metrics::Source SourceFor(const ExperimentState& state, const AttemptRecords& records,
                          const trial::AttemptPaths& paths, const std::string& working_dir);

}  // namespace shirabe::experiment
