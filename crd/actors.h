// Who made or changed an Experiment object, as its records have it. An object does not say by
// itself which user wrote it, so the user stands in annotations, which admission policies
// (deploy/kubernetes/base/actors.yaml) keep honest, so that no user can write another's name
// there, and components/actors writes. Where those policies are not installed an annotation proves
// nothing and is not believed.
#pragma once

#include "kube/client.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::crd {

inline constexpr char kCreatedBy[] = "shirabe.dev/created-by";
inline constexpr char kChangedBy[] = "shirabe.dev/changed-by";

// Who made the object, or changed it last (`annotation`); where that is not known, by what program,
// as the API server noted it. Asks the API server for either.
v1::Actor ActorOf(kube::Client& client, const kube::Json& object, const char* annotation);
// Of what the deletion of an object brings about.
v1::Actor UnnamedDeleter();

}  // namespace shirabe::crd
