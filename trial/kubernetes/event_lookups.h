// Finds the events of attempts that wait, where nothing but an event says why. To find the events
// of one object an API server reads all those of its namespace, so the attempts of a namespace are
// looked up together, and not sooner again than what the last time took allows. Part of the
// executor `kubernetes`; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "trial/kubernetes/cluster_context.h"

namespace shirabe::trial {

class EventLookups {
 public:
  struct Callbacks {
    // The attempt's object; nullopt once it waits for no event any more.
    std::function<std::optional<kube::Ref>(const AttemptKey&)> object;
    // All its events, from a thread in the background and under no lock.
    std::function<void(const AttemptKey&, const std::vector<Json>&)> on_events;
  };
  // The context outlives it.
  EventLookups(const ClusterContext* context, Callbacks callbacks)
      : context_(*context), callbacks_(std::move(callbacks)) {}

  // Its events are wanted, until it waits no more.
  void Request(const AttemptKey& key);

  // Begins the lookups that are due.
  void OnTimer(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  // A name that ends in '-' is what the names of objects begin with.
  using Names = std::map<std::string, AttemptKey>;
  // Of one namespace.
  struct Lookup {
    std::set<AttemptKey> fresh;           // never looked up yet
    std::set<AttemptKey> known;           // looked up before
    bool asking = false;                  // just now
    std::optional<absl::Duration> asked;  // monotonic; the last time, and how long that took
    absl::Duration took;
  };

  absl::Duration DueOf(const Lookup& lookup) const;
  Names NamesOf(Lookup& lookup) const;
  void Fetch(const std::string& namespace_name, const Names& names);

  const ClusterContext& context_;
  const Callbacks callbacks_;
  mutable Mutex mutex_;
  std::map<std::string, Lookup> lookups_ ABSL_GUARDED_BY(mutex_);  // by namespace
};

}  // namespace shirabe::trial
