// The front of an experiment of several objectives: the trials that no other is better than, of
// those that have ended with all values, keep all constraints. Kept up to date as results come; a
// function of them and of the specification, so that a controller that takes over finds the same.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/history.h"

namespace shirabe::experiment {

class ResultFront {
 public:
  // The trial of this index in the history has ended. Whether it came onto the front: no trial
  // there is as good as it in all objectives.
  bool Add(const suggestion::History& history, int64_t index);

  // As the status shows it. Those that reach all goals come first, then by the first loss. The
  // hypervolume is left out where it may take more than some milliseconds: beyond 2,000 trials of
  // two objectives, 150 of three, 50 of four and 20 of more.
  v1::ResultFront ToStatus(const v1::Experiment& experiment,
                           const suggestion::History& history) const;

 private:
  std::vector<int64_t> members_;  // indices into the history, ascending
  std::vector<double> worst_;     // loss by objective, of everything that has a result
};

}  // namespace shirabe::experiment
