// Which GPUs the verbs that run trials on this machine may give them. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::cmd {

// The GPUs that trials here may be given: the list of --gpus, else all there are; none for an
// experiment (null = any) that asks for none.
std::vector<std::string> ChooseDevices(const std::string& gpus, const v1::Experiment* experiment);

}  // namespace shirabe::cmd
