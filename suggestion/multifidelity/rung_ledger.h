// Who stands on which rung: the history of an experiment as successive halving sees it. Made anew
// for each proposal, from points, parents and labels alone, so that a promotion is known by the
// trial that it made and cannot happen twice. The rungs and the history must outlive it. One
// thread.
//
// A trial's rung is the value of its resource; its bracket is told by a label. One without that
// label (a start point, a trial from elsewhere) joins the first of the standing brackets that has
// room for it. A trial that failed, was stopped early or gave no finite loss has a place on its
// rung, the last one, and is never promoted.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "suggestion/multifidelity/rungs.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {

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
