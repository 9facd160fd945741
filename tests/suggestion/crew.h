// Runs an algorithm in the tests as the service would, without one: a number of workers, each busy
// for as long as its trial's resource says, on a clock of whole numbers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "suggestion/algorithm.h"

namespace shirabe::suggestion {

class Crew {
 public:
  // How long a trial takes, and what comes of it.
  struct Work {
    int64_t time = 1;
    TrialSummary result;
  };
  using Trainer = std::function<Work(const Crew& crew, const Suggestion& suggestion)>;

  Crew(const std::string& name, const Problem& problem)
      : algorithm_(*CreateAlgorithm(name, problem)), history_(*SearchSpace(name, problem)) {}

  // Until the algorithm is exhausted or `trials` have been made. A wait without a running trial
  // would be one for ever.
  void Run(int workers, int64_t trials, const Trainer& train) {
    while (history_.size() < trials || !busy_.empty()) {
      const int64_t room = std::min<int64_t>(workers - Busy(), trials - history_.size());
      if (room > 0 && Ask(static_cast<int>(room), train)) continue;
      if (busy_.empty()) return;
      EndNext();
    }
  }

  // Adds a trial that the algorithm did not propose.
  void AddForeign(const Point& point, const TrialSummary& view) { history_.Add(point, view); }

  const History& history() const { return history_; }
  const std::vector<Suggestion>& made() const { return made_; }
  int64_t exhausted() const { return exhausted_; }
  int64_t waits() const { return waits_; }
  int64_t now() const { return now_; }
  Algorithm& algorithm() { return *algorithm_; }

 private:
  int Busy() const { return static_cast<int>(busy_.size()); }

  // Whether another try makes sense now.
  bool Ask(int room, const Trainer& train) {
    const auto proposal = algorithm_->Propose(history_, room, Rng(5));
    EXPECT_TRUE(proposal.ok()) << proposal.status();
    if (!proposal.ok()) return false;
    waits_ += proposal->outcome == Proposal::Outcome::kWait ? 1 : 0;
    exhausted_ += proposal->outcome == Proposal::Outcome::kExhausted ? 1 : 0;
    if (proposal->outcome == Proposal::Outcome::kWait) {
      EXPECT_FALSE(busy_.empty()) << "nothing runs, and it waits: " << proposal->reason;
    }
    for (const Suggestion& suggestion : proposal->suggestions) {
      Work work = train(*this, suggestion);
      TrialSummary active;
      if (suggestion.parent) active.parent = work.result.parent = suggestion.parent->trial();
      busy_.emplace(now_ + work.time, std::make_pair(history_.size(), work.result));
      history_.Add(suggestion.point, active);
      history_.SetLabels(history_.size() - 1, suggestion.labels);
      made_.push_back(suggestion);
    }
    history_.set_memo(proposal->memo);
    return static_cast<int>(proposal->suggestions.size()) == room;
  }

  void EndNext() {
    const auto first = busy_.begin();
    now_ = first->first;
    history_.Update(first->second.first, first->second.second);
    busy_.erase(first);
  }

  std::unique_ptr<Algorithm> algorithm_;
  History history_;
  std::vector<Suggestion> made_;
  std::multimap<int64_t, std::pair<int64_t, TrialSummary>> busy_;  // by the time of its end
  int64_t now_ = 0, exhausted_ = 0, waits_ = 0;
};

// The values of a trial's resource, and how many trials have each.
inline std::map<int64_t, int> CountByResource(const History& history, int axis) {
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < history.size(); ++i) {
    ++counts[history.space().Decode(history.point(i))[axis].integer()];
  }
  return counts;
}

}  // namespace shirabe::suggestion
