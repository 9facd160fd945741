// The kinds of objects that crd/ reads and writes, what is in every object of an API server, and
// the CustomResourceDefinitions of our own kinds. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "kube/api_client.h"
#include "kube/json_access.h"

namespace shirabe::crd {

inline constexpr char kApiVersion[] = "kubeflow.org/v1beta1";
inline constexpr char kFieldManager[] = "shirabe";
inline constexpr char kExperimentLabel[] = "katib.kubeflow.org/experiment";
// Of the Trials and Suggestions that we make.
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kManagedBy[] = "shirabe";
// Of an Experiment that we are to take up though its definition is another project's.
// With this value, of ConfigMaps whose templates all namespaces may use.
inline constexpr char kComponentLabel[] = "katib.kubeflow.org/component";
inline constexpr char kTrialTemplates[] = "trial-templates";
inline constexpr char kManagedLabel[] = "shirabe.dev/managed";

kube::Resource Experiments();
kube::Resource ScheduledExperiments();
kube::Resource Suggestions();
kube::Resource Trials();
kube::Resource Events();
kube::Resource ConfigMaps();
kube::Resource DefinitionsResource();

using kube::NameOf;
using kube::NamespaceOf;
using kube::UidOf;

std::string LabelOf(const kube::Json& object, const char* label);
ExperimentKey KeyOfObject(const kube::Json& object);

// RFC 3339 with microseconds, as events have it.
std::string MicroTime(absl::Time time);

// Whose the custom resource definitions of the cluster are.
enum class Ownership {
  kOurs,
  kForeign,  // another project's, as Katib's: only what is labelled for us is taken up
  kAbsent,
};

// kPermissionDenied where they may not be read: then whose they are is not known.
StatusOr<Ownership> OwnerOfDefinitions(kube::Client& kube);

// The CustomResourceDefinitions of kubeflow.org/v1beta1: experiments and scheduledexperiments,
// which people write, and suggestions and trials, which show what became of them; and their
// schemas. `shirabe crds` prints them, and the files under deploy/kubernetes/crds are what it
// printed.

using OrderedJson = nlohmann::ordered_json;

// By this label a definition is known to be ours; another project's are left alone.
inline constexpr char kPartOfLabel[] = "app.kubernetes.io/part-of";
inline constexpr char kPartOf[] = "shirabe";

struct Definition {
  std::string plural;
  OrderedJson object;
};

// In the order in which they are to be applied.
std::vector<Definition> Definitions();

}  // namespace shirabe::crd
