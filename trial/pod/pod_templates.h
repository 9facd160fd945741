// The pod templates of an object of any kind: a Pod is one, a Job has one, a training operator's
// object one for each role, wherever they lie. Used by trial/pod/pod_build.cc and its neighbours,
// and by trial/kubernetes/checkpoint_volume.cc. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text/json_fields.h"
#include "trial/pod/pod_names.h"
#include "trial/trial_template.h"

namespace shirabe::trial {

struct PodTemplate {
  Json* root = nullptr;   // has metadata and spec; lies in the object
  Json* owner = nullptr;  // what holds it as `template`; null for a Pod
  std::string path;       // of root in the experiment
  int64_t pods = 1;       // that will be made of it

  Json& spec() const { return (*root)["spec"]; }
  std::string ContainerPath(size_t index) const;
};

// Kubeflow's, of trainer.kubeflow.org: see trial/pod/operator_kinds.h.
bool IsTrainJob(const Json& object);

// In the order of their paths. They point into the object: nothing above them may move. A TrainJob
// has none: what looks like one in its runtimePatches is a part of the runtime's.
std::vector<PodTemplate> FindTemplates(Json& object);

// Index of the container of that name; -1 if it has none.
int IndexOfContainer(const PodTemplate& from, const std::string& name);

// Where a pod may run, and how that is written into its specification.
// trial/pod/pod_scheduling.h decides it. Pure functions.

// What goes into the specification of a pod.
struct PodScheduling {
  Json node_selector = Json::object();  // labels that the node must have
  Json required = Json::array();        // nodeSelectorTerms: one of them must hold, if any
  Json preferred = Json::array();       // PreferredSchedulingTerms
  Json tolerations = Json::array();
  std::vector<std::string> pools;  // names, in order of preference; none = whatever there is
  double price_per_hour = 0;       // of the dearest node it may get, as far as pools tell
};

// Adds it to a pod's specification (`spec` of a Pod or of a pod template): what the user wrote
// there holds as well. kInvalidArgument, naming the label, where the two exclude each other.
Status ApplyScheduling(const PodScheduling& place, Json& pod_spec);

// kInvalidArgument, "cannot progress: WHY".
Status CannotProgress(const std::string& why);

// Which pod of a trial of several is the attempt's: the one whose metrics are read. Katib says so
// by labels that Kubeflow's training operator gives the pods of a role; before there are pods, the
// template of that role is known by its key in the object, as Worker in tfReplicaSpecs. Used by
// trial/pod/pod_build.cc. Pure.

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
