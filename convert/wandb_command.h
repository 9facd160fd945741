// The command of a sweep of Weights & Biases: ${program}, ${args} and their kin, as words of a
// container. Used by wandb.cc; pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convert/readers.h"

namespace shirabe::convert {

// Parameters of one value, in the order of the file.
using Constants = std::vector<std::pair<std::string, std::string>>;

// A value as Python prints it: True where YAML has true.
std::string SweepText(const YamlNode& scalar);

// Sets spec.trialTemplate from `command`, `program`, `project` and `entity`; the parameters of the
// experiment are there already.
void ReadSweepCommand(const Reading& reading, Fields& root, const Constants& constants);

}  // namespace shirabe::convert
