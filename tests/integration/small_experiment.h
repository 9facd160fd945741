// A small experiment with real processes: each trial makes steps, reports every one of them, saves
// after each, and goes on from what it is given. In a folder of its own, removed afterwards.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "db/store.h"
#include "experiment/experiment_controller.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

inline const ExperimentKey kSmall{"default", "small"};

// $1 is the trial's parameter, of which the loss is made. Every start leaves a line in
// $MARKS/starts, every step one in $MARKS/steps.
inline constexpr char kTrainer[] = R"(
step=0
[ -n "$SHIRABE_RESUME_FROM" ] && step=$(cat "$SHIRABE_RESUME_FROM/step")
echo "$SHIRABE_TRIAL-a$SHIRABE_ATTEMPT from $step" >> "$MARKS/starts"
while [ $step -lt ${LAST:-STEPS} ]; do
  sleep SECONDS
  step=$((step + 1))
  echo "$SHIRABE_TRIAL $step" >> "$MARKS/steps"
  loss=$(awk "BEGIN {print $1 / $step}")
  echo "{\"step\":$step,\"metrics\":{\"loss\":$loss}}" >> "$SHIRABE_METRICS_FILE"
  mkdir "$SHIRABE_CHECKPOINT_DIR/$step.tmp"
  echo $step > "$SHIRABE_CHECKPOINT_DIR/$step.tmp/step"
  mv "$SHIRABE_CHECKPOINT_DIR/$step.tmp" "$SHIRABE_CHECKPOINT_DIR/$step"
done
echo '{"done": true}' >> "$SHIRABE_METRICS_FILE"
)";

struct SmallExperiment {
  int trials = 2;
  int parallel = 2;
  int steps = 4;
  std::string seconds = "0.02";  // that a step takes
  std::string first_line = ":";  // of the trainer, before all else; may set LAST
  std::string algorithm = "sobol";
  std::string early_stopping = "";  // of the specification, in YAML on one line
  bool maximize = false;            // the loss, all the same
};

// A new folder with the trainer, a database and the experiment in it.
std::string MakeHome(const SmallExperiment& small);
std::unique_ptr<db::Store> OpenHome(const std::string& home);
// Takes the experiment of `home` to its end.
struct RunOptions {
  v1::NodePools pools;
  std::function<void()> at_step;
};
Status RunSmall(const std::string& home, const RunOptions& options);

// This program started again, with these set, is a controller of that home that dies at that step.
inline constexpr char kCrashHome[] = "SHIRABE_TEST_CRASH_HOME";
inline constexpr char kCrashStep[] = "SHIRABE_TEST_CRASH_STEP";
int RunCrashChild(const std::string& home);

// An experiment whose trials are one shell script: a Job with one parameter, lr, from 0 to 1, which
// the script has as $1.
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
