// Experiments as jobs of AI Platform: their states, and the objects that describe shows. Pure.
#pragma once

#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/record_json.h"

namespace shirabe::cmd {

// A training job without a search: one trial.
bool IsSingleJob(const v1::Experiment& experiment);

// QUEUED, PREPARING, RUNNING, SUCCEEDED, FAILED, CANCELLING or CANCELLED. One with a search that
// has found nothing has failed.
std::string JobState(const v1::Experiment& experiment);

// {jobId, state, createTime, …, trainingOutput: {trials: […]}}, the best trial first.
view::Json JobJson(const v1::Experiment& experiment, std::vector<v1::Trial> trials);

}  // namespace shirabe::cmd
