// Learning curves of several objectives, for the early-stopping rules: where a trial stands among
// others at a step. Pure functions; any thread.
//
//   m      objectives                                   a trial's losses at step s are a vector, m
//   front  non-dominated sorting and crowding distance  suggestion/pareto/dominance.h
//
// A loss counts as what it was at the last report up to the step; a trial that has reported one of
// its objectives not at all by then is compared with none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "suggestion/early_stopping.h"
#include "suggestion/pareto/dominance.h"

namespace shirabe::suggestion {

// The values of all objectives in the words of a reason: "(0.61, 12.4)".
std::string ShowObjectives(const std::vector<double>& losses, const StopProblem& problem);

// A trial among its peers at a step.
struct CurveStanding {
  FrontPlace place;    // how many of them are better
  int64_t peers = 0;   // that it was compared with, without itself
  std::string values;  // its own
};

struct CurveQuestion {
  int64_t trial = 0;  // index
  int64_t step = 0;
  // Peers by the average of their losses from the report of this number on; 0: by their best.
  int64_t means_from = 0;
};

// Its best losses up to the step among those of `peers` that can be compared, of more than 1000 the
// newest. nullopt if the trial itself cannot.
std::optional<CurveStanding> StandingAt(const CurveQuestion& question,
                                        const std::vector<int64_t>& peers, const Curves& curves,
                                        const StopProblem& problem);

}  // namespace shirabe::suggestion
