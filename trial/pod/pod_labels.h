// What we write on the objects of an attempt, so that they are found and known again after a
// restart of the controller, by people and by Katib's clients. On the object itself and on each of
// its pod templates. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/names.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/attempt_status.h"

namespace shirabe::trial {

// Labels. Everything with the label kAttemptLabel is ours: it is the selector of our caches.
constexpr char kExperimentLabel[] = "katib.kubeflow.org/experiment";
constexpr char kTrialLabel[] = "katib.kubeflow.org/trial";  // name of the trial
constexpr char kAttemptLabel[] = "shirabe.dev/attempt";     // number of the attempt
constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
constexpr char kManager[] = "shirabe";

// Annotations of the object (not of its pods).
constexpr char kAttemptIdAnnotation[] = "shirabe.dev/attempt-id";  // AttemptId
constexpr char kRecipeAnnotation[] = "shirabe.dev/recipe";         // AttemptRecipe, as JSON

// Keeps a pod until its log and cause are stored; the executor takes it off.
constexpr char kLogFinalizer[] = "shirabe.dev/log";

// Annotation of its pods: AttemptId as well, so that they are known whatever stands between them
// and the object.
constexpr char kPodAttemptIdAnnotation[] = "shirabe.dev/attempt";

// Our containers.
constexpr char kFoldersContainer[] = "shirabe-folders";
constexpr char kInitContainer[] = "shirabe-init";
constexpr char kSidecarContainer[] = "shirabe-sidecar";

// What a restarted controller needs to know about the object.
struct AttemptRecipe {
  std::string primary_container;
  std::map<std::string, std::string> primary_labels;  // of the primary pod; none = there is one pod
  std::string success_condition;  // GJSON (gjson.h); "" = a Job's or a Pod's own
  std::string failure_condition;
  bool retain = false;
  bool instrumented = false;  // our containers are in the primary pod
};

// With the three labels, the digest of the token and the recipe. `object` must be an object.
void Label(const AttemptKey& key, Json& metadata);
void Annotate(const AttemptRequest& request, const AttemptRecipe& recipe, Json& metadata);

// Of an object or a pod that carries our labels; nullopt for any other.
std::optional<AttemptKey> KeyOf(const Json& object);
std::string AttemptIdOf(const Json& object);  // "" = none
AttemptRecipe RecipeOf(const Json& object);   // defaults for what it does not say

// Whether this is the pod whose program counts: it has the container and the labels.
bool IsPrimary(const Json& pod, const AttemptRecipe& recipe);

}  // namespace shirabe::trial
