#include "client/observation_retention.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace shirabe::client {
namespace {

using Group = std::vector<const db::StoredObservation*>;

// The places, in a group in the order of steps, of rows that stay.
std::set<size_t> PlacesToKeep(const Group& group, size_t keep) {
  std::set<size_t> places = {0, group.size() - 1};
  const auto value = [&](size_t i) { return group[i]->value; };
  size_t least = group.size(), greatest = group.size();
  for (size_t i = 0; i < group.size(); ++i) {
    if (!std::isfinite(value(i))) continue;
    if (least == group.size() || value(i) < value(least)) least = i;
    if (greatest == group.size() || value(i) > value(greatest)) greatest = i;
  }
  if (least != group.size()) places.insert({least, greatest});
  const size_t between = keep - places.size();
  for (size_t i = 1; i <= between; ++i) places.insert(i * (group.size() - 1) / (between + 1));
  return places;
}

}  // namespace

std::vector<db::ObservationKey> RowsToRemove(const v1::ExperimentSpec& spec,
                                             const std::vector<db::StoredObservation>& rows,
                                             int64_t keep) {
  CHECK(keep >= kMinKeptObservations);
  std::map<std::pair<std::string, bool>, Group> groups;
  for (const db::StoredObservation& row : rows) {
    const bool judged = spec.has_early_stopping() && !row.superseded &&
                        row.metric == spec.objective().objective_metric_name();
    if (!judged) groups[{row.metric, row.superseded}].push_back(&row);
  }
  std::vector<db::ObservationKey> removed;
  for (auto& [key, group] : groups) {
    if (std::ssize(group) <= keep) continue;
    std::sort(group.begin(), group.end(), [](const auto* a, const auto* b) {
      return std::pair(a->step, a->attempt) < std::pair(b->step, b->attempt);
    });
    const std::set<size_t> kept = PlacesToKeep(group, static_cast<size_t>(keep));
    for (size_t i = 0; i < group.size(); ++i) {
      if (!kept.contains(i)) removed.push_back({group[i]->attempt, group[i]->step, key.first});
    }
  }
  return removed;
}

}  // namespace shirabe::client
