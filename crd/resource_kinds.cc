#include "crd/resource_kinds.h"

#include "crd/definitions.h"

namespace shirabe::crd {

using kube::Json;

kube::Resource Experiments() { return {"kubeflow.org", "v1beta1", "experiments", "Experiment"}; }
kube::Resource Suggestions() { return {"kubeflow.org", "v1beta1", "suggestions", "Suggestion"}; }
kube::Resource Trials() { return {"kubeflow.org", "v1beta1", "trials", "Trial"}; }
kube::Resource Events() { return {"events.k8s.io", "v1", "events", "Event"}; }
kube::Resource ConfigMaps() { return {"", "v1", "configmaps", "ConfigMap"}; }
kube::Resource DefinitionsResource() {
  return {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
          /*namespaced=*/false};
}

std::string LabelOf(const Json& object, const char* label) {
  return Text(object, {"metadata", "labels", label});
}
ExperimentKey KeyOfObject(const Json& object) { return {NamespaceOf(object), NameOf(object)}; }

std::string MicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

StatusOr<Ownership> OwnerOfDefinitions(kube::Client& kube) {
  const auto definition = kube.Get({DefinitionsResource(), "", "experiments.kubeflow.org"});
  if (absl::IsNotFound(definition.status())) return Ownership::kAbsent;
  RETURN_IF_ERROR(definition.status());
  return LabelOf(*definition, kPartOfLabel) == kPartOf ? Ownership::kOurs : Ownership::kForeign;
}

}  // namespace shirabe::crd
