// From an Experiment object of the API server to a specification of ours: the same parser and the
// same rules as for a file; and which user made or changed it (ActorOf). Pure functions but for
// ActorOf, which asks the API server; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kube/api_client.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::crd {

struct ConvertedObject {
  v1::Experiment experiment;          // with the object's uid noted; complete if nothing is wrong
  std::vector<std::string> problems;  // "spec.objective.type: …": the field, the value, the fix
  std::vector<std::string> warnings;  // in the same form
};

ConvertedObject ConvertObject(const kube::Json& object);

// The ConfigMap that holds the object's template (trialTemplate.configMap); nullopt if it has its
// own, or says nothing that could be read.
struct TemplateSource {
  std::string namespace_name;
  std::string name;
  std::string key;
};
std::optional<TemplateSource> FindTemplateSource(const kube::Json& object);

// The object with what that ConfigMap holds as its trialSpec. kInvalidArgument, naming the key, if
// it has none of that name, or one that is no template.
StatusOr<kube::Json> WithTemplate(kube::Json object, const TemplateSource& source,
                                  const kube::Json& config_map);

// The object with the template that was read before: what the ConfigMap holds by now is for new
// experiments.
kube::Json WithTemplateOf(kube::Json object, const v1::Experiment& stored);

// Who made or changed an Experiment object, as its records have it. An object does not say by
// itself which user wrote it, so the user stands in annotations, which admission policies
// (deploy/kubernetes/base/actors.yaml) keep honest, so that no user can write another's name there,
// and which deploy/kubernetes/components/actors writes. Where those policies are not installed an
// annotation proves nothing and is not believed.

inline constexpr char kCreatedBy[] = "shirabe.dev/created-by";
inline constexpr char kChangedBy[] = "shirabe.dev/changed-by";

// Who made the object, or changed it last (`annotation`); where that is not known, by what program,
// as the API server noted it. Asks the API server for either.
v1::Actor ActorOf(kube::Client& client, const kube::Json& object, const char* annotation);
// Of what the deletion of an object brings about.
v1::Actor UnnamedDeleter();

}  // namespace shirabe::crd
