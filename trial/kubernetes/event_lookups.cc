#include "trial/kubernetes/event_lookups.h"

#include <algorithm>
#include <utility>

#include "trial/kubernetes/cluster_actions.h"
#include "trial/pod/operator_kinds.h"

namespace shirabe::trial {
namespace {

// Of each second, the API server reads events for us during at most a twentieth.
constexpr int kEventDutyCycle = 20;
// All that WhyWaiting knows are warnings; that a cluster is full stands in its pods' conditions.
constexpr char kEventSelector[] = "type=Warning,reason!=FailedScheduling";

// The entry for the object of an event, or for what made it: NAME-node-0 is of NAME-.
template <class Names>
typename Names::const_iterator FindName(const Names& names, const Json& event) {
  std::string name = Text(event, {"involvedObject", "name"});
  auto found = names.find(name);
  const bool job = Text(event, {"involvedObject", "kind"}) == Jobs().kind;
  while (job && found == names.end() && !name.empty()) {
    if (name.back() == '-') name.pop_back();
    name.erase(name.rfind('-') + 1);  // all of it where there is none
    found = names.find(name);
  }
  return found;
}

}  // namespace

void EventLookups::Request(const AttemptKey& key) {
  {
    const MutexLock lock(mutex_);
    lookups_[key.trial.experiment.ns].fresh.insert(key);
  }
  context_.wake();
}

absl::Duration EventLookups::DueOf(const Lookup& lookup) const {
  if (!lookup.asked) return absl::ZeroDuration();
  const PodTimeouts& timeouts = context_.timeouts;
  const absl::Duration pause = lookup.fresh.empty() ? timeouts.events_again : timeouts.ask_events;
  return *lookup.asked + std::max(pause, kEventDutyCycle * lookup.took);
}

// Which attempt an event about an object of that name is for; those that wait no longer are left
// out.
EventLookups::Names EventLookups::NamesOf(Lookup& lookup) const {
  Names names;
  lookup.known.merge(lookup.fresh);
  lookup.fresh.clear();
  std::erase_if(lookup.known, [&](const AttemptKey& key) {
    const auto object = callbacks_.object(key);
    if (!object) return true;
    names.emplace(object->name, key);
    // Of a TrainJob's Jobs, too, which are called after it.
    if (!OwnerLabel(object->resource.group, object->resource.kind).empty()) {
      names.emplace(object->name + "-", key);
    }
    for (const std::string& pod : context_.view->PodNamesOf(key, object->name)) {
      names.emplace(pod, key);
    }
    return false;
  });
  return names;
}

void EventLookups::OnTimer(absl::Duration now) {
  const MutexLock lock(mutex_);
  for (auto it = lookups_.begin(); it != lookups_.end();) {
    Lookup& lookup = it->second;
    if (lookup.asking || now < DueOf(lookup)) {
      ++it;
      continue;
    }
    Names names = NamesOf(lookup);
    if (names.empty()) {
      it = lookups_.erase(it);
      continue;
    }
    lookup.asking = true;
    lookup.asked = now;
    context_.run([this, ns = it->first, names = std::move(names)] { Fetch(ns, names); });
    ++it;
  }
}

void EventLookups::Fetch(const std::string& namespace_name, const Names& names) {
  const absl::Duration began = context_.clock->Monotonic();
  std::map<AttemptKey, std::vector<Json>> found;
  // A list that breaks off is as good as one that is a moment old: it comes again.
  context_.client
      ->ListEach({Events(), namespace_name, "", kEventSelector},
                 [&](Json&& event) {
                   const auto name = FindName(names, event);
                   if (name != names.end()) found[name->second].push_back(std::move(event));
                 })
      .status()
      .IgnoreError();
  {
    const MutexLock lock(mutex_);
    Lookup& lookup = lookups_[namespace_name];
    lookup.asking = false;
    lookup.took = context_.clock->Monotonic() - began;
  }
  context_.wake();
  for (const auto& [key, events] : found) callbacks_.on_events(key, events);
}

std::optional<absl::Duration> EventLookups::NextDue() const {
  const MutexLock lock(mutex_);
  std::optional<absl::Duration> next;
  for (const auto& [ns, lookup] : lookups_) {
    if (lookup.asking) continue;
    next = next ? std::min(*next, DueOf(lookup)) : DueOf(lookup);
  }
  return next;
}

}  // namespace shirabe::trial
