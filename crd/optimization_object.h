// An OptimizationJob object of Kubeflow's Trainer as the Experiment object that runs it, and its
// status, as Trainer's own controller would have it. Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "kube/api_client.h"

namespace shirabe::crd {

// Of the Experiment that was made for one: its own name, for the watch; whose it is says its owner
// reference. And what it was made from, by which a later change of annotations is found.
inline constexpr char kOptimizationLabel[] = "shirabe.dev/optimization-job";
inline constexpr char kOptimizationPrint[] = "shirabe.dev/optimization-job-print";

kube::Resource OptimizationJobs();

// Whether its annotation says that Shirabe is to run it. One that has none is another controller's.
bool IsManaged(const kube::Json& object);

// Its own name, or, where no Experiment can have that, what begins as it does.
std::string ExperimentNameFor(const kube::Json& object);

struct OptimizationRequest {
  kube::Json experiment;              // an object; complete if nothing is wrong
  std::vector<std::string> problems;  // the field or annotation, its value, the fix
  // All of them are in annotations, which can be corrected: the spec cannot.
  bool in_annotations = false;
};
OptimizationRequest ReadOptimizationObject(const kube::Json& object);

// What is to change in an Experiment that was made of other annotations: a merge patch.
kube::Json SpecPatch(const kube::Json& experiment, const kube::Json& wanted);

// Complete or Failed: nothing is made for it any more.
bool HasEndedJob(const kube::Json& object);

// What happened in this pass.
struct OptimizationNews {
  std::string reason{};                  // why no Experiment could be made; "" if one is there
  std::string message{};                 // of that, or what is said beside it
  bool failed = false;                   // for good
  std::optional<kube::Json> experiment;  // that runs it
};
kube::Json OptimizationStatusJson(const kube::Json& object, const OptimizationNews& news,
                                  absl::Time now);

}  // namespace shirabe::crd
