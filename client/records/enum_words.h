// The words that people see for phases, causes and states, in tables, filters and JSON alike. Pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process_id.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// Katib's condition types, and Pending.
std::string PhaseWord(v1::TrialPhase phase);
bool IsTerminal(v1::TrialPhase phase);
// completed, preempted-node, …; "" where there is none.
std::string CauseWord(v1::Cause cause);
// created, running, closed.
std::string AttemptStateWord(v1::AttemptState state);
// Created, Running, Succeeded, …: the newest condition; or Paused, Stopping.
std::string StateWord(const v1::Experiment& experiment);
// Pending, Running, Succeeded, Failed, Skipped: of spec.shirabe.onSuccess.
std::string FollowUpWord(v1::FollowUpPhase phase);
std::string ParameterTypeWord(v1::ParameterType type);
// minimize, maximize.
std::string ObjectiveWord(v1::ObjectiveType type);

// 6 significant digits, for tables: 0.951034, 1e-05, 32, NaN.
std::string ShortNumber(double value);
// lr=0.0031 bs=32
std::string ShortAssignments(const google::protobuf::RepeatedPtrField<v1::Assignment>& values);
// admin (grpc); "" where no actor is recorded.
std::string ActorWords(const v1::Actor& actor);
// process 4711 on a; the text as it is where it is no process.
std::string HolderWords(const std::string& holder);

// The objective of a trial as people see it: once it has ended, what counts; while it runs, what
// its metrics come to so far. Pure functions.

// The objective, then the additional metrics, each once.
std::vector<std::string> MetricNames(const v1::Experiment& experiment);

struct ShownValue {
  double value = 0;
  int64_t step = 0;
};

// nullopt where no finite value was seen.
std::optional<ShownValue> ShownObjective(const v1::Experiment& experiment, const v1::Trial& trial);

// The value of any metric by the strategy of the experiment: min, max or latest.
std::optional<ShownValue> ShownMetric(const v1::Experiment& experiment, const v1::Trial& trial,
                                      const std::string& metric);

}  // namespace shirabe::client
