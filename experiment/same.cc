// Whether a file still describes the experiment that the store has.
#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "base/names.h"
#include "experiment/findings.h"
#include "experiment/print.h"
#include "experiment/spec.h"

namespace shirabe::experiment {
namespace {

struct Difference {
  std::string path;
  std::string before;
  std::string after;
};

std::string Shown(const Json* value) {
  if (value == nullptr) return "nothing";
  const std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::optional<Difference> Compare(const Json& a, const Json& b, const std::string& path);

std::optional<Difference> CompareObjects(const Json& a, const Json& b, const std::string& path) {
  std::map<std::string, const Json*> others;
  for (const auto& [key, value] : b.items()) others.emplace(key, &value);
  for (const auto& [key, value] : a.items()) {
    const std::string child = ChildPath(path, key);
    const auto other = others.find(key);
    if (other == others.end()) return Difference{child, Shown(&value), Shown(nullptr)};
    if (auto difference = Compare(value, *other->second, child)) return difference;
    others.erase(other);
  }
  for (const auto& [key, value] : others) {
    return Difference{ChildPath(path, key), Shown(nullptr), Shown(value)};
  }
  return std::nullopt;
}

// The first difference in the order of the fields.
std::optional<Difference> Compare(const Json& a, const Json& b, const std::string& path) {
  if (a == b) return std::nullopt;
  if (a.is_object() && b.is_object()) return CompareObjects(a, b, path);
  if (a.is_array() && b.is_array()) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string child = ItemPath(path, static_cast<int>(i));
      if (i >= a.size()) return Difference{child, Shown(nullptr), Shown(&b[i])};
      if (i >= b.size()) return Difference{child, Shown(&a[i]), Shown(nullptr)};
      if (auto difference = Compare(a[i], b[i], child)) return difference;
    }
  }
  return Difference{path, Shown(&a), Shown(&b)};
}

// The specification without what may change while the experiment runs.
Json Fixed(const v1::Experiment& experiment) {
  v1::Experiment copy;
  *copy.mutable_spec() = experiment.spec();
  SetDefaults(copy);
  copy.mutable_spec()->clear_parallel_trial_count();
  copy.mutable_spec()->clear_max_trial_count();
  copy.mutable_spec()->clear_max_failed_trial_count();
  copy.mutable_spec()->mutable_objective()->clear_goal();
  return ToTree(copy.spec());
}

}  // namespace

Status CheckSameExperiment(const v1::Experiment& existing, const v1::Experiment& wanted) {
  const auto difference = Compare(Fixed(existing), Fixed(wanted), "spec");
  if (!difference) return absl::OkStatus();
  const ExperimentKey key{existing.metadata().namespace_(), existing.metadata().name()};
  return absl::AlreadyExistsError(
      "experiment " + ToString(key) + " exists and is another search: " + difference->path +
      " is " + difference->before + " there and " + difference->after +
      " here; give this one another metadata.name, or delete the other first");
}

}  // namespace shirabe::experiment
