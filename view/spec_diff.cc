#include "view/spec_diff.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/message_tree.h"
#include "experiment/spec/parse_spec.h"

namespace shirabe::view {
namespace {

// As experiment::CheckSameExperiment has it.
bool IsChangeable(const std::string& path) {
  static const std::set<std::string> changeable = {"spec.parallelTrialCount", "spec.maxTrialCount",
                                                   "spec.maxFailedTrialCount",
                                                   "spec.objective.goal"};
  static const LazyRE2 kRange = {R"(spec\.parameters\[\d+\]\.feasibleSpace\.(min|max|list.*))"};
  return changeable.contains(path) || RE2::FullMatch(path, *kRange);
}

using Side = std::optional<Json>;

Side Member(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  return found == object.end() ? Side() : Side(*found);
}

Side Item(const Json& list, size_t i) { return i < list.size() ? Side(list[i]) : Side(); }

void Walk(const std::string& path, const Side& a, const Side& b,
          std::vector<SpecDifference>& differences) {
  if (a == b) return;
  if (a && b && a->is_object() && b->is_object()) {
    for (const auto& [key, value] : a->items()) {
      Walk(experiment::ChildPath(path, key), value, Member(*b, key), differences);
    }
    for (const auto& [key, value] : b->items()) {
      if (!a->contains(key)) Walk(experiment::ChildPath(path, key), {}, value, differences);
    }
    return;
  }
  if (a && b && a->is_array() && b->is_array()) {
    for (size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
      Walk(experiment::ItemPath(path, static_cast<int>(i)), Item(*a, i), Item(*b, i), differences);
    }
    return;
  }
  differences.push_back({path, a, b, IsChangeable(path)});
}

Json SpecTree(const v1::Experiment& experiment) {
  v1::Experiment copy;
  *copy.mutable_spec() = experiment.spec();
  experiment::SetDefaults(copy);
  return experiment::ToTree(copy.spec());
}

}  // namespace

std::vector<SpecDifference> DiffSpecs(const v1::Experiment& stored, const v1::Experiment& wanted) {
  std::vector<SpecDifference> differences;
  Walk("spec", SpecTree(stored), SpecTree(wanted), differences);
  return differences;
}

std::string DifferenceText(const SpecDifference& difference) {
  const std::string& path = difference.path;
  const char* note = difference.changeable ? "" : "  # another search: apply refuses it";
  std::string text;
  if (difference.stored) {
    absl::StrAppend(&text, "- ", path, ": ", PrintJsonLine(*difference.stored), "\n");
  }
  if (difference.wanted) {
    absl::StrAppend(&text, "+ ", path, ": ", PrintJsonLine(*difference.wanted));
  } else {
    absl::StrAppend(&text, "+ ", path, ": nothing");
  }
  return text + note + "\n";
}

Json DifferenceJson(const SpecDifference& difference) {
  return {{"field", difference.path},
          {"stored", difference.stored.value_or(Json())},
          {"wanted", difference.wanted.value_or(Json())},
          {"changeable", difference.changeable}};
}

}  // namespace shirabe::view
