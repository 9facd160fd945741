// The typed → text conversion of one trial, and what it costs to read its command.
#include <benchmark/benchmark.h>

#include "google/protobuf/util/json_util.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

v1::TrialTemplate Template() {
  v1::TrialTemplate result;
  const auto status = google::protobuf::util::JsonStringToMessage(
      R"json({"trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {
           "containers": [{"name": "training-container", "image": "example/train:1",
             "command": ["python3", "/opt/train.py", "--lr=${trialParameters.lr}",
                         "--batch-size=${trialParameters.bs}",
                         "--optimizer=${trialParameters.optimizer}", "--seed=$(SHIRABE_SEED)"],
             "env": [{"name": "OUT", "value": "$(SHIRABE_OUTPUT_DIR)/model"}],
             "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "8Gi"}}}],
           "restartPolicy": "Never"}}}},
          "trialParameters": [{"name": "lr", "reference": "lr"}, {"name": "bs", "reference": "bs"},
                              {"name": "optimizer", "reference": "optimizer"}]})json",
      &result);
  CHECK(status.ok());
  return result;
}

std::vector<v1::Assignment> Assignments() {
  std::vector<v1::Assignment> assignments(3);
  assignments[0].set_name("lr");
  assignments[0].set_number(0.00123456789);
  assignments[1].set_name("bs");
  assignments[1].set_integer(128);
  assignments[2].set_name("optimizer");
  assignments[2].set_category("adamw");
  return assignments;
}

void BM_Render(benchmark::State& state) {
  const auto from = Template();
  const auto assignments = Assignments();
  const TrialKey trial{{"default", "digits"}, 7};
  for (auto _ : state) benchmark::DoNotOptimize(Render(from, trial, assignments));
}
BENCHMARK(BM_Render);

void BM_ReadCommand(benchmark::State& state) {
  const auto spec = *Render(Template(), {{"default", "digits"}, 7}, Assignments());
  const std::map<std::string, std::string> environment = {{"SHIRABE_SEED", "7"},
                                                          {"SHIRABE_OUTPUT_DIR", "/out"}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadCommand(spec, "training-container", environment));
  }
}
BENCHMARK(BM_ReadCommand);

void BM_ReferencedParameters(benchmark::State& state) {
  const auto from = Template();
  for (auto _ : state) benchmark::DoNotOptimize(ReferencedParameters(from.trial_spec()));
}
BENCHMARK(BM_ReferencedParameters);

}  // namespace
}  // namespace shirabe::trial
