#include "tests/integration/shell_experiment.h"

#include <gtest/gtest.h>

#include "experiment/spec/spec.h"
#include "tests/support/small_spec.h"

namespace shirabe::experiment {
v1::Experiment Read(const ShellExperiment& wanted) {
  std::string container = ScriptCommand(wanted.script);
  if (!wanted.marks.empty()) container += "\nenv: [{name: MARKS, value: " + wanted.marks + "}]";
  const auto parsed = ParseExperiments(Yaml({.name = wanted.name,
                                             .algorithm = wanted.algorithm,
                                             .parallel = wanted.parallel,
                                             .trials = wanted.trials,
                                             .container = container,
                                             .more = wanted.more}));
  for (const Finding& finding : parsed[0].findings) {
    EXPECT_TRUE(finding.warning) << FormatFinding(finding, "spec");
  }
  return parsed[0].experiment;
}

}  // namespace shirabe::experiment
