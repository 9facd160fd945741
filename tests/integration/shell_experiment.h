// Experiments whose trials are one shell script, for tests that want real processes: each is a Job
// with one parameter, lr, from 0 to 1, which the script has as $1.
#pragma once

#include <string>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

struct ShellExperiment {
  std::string name;
  int parallel = 1;
  int trials = 1;
  std::string script;      // its path
  std::string marks = "";  // $MARKS of the script, where it is set
  std::string algorithm = "random";
  std::string more = "";  // lines of YAML of spec
};

// As it is read from YAML; a mistake in it fails the test.
v1::Experiment Read(const ShellExperiment& wanted);

}  // namespace shirabe::experiment
