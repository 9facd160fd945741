// Whose the custom resource definitions of the cluster are.
#pragma once

#include "base/status.h"
#include "kube/client.h"

namespace shirabe::crd {

enum class Ownership {
  kOurs,
  kForeign,  // another project's, as Katib's: only what is labelled for us is taken up
  kAbsent,
};

// kPermissionDenied where they may not be read: then whose they are is not known.
StatusOr<Ownership> OwnerOfDefinitions(kube::Client& kube);

}  // namespace shirabe::crd
