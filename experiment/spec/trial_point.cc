#include "experiment/spec/trial_point.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "suggestion/remote/remote_algorithm.h"
#include "suggestion/space/axes.h"

namespace shirabe::experiment {
namespace {

using suggestion::Axis;

double NearestCoordinate(const Axis& axis, const v1::Assignment& value) {
  if (const auto x = axis.Encode(value); x.ok()) return *x;
  const auto number = suggestion::NumberOf(value);
  if (axis.categorical() || !number.ok()) return axis.Canonical(0);
  if (*number >= suggestion::ValueAt(axis, 1)) return axis.Canonical(1);
  if (*number <= suggestion::ValueAt(axis, 0)) return axis.Canonical(0);
  uint64_t above = 0;  // of a list or of steps: the first value that is greater
  while (above + 1 < axis.levels() && suggestion::ValueAt(axis, axis.Coordinate(above)) < *number) {
    ++above;
  }
  return axis.Coordinate(above);
}

}  // namespace

TrialPoint PointIn(const suggestion::Space& space, int64_t changes, const v1::Trial& trial) {
  TrialPoint found;
  if (trial.point().space() == changes) {
    found.point.assign(trial.point().x().begin(), trial.point().x().end());
    return found;
  }
  found.earlier = true;
  const auto& values = trial.assignments();
  if (const auto point = space.Encode({values.begin(), values.end()}); point.ok()) {
    found.point = space.Canonical(*point);
    return found;
  }
  found.outside = true;
  for (int i = 0; i < space.size(); ++i) {
    const auto value = std::find_if(values.begin(), values.end(), [&](const v1::Assignment& one) {
      return one.name() == space.axis(i).name();
    });
    found.point.push_back(value == values.end() ? space.axis(i).Canonical(0)
                                                : NearestCoordinate(space.axis(i), *value));
  }
  found.point = space.Canonical(found.point);
  return found;
}

StatusOr<TrialPoint> CheckedPoint(const suggestion::Space& space, int64_t changes,
                                  const v1::Trial& trial) {
  TrialPoint found = PointIn(space, changes, trial);
  if (!found.outside) return found;
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", trial.number(), " lies outside of the ranges as they are now: widen ",
                   "them first, or give values within"));
}

std::vector<std::pair<std::string, std::string>> LabelsFor(const v1::Trial& trial,
                                                           const suggestion::Space& space) {
  std::vector<std::pair<std::string, std::string>> labels(trial.labels().begin(),
                                                          trial.labels().end());
  if (space.size() > 0) return labels;
  for (const v1::Assignment& assigned : trial.assignments()) {
    labels.emplace_back(suggestion::kAssignedLabel + assigned.name(), assigned.category());
  }
  return labels;
}

}  // namespace shirabe::experiment
