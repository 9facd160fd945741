// The trials of one experiment that are shown in the cluster: those that have not ended, the newest
// that have, and the best. Read piece by piece, as they change, so that a look costs what has
// changed and memory does not grow with the number of trials. Used by one thread at a time.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "client/client.h"
#include "crd/status.h"

namespace shirabe::crd {

class TrialWindow {
 public:
  explicit TrialWindow(size_t finished) : finished_most_(finished) {}

  // Reads what has changed since the last call.
  Status Update(client::Client& store, const v1::Experiment& experiment);

  // By number.
  const std::map<int64_t, v1::Trial>& trials() const { return trials_; }
  std::vector<v1::Trial> Live() const;
  NamesByPhase Names() const;

 private:
  Status Load(client::Client& store, const v1::Experiment& experiment);
  Status KeepBest(client::Client& store, const v1::Experiment& experiment);
  void Take(const v1::Trial& trial);
  void Prune();

  size_t finished_most_;
  int64_t revision_ = -1;  // up to which all has been read; -1 = nothing has
  int64_t best_ = 0;
  std::map<int64_t, v1::Trial> trials_;
  std::map<v1::TrialPhase, std::set<int64_t>> ended_;  // the newest numbers, for the names
  ExperimentKey key_;
};

bool HasEnded(const v1::Trial& trial);

}  // namespace shirabe::crd
