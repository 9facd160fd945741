// Which pod of a trial of several is the attempt's: the one whose metrics are read. Katib says so
// by labels that Kubeflow's training operator gives the pods of a role; before there are pods, the
// template of that role is known by its key in the object, as Worker in tfReplicaSpecs. Used by
// trial/pod/pod_build.cc. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_templates.h"

namespace shirabe::trial {

// Of a pod of an indexed Job.
inline constexpr char kIndexLabel[] = "batch.kubernetes.io/job-completion-index";

// Of the templates with these indices, the one whose pods have the labels: of the master's role
// that of a master or chief, else of the workers; with one template alone, that. nullopt if the
// labels do not tell.
std::optional<size_t> TemplateOfPrimary(const std::vector<PodTemplate>& pods,
                                        const std::vector<size_t>& candidates,
                                        const AttemptRecipe& recipe);

// Of a template that runs as several pods: labels that one of them has, the first, are added to the
// recipe's. False where nothing tells them apart.
bool PinFirstPod(const Json& object, AttemptRecipe& recipe);

// Of a Job or a Pod: whether its pods, made with these labels, will have those of the recipe.
Status CheckPrimaryLabels(const Json& labels, const AttemptRecipe& recipe);

}  // namespace shirabe::trial
