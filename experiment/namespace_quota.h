// How many attempts each namespace has open, over all experiments that this process owns, and which
// experiments wait until there are fewer. Made by the controller, asked by each pass. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/names.h"

namespace shirabe::experiment {

class NamespaceQuota {
 public:
  // So many in a namespace; 0 = any number.
  explicit NamespaceQuota(int64_t most) : most_(most) {}

  // The experiment has `open` attempts and wants `more`: how many of these it may open, which are
  // its own from now on, until it says another number. Where that is less than `more`, Unblocked
  // names it when it may ask again.
  int64_t Reserve(const ExperimentKey& key, int64_t open, int64_t more);
  // It has none any more.
  void Leave(const ExperimentKey& key) { Reserve(key, 0, 0); }

  // Those that may ask again because others have fewer attempts now, the longest waiting first.
  std::vector<ExperimentKey> Unblocked();

 private:
  struct Namespace {
    std::map<std::string, int64_t> taken;  // by experiment; none is 0
    int64_t total = 0;
    std::list<std::string> waiting;
  };

  const int64_t most_;
  Mutex mutex_;
  std::map<std::string, Namespace> namespaces_ ABSL_GUARDED_BY(mutex_);
  std::vector<ExperimentKey> unblocked_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::experiment
