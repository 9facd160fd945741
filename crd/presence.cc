#include "crd/presence.h"

#include <utility>

#include "crd/objects.h"

namespace shirabe::crd {

ExperimentKey PresenceBook::Note(const kube::Json& trial, bool deleted) {
  ExperimentKey key{NamespaceOf(trial), LabelOf(trial, kExperimentLabel)};
  const std::string name = NameOf(trial);
  std::lock_guard lock(mutex_);
  Presence& presence = presence_[key];
  presence.touched.insert(name);
  if (deleted) {
    presence.names.erase(name);
  } else {
    presence.names.insert(name);
  }
  return key;
}

Presence PresenceBook::Take(const ExperimentKey& key) {
  std::lock_guard lock(mutex_);
  const auto found = presence_.find(key);
  if (found == presence_.end()) return {};
  Presence presence{found->second.names, std::exchange(found->second.touched, {})};
  if (presence.names.empty()) presence_.erase(found);
  return presence;
}

void PresenceBook::GiveBack(const ExperimentKey& key, const std::set<std::string>& touched) {
  std::lock_guard lock(mutex_);
  presence_[key].touched.insert(touched.begin(), touched.end());
}

}  // namespace shirabe::crd
