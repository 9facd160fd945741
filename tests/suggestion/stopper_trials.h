// Trials with learning curves, for tests of the early-stopping rules.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "suggestion/early_stopping.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {

using Losses = std::vector<double>;

// Trials with their losses at steps 1, 2, …; the last one added is the one that runs.
class Trials {
 public:
  void Ended(const Losses& losses, bool early = false) {
    Add(losses, {.state = TrialState::kCompleted, .early_stopped = early});
  }
  void Infeasible(const Losses& losses) { Add(losses, {.state = TrialState::kInfeasible}); }
  void Active(const Losses& losses) { Add(losses, {}); }
  void Add(const Losses& losses, TrialSummary view, int64_t first = 1) {
    history.Add({0.5}, view);
    curves.emplace_back();
    for (const double loss : losses) curves.back().Append(first++, loss);
  }

  // The reason to stop the last trial; "" if there is none.
  std::string Ask(const std::string& rule, const Settings& settings = {},
                  bool maximize = false) const {
    const auto stopper = CreateStopper(rule, {.settings = settings, .maximize = maximize});
    EXPECT_TRUE(stopper.ok()) << stopper.status();
    const auto reason = (*stopper)->ShouldStop(history.size() - 1, history, curves);
    EXPECT_TRUE(reason.ok()) << reason.status();
    return reason->value_or("");
  }

  History history{Make({Double("x", {0, 1})})};
  Curves curves;
};

}  // namespace shirabe::suggestion
