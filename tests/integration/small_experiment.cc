#include "tests/integration/small_experiment.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/strings/str_replace.h"
#include "base/file_io.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "tests/support/small_spec.h"

namespace shirabe::experiment {

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
  std::string more = "maxFailedTrialCount: 0\nshirabe: {seed: 7}";
  if (!small.early_stopping.empty()) more += "\nearlyStopping: " + small.early_stopping;
  v1::Experiment experiment = Read({.name = kSmall.name,
                                    .parallel = small.parallel,
                                    .trials = small.trials,
                                    .script = home + "/train.sh",
                                    .marks = home + "/marks",
                                    .algorithm = small.algorithm,
                                    .more = more});
  if (small.maximize) experiment.mutable_spec()->mutable_objective()->set_type(v1::MAXIMIZE);
  const auto submitted = Submit(*OpenHome(home), *RealClock(), experiment);
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
