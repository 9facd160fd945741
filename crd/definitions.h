// The CustomResourceDefinitions of kubeflow.org/v1beta1: experiments, which people write, and
// suggestions and trials, which show what became of them; and their schemas. `shirabe crds` prints
// them, and the files under deploy/kubernetes/crds are what it printed. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace shirabe::crd {

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
