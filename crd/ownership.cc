#include "crd/ownership.h"

#include "crd/definitions.h"
#include "crd/objects.h"

namespace shirabe::crd {

StatusOr<Ownership> OwnerOfDefinitions(kube::Client& kube) {
  const auto definition = kube.Get({DefinitionsResource(), "", "experiments.kubeflow.org"});
  if (absl::IsNotFound(definition.status())) return Ownership::kAbsent;
  RETURN_IF_ERROR(definition.status());
  return LabelOf(*definition, kPartOfLabel) == kPartOf ? Ownership::kOurs : Ownership::kForeign;
}

}  // namespace shirabe::crd
