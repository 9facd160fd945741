#include "experiment/state/checkpoint_policy.h"

#include <algorithm>
#include <tuple>

#include "base/sorting.h"
#include "experiment/spec/objective_value.h"

namespace shirabe::experiment {
namespace {

using Id = std::tuple<int64_t, int32_t>;  // step, attempt

Id IdOf(const v1::Checkpoint& checkpoint) { return {checkpoint.step(), checkpoint.attempt()}; }

}  // namespace

std::vector<v1::Checkpoint> Candidates(const std::vector<v1::Checkpoint>& all, int64_t at_most) {
  std::vector<v1::Checkpoint> candidates;
  for (const v1::Checkpoint& checkpoint : all) {
    const bool within = at_most == 0 || checkpoint.step() <= at_most;
    if (checkpoint.gone().empty() && within) candidates.push_back(checkpoint);
  }
  StableSort(candidates, [](const auto& a, const auto& b) { return IdOf(a) > IdOf(b); });
  return candidates;
}

namespace {

// Of those that are there, the newest first. What an ended attempt's sidecar last said to be under
// way may never be made, and no word of it comes any more: only the newest attempt's is awaited.
std::set<Id> CopiesToKeep(const std::vector<v1::Checkpoint>& there) {
  std::set<Id> kept;
  int32_t newest = 0;
  for (const v1::Checkpoint& checkpoint : there) newest = std::max(newest, checkpoint.attempt());
  const v1::Checkpoint* next = nullptr;  // the oldest under way that is newer than every copy
  for (const v1::Checkpoint& checkpoint : there) {
    const bool current = checkpoint.attempt() == newest;
    if (checkpoint.copy() == v1::COPY_UNDER_WAY && current) next = &checkpoint;
    if (checkpoint.copy() != v1::COPY_MADE) continue;
    kept.insert(IdOf(checkpoint));
    break;
  }
  if (next != nullptr) kept.insert(IdOf(*next));
  return kept;
}

}  // namespace

std::vector<v1::Checkpoint> SelectPrunable(const std::vector<v1::Checkpoint>& all,
                                           const v1::ExperimentSpec& spec,
                                           const std::set<int64_t>& pinned) {
  const v1::CheckpointKeep& keep = spec.shirabe().checkpoint().keep();
  const size_t latest = std::max(1, keep.has_latest() ? keep.latest() : 1);
  const size_t best = std::max(0, keep.has_best() ? keep.best() : 1);
  std::vector<v1::Checkpoint> there = Candidates(all, 0);
  std::set<Id> kept = CopiesToKeep(there);
  for (size_t i = 0; i < std::min(latest, there.size()); ++i) kept.insert(IdOf(there[i]));
  std::vector<v1::Checkpoint> ranked = there;
  std::erase_if(ranked, [](const v1::Checkpoint& c) { return !c.has_objective(); });
  // Of equal ones the newest: it has trained longer.
  StableSort(ranked, [&](const auto& a, const auto& b) {
    return LossOf(spec.objective(), a.objective()) < LossOf(spec.objective(), b.objective());
  });
  for (size_t i = 0; i < std::min(best, ranked.size()); ++i) kept.insert(IdOf(ranked[i]));
  std::erase_if(there, [&](const v1::Checkpoint& c) {
    return kept.contains(IdOf(c)) || pinned.contains(c.step());
  });
  return there;
}

double AdvisedSaveSeconds(double seconds, int64_t preemptions) {
  constexpr double kRedoneShare = 0.05;  // of the time
  if (preemptions <= 0 || !(seconds > 0)) return 0;
  return 2 * kRedoneShare * seconds / static_cast<double>(preemptions);
}

}  // namespace shirabe::experiment
