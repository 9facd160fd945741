// What an algorithm may know: every trial so far, in the order of creation, without names, clocks
// or direction (objectives are losses, to be minimised). A value type, cheap to append to; the
// reconciler keeps one per experiment and hands it out read-only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "suggestion/pareto/dominance.h"
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

enum class TrialState : uint8_t {
  kActive,      // running, waiting or preempted: its result is still to come
  kCompleted,   // has losses; also stopped early, then with the step it reached
  kInfeasible,  // it ran and gave nothing usable: failed, out of memory, NaN, no metric
};

// One trial as an algorithm sees it. 0-based index = trial number - 1.
struct TrialSummary {
  TrialState state = TrialState::kActive;
  bool early_stopped = false;
  bool partial = false;   // its losses are of a part of what others are measured on
  double loss = 0;        // of the first objective; valid when completed
  int64_t last_step = 0;  // greatest step observed
  int64_t parent = 0;     // trial number, 0 = none
  int64_t ended = 0;      // its place in the order in which trials ended; 0 = not known
  // Valid when completed, as many for each trial of an experiment; none where it has one objective
  // and no constraints.
  std::vector<double> further_losses = {};  // of the other objectives, in the order specified
  std::vector<double> margins = {};  // by constraint: ≥ 0 keeps it, < 0 breaks it by so much
  // The ranges were changed since it was made. `earlier`: its labels tell of another unit cube.
  // `outside`: it lies beyond them now; its point is the nearest one, and stands for nothing.
  bool earlier = false, outside = false;
};

// What an earlier experiment found (spec.shirabe.warmStart): a canonical point of this space and
// its finite loss. Losses of one source may be compared with each other; those of different
// sources, or of this experiment, only by an algorithm that allows for another scale or an offset.
struct PriorTrial {
  Point point;
  double loss = 0;
  int source = 0;  // which experiment, from 0, in the order of the specification
};

class History {
 public:
  explicit History(const Space& space) : space_(space), dimensions_(space.size()) {}

  // Adds the trial with the next number, with its point.
  void Add(const Point& point, const TrialSummary& view);
  // Replaces what is known of trial `index`; its point stays, and so do `earlier` and `outside`.
  void Update(int64_t index, const TrialSummary& view);
  // Labels that the algorithm itself gave to the trial.
  void SetLabels(int64_t index, std::vector<std::pair<std::string, std::string>> labels);

  const Space& space() const { return space_; }
  int64_t size() const { return static_cast<int64_t>(views_.size()); }
  const TrialSummary& trial(int64_t index) const { return views_[index]; }
  // How many objectives beside the first, and constraints, its results have.
  size_t further_objectives() const { return further_objectives_; }
  size_t constraints() const { return constraints_; }
  Point point(int64_t index) const;
  double coordinate(int64_t index, int axis) const { return x_[index * dimensions_ + axis]; }
  std::optional<std::string> label(int64_t index, const std::string& name) const;
  // A label that is a whole number from 0; nullopt if there is none or it is none.
  std::optional<int64_t> number_label(int64_t index, const std::string& name) const;
  // All of them; empty where it has none.
  const std::vector<std::pair<std::string, std::string>>& labels(int64_t index) const;

  // The ordinal in the experiment of the next suggestion, from 0. It is size(), except where
  // another program keeps the trials and this history is known to lack some of them (Katib's wire).
  int64_t next_ordinal() const { return std::max(size(), next_ordinal_); }
  void SetNextOrdinal(int64_t ordinal) { next_ordinal_ = ordinal; }

  // From earlier experiments: by source, then in the order of creation; empty where there are none.
  // It never changes while an experiment lasts. They are no trials of this one: not visited, and a
  // point that was good there may be tried here.
  const std::vector<PriorTrial>& prior() const;
  void SetPrior(std::vector<PriorTrial> prior);

  // Whether some trial, in whatever state, has these parameter values.
  bool Visited(const Point& point) const { return visited_.contains(space_.Key(point)); }
  // Distinct parameter values tried so far.
  int64_t distinct() const { return static_cast<int64_t>(visited_.size()); }

  // What the algorithm committed with its last suggestions; empty at first, or where the wire
  // carries none.
  const std::string& memo() const { return memo_; }
  void set_memo(std::string memo) { memo_ = std::move(memo); }

 private:
  void Count(const TrialSummary& view);

  std::string memo_;
  Space space_;
  int dimensions_;
  std::vector<double> x_;  // size() × dimensions_
  std::vector<TrialSummary> views_;
  absl::flat_hash_map<uint64_t, int64_t> visited_;  // Space::Key → index of the first such trial
  absl::flat_hash_map<int64_t, std::vector<std::pair<std::string, std::string>>> labels_;
  int64_t next_ordinal_ = 0;
  size_t further_objectives_ = 0, constraints_ = 0;
  std::shared_ptr<const std::vector<PriorTrial>> prior_;  // shared by copies; null = none
};

// Every trial that has ended, but for those outside. What completed and keeps all constraints
// violates nothing; what was stopped early the less, the further it came, between 0 and 1; what
// breaks constraints between 1 and 2, by Σ of what it breaks them by, each in parts of the largest
// such amount; what failed, or has a loss or margin that is not a finite number, 3.
std::vector<Individual> EndedIndividuals(const History& history);

// The trials that have ended, best first, but for those outside: what the model-based and the
// evolutionary algorithms learn from. Pure functions; any thread.
struct Ranking {
  // Indices into the history. First what completed, by loss; then what was stopped early, that
  // which came furthest first, then by loss: a rule has stopped it because it was worse; then what
  // breaks constraints. Equals in the order of creation. With several objectives by front in place
  // of the loss, and within a front the lonely ones first: by crowding distance (Deb et al. 2002),
  // of ranks in place of losses, whose scale does not matter then.
  std::vector<int64_t> ranked;
  // Infeasible, or with a loss that is not a finite number: worse than everything above.
  std::vector<int64_t> failed;
  std::vector<int64_t> pending;

  int64_t ended() const { return static_cast<int64_t>(ranked.size() + failed.size()); }
};

Ranking RankTrials(const History& history);

// The order among some trials: of a rung, or of a generation. The history must outlive it.
class TrialOrder {
 public:
  explicit TrialOrder(const History& history);
  bool HasResult(int64_t index) const;  // it has ended by itself; all losses and margins are finite
  // Of trials with results: best first, by loss; else as Survivors. Equals in the order given.
  std::vector<int64_t> Sort(std::vector<int64_t> indices) const;

 private:
  const History& history_;
  std::vector<Individual> individuals_;  // where there is more than one loss; by trial
};

}  // namespace shirabe::suggestion
