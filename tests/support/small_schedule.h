// A schedule of small experiments (small_spec.h) whose trials their askers run, as YAML.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/small_spec.h"

namespace shirabe {

struct SmallSchedule {
  std::string name = "nightly";
  std::string ns = "default";
  std::string schedule = "0 2 * * *";
  std::string more = "";                                  // lines of `spec`
  std::string spec_more = "shirabe: {askAndTell: true}";  // lines of the experiment's `spec`
};

inline std::string ScheduleYaml(const SmallSchedule& wanted) {
  const std::string experiment = Yaml({.trials = 4, .more = wanted.spec_more});
  const std::string spec = experiment.substr(experiment.find("spec:\n"));
  return absl::StrCat("apiVersion: kubeflow.org/v1beta1\nkind: ScheduledExperiment\n",
                      "metadata: {name: ", wanted.name, ", namespace: ", wanted.ns, "}\nspec:\n",
                      "  schedule: \"", wanted.schedule, "\"\n", Indented(2, wanted.more),
                      "  experimentTemplate:\n", Indented(4, spec));
}

}  // namespace shirabe
