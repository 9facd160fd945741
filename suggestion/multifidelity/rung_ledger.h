// Who stands on which rung: the history of an experiment as successive halving sees it. Made again
// for each proposal, from points, parents and labels alone, so that a promotion is known by the
// trial that it made and cannot happen twice. The rungs and the history must outlive it. One
// thread.
//
// A trial's rung is the value of its resource; its bracket is told by a label. One without that
// label (a start point, a trial from elsewhere) joins the first of the standing brackets that has
// room for it. A trial that failed, was stopped early or gave no finite loss has a place on its
// rung, the last one, and is never promoted; nor is one that lies outside of ranges that were
// changed. With several objectives, or constraints, the best of a rung are those of its front, the
// lonely ones first, then those of the next front: TrialOrder in suggestion/history.h (R. Schmucker
// et al., "Multi-objective Asynchronous Successive Halving", 2021).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "suggestion/algorithm.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {

// The rungs of successive halving: how much of a resource (epochs, images, trees) a trial is
// given. Every trial of a rung trains until the same amount; the best 1/eta of a rung are promoted
// to the next, each as a new trial that goes on from its parent's checkpoint. Used by hyperband,
// asha and bohb. Immutable; any thread.
//
//   R    r_l, the resource of the top rung            integer, in the unit of the resource
//   η    eta: one of η trials is promoted             integer ≥ 2
//   r_k  resource of rung k, k = 0 … S: ⌊R / η^(S-k)⌋  integer
//   S    the greatest for which r_0 ≥ min_resource, "s_max" of the papers
//
// Only integers: ⌊log(243) / log(3)⌋ is 4 in floating point, and a rung is missing.

// r_0 … r_S. max ≥ min ≥ 1 and eta ≥ 2.
std::vector<int64_t> RungTable(int64_t max, int64_t min, int64_t eta);

// eta, r_l, resource_name as in Katib, and min_resource; `more` follows.
std::vector<SettingInfo> RungSettings(const std::vector<SettingInfo>& more);

class Rungs {
 public:
  // From settings of RungSettings; those of asha have other names as well (reduction_factor,
  // max_resource). kInvalidArgument, naming the setting and the fix, if they give no two rungs.
  static StatusOr<Rungs> Create(const Problem& problem);

  int axis() const { return axis_; }  // of the resource, among the parameters
  int64_t eta() const { return eta_; }
  int top() const { return static_cast<int>(resources_.size()) - 1; }  // S
  const std::vector<int64_t>& resources() const { return resources_; }
  const std::string& resource_name() const { return name_; }
  // "epochs=9", for people.
  std::string Describe(int rung) const;

  // n of Hyperband: how many configurations a bracket begins with that promotes s times.
  int64_t BracketSize(int s) const;
  // How many trials a bracket of n configurations makes, with those that are promoted.
  int64_t BracketTrials(int64_t n, int s) const;

 private:
  int axis_ = 0;
  int64_t eta_ = 3;
  std::string name_;
  std::vector<int64_t> resources_;
};

// AlgorithmInfo::reshape of these algorithms: the resource has the values of the rungs.
StatusOr<Space> ReshapeToRungs(const Problem& problem);

// One rung of one bracket.
struct RungCell {
  int64_t entered = 0;          // trials that were given this rung
  int64_t ended = 0;            // of them, those whose result is known
  std::vector<int64_t> ranked;  // of them, those with a finite loss, best first: indices
};

struct RungBracket {
  int first = 0;                     // the lowest rung, where it begins
  int64_t planned = 0;               // configurations that it begins with
  std::vector<RungCell> cells = {};  // by rung; empty below `first`
};

class RungLedger {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

  // `standing` brackets are there from the start, without cells.
  RungLedger(const History& history, const Rungs& rungs, std::vector<RungBracket> standing);

  const std::vector<RungBracket>& brackets() const { return brackets_; }
  // A bracket more, in which a configuration begins before another one is opened.
  void Open(int first, int64_t planned);
  // No bracket will begin another configuration: there is none left.
  void Close();
  bool closed() const { return closed_; }

  // Promotes the best trial among the first `most` of this rung that has not been promoted;
  // nullopt if all have.
  std::optional<Suggestion> Promote(int bracket, int rung, int64_t most);
  // Begins a configuration, whose point has the resource of the bracket's first rung, in the
  // bracket; completes the labels. False, and nothing happens, if the point has been tried.
  bool Begin(int bracket, Suggestion& suggestion);

  // Trials whose result is still to come, with those of this proposal.
  int64_t active() const { return active_; }
  int64_t proposed() const { return proposed_; }  // in this proposal
  // The outcome; where there are no suggestions, why, and whether that may change.
  Proposal Finish(std::vector<Suggestion> suggestions) const;

 private:
  int RungOf(int64_t index) const;
  std::optional<int> BracketOf(int64_t index) const;
  void Plan(int64_t index, int bracket);
  void AssignToRung(int64_t index, int bracket);
  void AssignUnlabelled(int bracket);
  void Rank(RungCell& cell) const;
  std::optional<int64_t> Next(int bracket, int rung, int64_t most);

  const History& history_;
  const Rungs& rungs_;
  const TrialOrder order_;
  UnvisitedPoints unvisited_;
  std::vector<RungBracket> brackets_;
  std::vector<bool> size_known_;     // by bracket: a label has told its size
  std::vector<int64_t> unassigned_;  // indices of trials in no bracket
  std::vector<bool> promoted_;       // by index
  int64_t active_ = 0;
  int64_t proposed_ = 0;
  bool closed_ = false;
};

}  // namespace shirabe::suggestion
