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
#pragma once

#include <cstdint>
#include <vector>

#include "suggestion/algorithm.h"

namespace shirabe::suggestion {

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

}  // namespace shirabe::suggestion
