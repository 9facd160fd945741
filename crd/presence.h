// Which Trial objects are there, by experiment, and which were touched since one last looked: what
// the watch tells, kept until a pass takes it. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/names.h"
#include "kube/client.h"

namespace shirabe::crd {

struct Presence {
  std::set<std::string> names;    // that are there
  std::set<std::string> touched;  // that were changed or deleted, by whomever, since the last look
};

class PresenceBook {
 public:
  // The experiment that the Trial object is of.
  ExperimentKey Note(const kube::Json& trial, bool deleted);
  Presence Take(const ExperimentKey& key);
  // A pass failed: what it took is looked at again.
  void GiveBack(const ExperimentKey& key, const std::set<std::string>& touched);

 private:
  std::mutex mutex_;
  std::map<ExperimentKey, Presence> presence_;  // guarded by mutex_
};

}  // namespace shirabe::crd
