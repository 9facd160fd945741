// The CustomResourceDefinitions of kubeflow.org/v1beta1: experiments, which people write, and
// suggestions and trials, which show what became of them; and their schemas. `shirabe crds` prints
// them, and the files under deploy/kubernetes/crds are what it printed. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace shirabe::crd {

// Structural OpenAPI v3 schemas of the custom resources, made from the field options of the .proto
// files: the table that the YAML walker, `explain` and the HTTP description are made from. A schema
// accepts all that the walker accepts: a number may be text, null is as if it were not there, and
// fields that it does not know are kept, so that the controller can refuse them by name. What it
// can refuse, the API server does, at once. Pure functions, any thread.

using OrderedJson = nlohmann::ordered_json;

// Of a message that people write, or (`written_by_us`) of one that only we write: there nothing is
// required, since an object made by others, or by an older version, must stay readable.
OrderedJson StructuralSchema(const google::protobuf::Descriptor& message, bool written_by_us);

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
