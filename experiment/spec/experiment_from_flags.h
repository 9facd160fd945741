// The quick form of the command line: an Experiment without YAML.
//   shirabe run --param lr=log:1e-5..1e-1 --param bs=16,32 --minimize loss -- ./t.py {lr} {bs}
// Ranges: 0..1 double · int:1..10 · log:1e-5..1e-1 · 0..1:0.1 and int:0..100:10 with a step ·
// a,b,c categorical, or discrete where all are numbers; prefixes combine: log:int:1..1024. Of
// constraints: memory=..16e9, recall=0.9.., size=1..5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

struct FlagsExperimentOptions {
  std::string name;  // "" = quick-<4 hex digits of the rest>
  std::string ns = "default";
  std::vector<std::string> params;  // NAME=RANGE
  // One objective or several; spec.objective is the first, those to minimise before the others.
  std::vector<std::string> minimize;
  std::vector<std::string> maximize;
  std::vector<std::string> constraints;  // METRIC=RANGE
  std::string algorithm = "auto";
  std::optional<int> max_trials;  // default 12 (or fewer, if the space is smaller)
  std::optional<int> max_failed;  // more failed trials end it; default: any number
  std::optional<int> parallel;    // default 1
  std::optional<int64_t> seed;
  std::vector<std::string> command;  // with {name} where a parameter goes; {{ is a brace
};

// kInvalidArgument, naming the option, its value and the fix.
StatusOr<v1::Experiment> ExperimentFromFlags(const FlagsExperimentOptions& options);

// NAME=RANGE to a parameter.
StatusOr<v1::ParameterSpec> ParseParameterFlag(const std::string& text);

}  // namespace shirabe::experiment
