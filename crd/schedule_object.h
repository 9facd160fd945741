// A ScheduledExperiment object as a decision needs it, the Experiment object that it starts, and
// its status. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kube/json_access.h"
#include "proto/shirabe/v1/schedule.pb.h"
#include "schedule/start_decision.h"

namespace shirabe::crd {

// What the object says, with defaults; kInvalidArgument with all its mistakes.
StatusOr<v1::ScheduledExperiment> ReadScheduleObject(const kube::Json& object);

// With those of the Experiments that are its own, by their owner references.
schedule::ScheduleState ScheduleStateOf(const kube::Json& object,
                                        const std::vector<kube::Json>& experiments);
bool IsOwnedBy(const kube::Json& experiment, const kube::Json& object);

// `last`: the name of the experiment to learn from; "" = none.
kube::Json ExperimentObject(const kube::Json& object, const schedule::StartDecision& decision,
                            const std::string& last);
// The last that has succeeded; "" if there is none.
std::string LastSuccessOf(const schedule::ScheduleState& state);

// What happened in this pass, to be written over the status that is there.
struct ScheduleNews {
  std::optional<absl::Time> started{};  // its scheduled time; none of a start that was asked for
  std::string name{};                   // of the Experiment that was started
  int missed = 0;
  std::string waiting{};
  absl::Time next = absl::InfiniteFuture();
};
kube::Json ScheduleStatusJson(const kube::Json& object, const std::vector<kube::Json>& experiments,
                              const ScheduleNews& news);

}  // namespace shirabe::crd
