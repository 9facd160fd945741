// The front of an experiment of several objectives: the trials that no other is better than, of
// those that have ended with all values and keep all constraints. Of equals it has the one with the
// lowest number. Kept up to date as results come; a function of them and of the specification, in
// whatever order they came, so that a controller that takes over finds the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/history.h"

namespace shirabe::experiment {

// The values of trials that lie outside of the ranges as they are now, by index in the history.
using OutsideTrials = std::map<int64_t, std::vector<v1::Assignment>>;

class ResultFront {
 public:
  // Of three and more objectives, where each new trial is compared with all of them; what comes
  // later is only counted.
  static constexpr size_t kMostMembers = 4000;
  // Of the parameters in a status: it is written whenever a trial ends.
  static constexpr size_t kMostParameterBytes = 64 << 10;

  // The trial of this index in the history has ended. Whether it came onto the front: no trial
  // there is as good as it in all objectives.
  bool Add(const suggestion::History& history, int64_t index);

  // As the status shows it. Those that reach all goals come first, then by the losses. The
  // hypervolume is left out where it may take more than some milliseconds: beyond 2,000 trials of
  // two objectives, 150 of three, 50 of four and 20 of more; and where it is no finite number.
  v1::ResultFront ToStatus(const v1::Experiment& experiment, const suggestion::History& history,
                           const OutsideTrials& outside = {}) const;

 private:
  bool IsBeaten(const std::vector<double>& losses) const;
  void EraseBeatenBy(const std::vector<double>& losses);

  std::map<std::vector<double>, int64_t> members_;  // losses → index in the history
  int64_t uncounted_ = 0;                           // that came when there were too many
  std::vector<double> worst_;  // loss by objective, of everything that has a result
};

}  // namespace shirabe::experiment
