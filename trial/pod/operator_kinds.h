// Kinds whose operators make pods of more than a pod template in the object: Kubeflow's TrainJob
// takes them from a runtime, Argo's Workflow and Tekton's PipelineRun and TaskRun from templates
// and tasks of their own. Nothing can be put beside the program there. What such an operator does
// pass on to its pods is written where it reads it; what it writes on them by itself tells whose
// they are where ours does not come through. Pure.
//   TrainJob     spec.runtimePatches (Trainer 2.3 and newer), for the job of the runtime that the
//                primary pod is of: labels, our hold on the pod, its grace and its place
//   Workflow     spec.podMetadata, and the fields of spec for its place
//   PipelineRun, TaskRun   labels and annotations of the object; a podTemplate for its place
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "base/text/json_fields.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_templates.h"

namespace shirabe::trial {

// Any of the kinds above.
bool IsOperatorKind(const Json& object);

// `pod` is what a pod template of the attempt would get: metadata, and in spec grace and place.
// kInvalidArgument where the user's own place and `place` exclude each other.
Status PassOn(const Json& pod, const PodScheduling& place, const AttemptRecipe& recipe,
              Json& object);

// Where a TrainJob has the environment of its program, as a container has it.
Json& TrainerOf(Json& object);
// How many pods a TrainJob trains in, and one of them, for what they cost.
int64_t TrainerNodes(const Json& object);
Json TrainerPod(const Json& object);

// Whether all attempts of a trial have an object of one name, the trial's: a TrainJob, which
// Kubeflow's OptimizerClient looks for by that name. Then the object of an attempt is made once
// that of the one before is gone (trial/kubernetes/attempt_starter.cc).
bool SharesObjectName(const std::string& group, const std::string& kind);
// What the object of an attempt is called.
std::string ObjectName(const AttemptKey& key, const Json& object);

// Why a Workflow has ended in the phase Error, for which neither of Katib's conditions holds: what
// stands in it cannot be run. nullopt for all others.
std::optional<std::string> WhyErred(const Json& object);

// The label of pods in which the operator of this kind (its group, without the version) names the
// object that they were made of; "" for kinds whose pods all have our own labels.
std::string OwnerLabel(const std::string& group, const std::string& kind);

}  // namespace shirabe::trial
