#include "experiment/namespace_quota.h"

#include <algorithm>
#include <utility>

namespace shirabe::experiment {

int64_t NamespaceQuota::Reserve(const ExperimentKey& key, int64_t open, int64_t more) {
  if (most_ == 0) return more;
  const MutexLock lock(mutex_);
  Namespace& ns = namespaces_[key.ns];
  const auto mine = ns.taken.find(key.name);
  const int64_t before = mine == ns.taken.end() ? 0 : mine->second;
  ns.waiting.remove(key.name);
  const int64_t others = ns.total - before;
  const int64_t granted = std::clamp<int64_t>(most_ - others - open, 0, more);
  if (granted < more) ns.waiting.push_back(key.name);
  const int64_t after = open + granted;
  ns.total = others + after;
  if (after == 0) {
    ns.taken.erase(key.name);
  } else {
    ns.taken[key.name] = after;
  }
  for (int64_t free = most_ - ns.total; free > 0 && before > after && !ns.waiting.empty(); --free) {
    unblocked_.push_back({key.ns, ns.waiting.front()});
    ns.waiting.pop_front();
  }
  if (ns.taken.empty() && ns.waiting.empty()) namespaces_.erase(key.ns);
  return granted;
}

std::vector<ExperimentKey> NamespaceQuota::Unblocked() {
  const MutexLock lock(mutex_);
  return std::exchange(unblocked_, {});
}

}  // namespace shirabe::experiment
