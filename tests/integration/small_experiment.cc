#include "tests/integration/small_experiment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "experiment/spec.h"
#include "experiment/submit.h"

namespace shirabe::experiment {
namespace {

constexpr char kSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: small}
spec:
  parallelTrialCount: PARALLEL
  maxTrialCount: TRIALS
  maxFailedTrialCount: 0
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: ALGORITHM}
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}
  shirabe: {seed: 7}
EARLY_STOPPING
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: lr, reference: lr}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: main
                image: none
                env: [{name: MARKS, value: HOME/marks}]
                command: [/bin/sh, HOME/train.sh, "${trialParameters.lr}"]
)";

}  // namespace

std::unique_ptr<db::Store> OpenHome(const std::string& home) {
  auto store = db::Open("sqlite:" + home + "/shirabe.db");
  CHECK(store.ok());
  return std::move(*store);
}

std::string MakeHome(const SmallExperiment& small) {
  char name[] = "/tmp/shirabe-small-XXXXXX";
  CHECK(mkdtemp(name) != nullptr);
  const std::string home = name;
  CHECK(MakeDirs(home + "/marks").ok());
  const std::string trainer = absl::StrReplaceAll(
      kTrainer,
      {{"STEPS", std::to_string(small.steps)}, {"sleep SECONDS", "sleep " + small.seconds}});
  CHECK(WriteFileAtomic(home + "/train.sh", small.first_line + "\n" + trainer).ok());
  const std::string stopping =
      small.early_stopping.empty() ? "" : "  earlyStopping: " + small.early_stopping;
  const auto parsed =
      ParseExperiments(absl::StrReplaceAll(kSpec, {{"HOME", home},
                                                   {"ALGORITHM", small.algorithm},
                                                   {"EARLY_STOPPING", stopping},
                                                   {"PARALLEL", std::to_string(small.parallel)},
                                                   {"TRIALS", std::to_string(small.trials)}}));
  for (const Finding& finding : parsed[0].findings) {
    EXPECT_TRUE(finding.warning) << FormatFinding(finding, "spec");
  }
  const auto submitted = Submit(*OpenHome(home), *RealClock(), parsed[0].experiment);
  EXPECT_TRUE(submitted.ok()) << submitted.status();
  return home;
}

Status RunSmall(const std::string& home, const RunOptions& options) {
  const auto store = OpenHome(home);
  ControllerOptions controller_options{.store = store.get(), .clock = RealClock()};
  controller_options.executor_options = {
      .home = home, .clock = RealClock(), .pools = options.pools};
  controller_options.at_step = options.at_step;
  ASSIGN_OR_RETURN(const auto controller, Controller::Create(controller_options));
  RETURN_IF_ERROR(controller->Own(kSmall));
  return controller->Await(kSmall, absl::Minutes(2));
}

}  // namespace shirabe::experiment
