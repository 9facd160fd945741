// How the executor `kubernetes` finds out why attempts wait where nothing but an event says so. To
// find the events of one object an API server reads all those of its namespace, so the attempts of
// a namespace are looked up together, and not sooner again than what the last time took allows.
#include <algorithm>
#include <utility>

#include "trial/kubernetes/kubernetes_executor.h"

namespace shirabe::trial {
namespace {

// Of each second, the API server reads events for us during at most a twentieth.
constexpr int kEventDutyCycle = 20;
// All that WhyWaiting knows are warnings; that a cluster is full stands in its pods' conditions.
constexpr char kEventSelector[] = "type=Warning,reason!=FailedScheduling";

}  // namespace

void KubernetesExecutor::ScheduleEventLookup(PodAttempt& attempt) {
  if (attempt.needs_events) return;
  const absl::Duration now = options_.clock->Monotonic();
  if (!attempt.events_at) attempt.events_at = now + timeouts_.ask_events;
  if (now < *attempt.events_at) return ScheduleCheck(attempt, *attempt.events_at);
  attempt.needs_events = true;
  event_lookups_[attempt.ref.namespace_name].fresh.insert(attempt.key);
  Wake();
}

absl::Duration KubernetesExecutor::DueOf(const EventLookup& waiting) const {
  if (!waiting.asked) return absl::ZeroDuration();
  const absl::Duration pause =
      waiting.fresh.empty() ? timeouts_.events_again : timeouts_.ask_events;
  return *waiting.asked + std::max(pause, kEventDutyCycle * waiting.took);
}

// Whom an event about an object of that name is for; those that wait no longer are left out.
std::map<std::string, AttemptKey> KubernetesExecutor::NamesOf(EventLookup& waiting) const {
  std::map<std::string, AttemptKey> names;
  waiting.known.merge(waiting.fresh);
  waiting.fresh.clear();
  for (auto key = waiting.known.begin(); key != waiting.known.end();) {
    const auto found = attempts_.find(*key);
    if (found == attempts_.end() || !found->second.needs_events) {
      key = waiting.known.erase(key);
      continue;
    }
    names.emplace(found->second.ref.name, *key);
    for (const std::string& pod : view_.PodNamesOf(*key)) names.emplace(pod, *key);
    ++key;
  }
  return names;
}

void KubernetesExecutor::FetchDueEvents(absl::Duration now) {
  for (auto it = event_lookups_.begin(); it != event_lookups_.end();) {
    EventLookup& waiting = it->second;
    if (waiting.asking || now < DueOf(waiting)) {
      ++it;
      continue;
    }
    auto names = NamesOf(waiting);
    if (names.empty()) {
      it = event_lookups_.erase(it);
      continue;
    }
    waiting.asking = true;
    waiting.asked = now;
    Do([this, ns = it->first, names = std::move(names)] { FetchEvents(ns, names); });
    ++it;
  }
}

void KubernetesExecutor::FetchEvents(const std::string& namespace_name,
                                     const std::map<std::string, AttemptKey>& names) {
  const absl::Duration began = options_.clock->Monotonic();
  std::map<AttemptKey, std::vector<Json>> found;
  // A list that breaks off is as good as one that is a moment old: it comes again.
  client_
      .ListEach({Events(), namespace_name, "", kEventSelector},
                [&](Json&& event) {
                  const auto name = names.find(Text(event, {"involvedObject", "name"}));
                  if (name != names.end()) found[name->second].push_back(std::move(event));
                })
      .status()
      .IgnoreError();
  {
    std::lock_guard lock(mutex_);
    EventLookup& waiting = event_lookups_[namespace_name];
    waiting.asking = false;
    waiting.took = options_.clock->Monotonic() - began;
    for (const auto& [key, events] : found) {
      const auto attempt = attempts_.find(key);
      if (attempt != attempts_.end()) attempt->second.events = events;
    }
    Wake();
  }
  for (const auto& [key, events] : found) Examine(key, nullptr);
}

}  // namespace shirabe::trial
