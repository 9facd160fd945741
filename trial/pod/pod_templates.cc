#include "trial/pod/pod_templates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shirabe::trial {
namespace {

// Where the walk stands.
struct Level {
  Json* owner = nullptr;
  std::string path;
  int64_t pods = 1;
};

// How many pods an object asks for, by the words that Jobs and operators have for it.
int64_t PodsOf(const Json& object) {
  int64_t pods = 1;
  for (const char* key : {"replicas", "parallelism", "completions"}) {
    pods = std::max(pods, Number(At(object, key)));
  }
  return pods;
}

void Collect(Json& value, const Level& place, std::vector<PodTemplate>& found) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      Collect(value[i], {place.owner, absl::StrCat(place.path, "[", i, "]"), place.pods}, found);
    }
  }
  if (!value.is_object()) return;
  if (At(value, {"spec", "containers"}).is_array()) {
    found.push_back({&value, place.owner, place.path, place.pods});
    return;
  }
  const int64_t pods = std::max(place.pods, PodsOf(value));
  for (auto& [key, field] : value.items()) {
    Collect(field, {&value, absl::StrCat(place.path, ".", key), pods}, found);
  }
}

}  // namespace

std::string PodTemplate::ContainerPath(size_t index) const {
  return absl::StrCat(path, ".spec.containers[", index, "]");
}

std::vector<PodTemplate> FindTemplates(Json& object) {
  std::vector<PodTemplate> found;
  Collect(object, {nullptr, kTrialSpecPath, 1}, found);
  return found;
}

int IndexOfContainer(const PodTemplate& from, const std::string& name) {
  const Json& containers = At(*from.root, {"spec", "containers"});
  for (size_t i = 0; i < containers.size(); ++i) {
    if (Text(containers[i], {"name"}) == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace shirabe::trial
