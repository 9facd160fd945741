// The command of a sweep of Weights & Biases: ${program}, ${args} and their kin, as words of a
// container. Used by wandb.cc; pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convert/readers.h"

namespace shirabe::convert {

// A parameter of one value.
struct SweepConstant {
  std::string name;
  std::string text;  // as Python prints it
  std::string json;
};

// Of the parameters, what a specification does not say.
struct SweepValues {
  std::vector<SweepConstant> constants;  // in the order of the file
  std::vector<std::string> untexts;      // categorical ones whose values are not all texts
  std::vector<std::string> booleans;     // those of them that are true or false
};

// A value as Python prints it, and as JSON: True and true where YAML has true. As in Python's YAML,
// y and n are texts.
std::string SweepText(const YamlNode& scalar);
std::string SweepJson(const YamlNode& scalar);
bool IsSweepBoolean(const YamlNode& scalar);

// Sets spec.trialTemplate from `command`, `program`, `project` and `entity`; the parameters of the
// experiment are there already.
void ReadSweepCommand(const Reading& reading, Fields& root, const SweepValues& values);

}  // namespace shirabe::convert
