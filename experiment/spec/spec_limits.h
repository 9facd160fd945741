// How large a specification may be, however it comes: in a file on the command line, by HTTP, by
// gRPC, by Katib's wire, or as an object of a cluster. Each number is far beyond what a search that
// ends needs, and small enough that checking, storing and showing the whole takes a moment. An
// experiment that is stored already is not asked again. Pure function of the message.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "experiment/spec/findings.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

inline constexpr size_t kMaxSpecBytes = 1 << 20;  // of the whole, as YAML has it
inline constexpr int kMaxParameters = 1'000;      // also of all operations of a nasConfig
inline constexpr int kMaxListValues = 10'000;     // of one parameter
inline constexpr int kMaxMetrics = 1'000;         // additionalMetricNames, metricStrategies
inline constexpr int kMaxSettings = 1'000;        // of an algorithm, of an early-stopping rule
inline constexpr int kMaxStartPoints = 1'000;
inline constexpr int kMaxAdditionalObjectives = 7;
inline constexpr int kMaxConstraints = 50;     // on results
inline constexpr int kMaxNotifications = 10;   // endpoints that are told
inline constexpr int kMaxCauses = 10;          // of one of them
inline constexpr int kMaxForbidden = 200;      // combinations
inline constexpr int kMaxRuleParameters = 20;  // of a condition, of a forbidden combination
inline constexpr int kMaxTrialParameters = 2'000;
inline constexpr int kMaxPatterns = 20;  // metricsFormat
inline constexpr size_t kMaxPatternBytes = 4'096;
inline constexpr int kMaxLabels = 1'000;           // labels, annotations, primaryPodLabels
inline constexpr int kMaxNames = 100;              // of earlier experiments, of pools
inline constexpr int kMaxOperations = 1'000;       // of a nasConfig
inline constexpr size_t kMaxNameBytes = 512;       // of a parameter, metric, setting, reference
inline constexpr size_t kMaxTextBytes = 16 << 10;  // of a value in a list, of a setting, a path

// An error for each limit that is broken, with the field, the number and the limit; and for values
// that no kind of file can hold (see base/text/message_check.h). False if there was one: then the
// other rules, which take time in proportion, should not be looked at.
bool CheckSpecLimits(const v1::Experiment& experiment, Findings& findings);

// What an administrator lets experiments take, so that none of them takes what the others need. A
// number that is reached holds trials back: the experiment waits and says so. 0 = any number. Data;
// set by `serve` and `controller`, applied by the controller of the experiments and when one is
// submitted.

struct Limits {
  int64_t parallel_trials = 1000;            // of an experiment, at the same time
  int64_t namespace_parallel_trials = 5000;  // of all experiments of a namespace, in this process
  int64_t trials = 1'000'000;                // of an experiment, in all
  int64_t experiments = 10'000;              // of a namespace, those that have ended included
};

// More than any administrator allows: what says so is refused at once, as a slip.
inline constexpr int64_t kMaxParallelTrials = 1'000'000;
inline Status CheckParallel(int64_t parallel) {
  if (parallel <= kMaxParallelTrials) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      parallel, " trials at the same time are more than ", kMaxParallelTrials, ": lower it"));
}

// Trials that one pass makes, and the attempts of old ones that it starts: more follow in the next
// pass, after what came meanwhile.
inline constexpr int kMaxNewTrials = 32;

}  // namespace shirabe::experiment
