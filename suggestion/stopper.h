// An early-stopping rule: whether a running trial should end now. One file each under stoppers/,
// registered by its last line. Asked by the reconciler after new rows of a trial, away from its own
// thread.
//
// Pure: no clock, no I/O, no state that changes an answer. One call at a time per object, from any
// thread. See suggestion/algorithm.h for the rest of the contract, which is the same.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"

namespace shirabe::suggestion {

// The losses of one trial by step, ascending; only rows that count.
struct Curve {
  std::vector<int64_t> steps;
  std::vector<double> losses;
};

// Curves by trial index (number - 1); empty where nothing was observed.
using Curves = std::vector<Curve>;

class Stopper {
 public:
  virtual ~Stopper() = default;
  // A reason ("at step 40 best 0.61 > median 0.48 of 12 trials") if trial `index` should stop.
  virtual StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History& history,
                                                          const Curves& curves) = 0;
};

struct StopperInfo {
  std::string name;  // Katib's, where Katib has it
  std::vector<std::string> aliases = {};
  std::string help;
  std::vector<SettingInfo> settings = {};
  StatusOr<std::unique_ptr<Stopper>> (*create)(const Settings& settings);
};

}  // namespace shirabe::suggestion
