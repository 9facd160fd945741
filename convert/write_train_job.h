// The trialTemplate of an Experiment as the trainJobTemplate of an OptimizationJob, whose programs
// get parameters by environment variables alone. Used by write_optimization_job.cc. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "convert/fields.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::convert {

// `fields`: the spec of the file, of which it reads trialTemplate.
nlohmann::ordered_json WriteTrainJob(const v1::ExperimentSpec& spec, Fields& fields,
                                     Report& report);

}  // namespace shirabe::convert
