// spec.shirabe.limits.experimentSeconds and spec.shirabe.stopWhen: when going on is not worth it.
// (The goal, the counts of trials and the budget are in experiment/plan.cc.)
//
// What a rule goes by is in the status, and is written in the same commit as the trial, the pause
// or the answer of the model that it comes from: a controller that takes the experiment over finds
// the same figures and decides the same. Once a rule holds, the plan's commit records it
// (status.shirabe.stopRule), and nothing takes it back. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::experiment {

// Trials that have ended with a finite value of the objective.
int64_t CountResults(const v1::ExperimentStatus& status);

// The rule that holds now: the recorded one, or the first in the order of the specification.
// nullopt: none.
std::optional<v1::StopRule> DecideStopRule(const v1::Experiment& experiment, absl::Time now);

// What was found, to follow the message of a rule: "; best loss 0.12 of trial digits-7". Of now:
// trials that run when a rule ends the experiment may still give a result.
std::string BestWords(const v1::Experiment& experiment);

// The reason of the condition that the experiment then gets.
std::string ReasonOf(const v1::StopRule& rule);

// Until experimentSeconds are over, if nothing else ends it; infinite where there is no such limit,
// while it is paused, and before it has started.
absl::Duration TimeLeft(const v1::Experiment& experiment, absl::Time now);

// A trial has ended with this objective: whether it is an improvement is counted, if a rule asks.
// What breaks a constraint is none, and is not counted before something keeps them all.
void CountResult(double objective, bool feasible, v1::Experiment& experiment);
// The same where there are several objectives: what comes onto the front is an improvement.
void CountFrontResult(bool on_front, v1::Experiment& experiment);

// It is paused, or goes on: the time of pauses is counted, if a limit asks.
void CountPause(bool paused, absl::Time now, v1::Experiment& experiment);

// Whether the model is to be asked for a bound of the regret: there are results that the last one
// does not know, and enough of them.
bool WantsRegretBound(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
