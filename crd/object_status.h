// Records as custom resources: the status of an Experiment, and whole Trial and Suggestion objects,
// in the shape of proto/shirabe/v1/crd.proto. Their size does not grow with the number of trials.
// Pure functions, any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kube/api_client.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/record_json.h"

namespace shirabe::crd {

inline constexpr size_t kMaxNames = 100;  // of each list in a status

// The newest trials of an experiment: what each of Katib's lists holds, by phase.
using NamesByPhase = std::map<v1::TrialPhase, std::vector<std::string>>;

struct ObservedSpec {
  int64_t generation = 0;  // of the object, that the status is about
  std::string problem;     // why it is not carried out, "" if it is
};

// Without lastReconcileTime.
kube::Json ExperimentStatusJson(const v1::Experiment& experiment, const NamesByPhase& names,
                                const ObservedSpec& spec);

// Whether two of these differ in nothing but what changes with every trial: counts, lists and sums.
bool OnlySumsDiffer(const kube::Json& before, const kube::Json& after);

// Of an object that has no records: why, and what is waited for, if anything is.
struct PendingObject {
  std::string reason;  // InvalidSpec, NameInUse, …
  std::string message;
  bool failed = true;  // else it waits
  int64_t generation = 0;
  std::string since;  // when it was first said, RFC 3339
};
kube::Json PendingStatusJson(const PendingObject& unrecorded);

// An object to be applied, and its status to be applied after it.
struct ObjectJson {
  kube::Json object;
  kube::Json status;
};

// `owner` is the Experiment object: with it they go.
ObjectJson TrialObject(const view::TrialRenderer& view, const v1::TrialTemplate& from,
                       const v1::Trial& trial, const kube::Json& owner);

// `trials`: those that have objects, by number.
ObjectJson SuggestionObject(const v1::Experiment& experiment,
                            const std::map<int64_t, v1::Trial>& trials, const kube::Json& owner);

// kube::Json sorts keys, the views keep their order.
kube::Json Plain(const view::Json& tree);

}  // namespace shirabe::crd
