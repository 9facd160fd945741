// An early-stopping rule: whether a running trial should end now. One file each under stoppers/,
// registered by its last line. Pure: no clock, no I/O. See suggestion/algorithm.h for the rest of
// the contract, which is the same.
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
  std::string name;
  std::vector<std::string> aliases = {};
  std::string help;
  std::vector<SettingInfo> settings = {};
  StatusOr<std::unique_ptr<Stopper>> (*create)(const Settings& settings);
};

}  // namespace shirabe::suggestion
