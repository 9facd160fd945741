#include "schedule/start_decision.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/sorting.h"

namespace shirabe::schedule {
namespace {

// The last start that is due and not made, and how many were before it.
struct DueStart {
  std::optional<absl::Time> at;
  int missed = 0;
};

// A moment after which a start is due before `now`, and not many: so that of more than are counted
// the last is found without a look at each.
absl::Time ShortlyBefore(const CronSchedule& schedule, absl::Time now) {
  for (const int minutes : {1, 60, 24 * 60, 32 * 24 * 60, 366 * 24 * 60}) {
    const absl::Time from = now - absl::Minutes(minutes);
    if (schedule.NextAfter(from) <= now) return from;
  }
  return absl::InfinitePast();
}

DueStart FindDue(const StartRules& rules, const ScheduleState& state, absl::Time now) {
  absl::Time since = state.last_scheduled.value_or(state.created);
  if (rules.starting_deadline) since = std::max(since, now - *rules.starting_deadline);
  DueStart due;
  for (absl::Time at = rules.schedule.NextAfter(since); at <= now;
       at = rules.schedule.NextAfter(at)) {
    if (due.at && due.missed < kMaxMissed) ++due.missed;
    due.at = at;
    if (due.missed == kMaxMissed) at = std::max(at, ShortlyBefore(rules.schedule, now));
  }
  return due;
}

// The oldest of those that have ended so, beyond the limit.
void RemoveOld(const ScheduleState& state, bool succeeded, int limit, StartDecision& decision) {
  std::vector<const StartedExperiment*> ended;
  for (const StartedExperiment& one : state.started) {
    if (one.ended && one.succeeded == succeeded) ended.push_back(&one);
  }
  StableSort(ended, [](const auto* a, const auto* b) {
    return a->scheduled != b->scheduled ? a->scheduled > b->scheduled : a->name > b->name;
  });
  for (size_t i = std::max(0, limit); i < ended.size(); ++i) {
    decision.remove.push_back(ended[i]->name);
  }
}

std::string Base36(uint64_t number) {
  std::string digits;
  for (; number > 0; number /= 36) {
    digits.insert(digits.begin(), "0123456789abcdefghijklmnopqrstuvwxyz"[number % 36]);
  }
  return digits;
}

}  // namespace

StartDecision DecideStart(const StartRules& rules, const ScheduleState& state, absl::Time now) {
  StartDecision decision;
  RemoveOld(state, true, rules.successful_history_limit, decision);
  RemoveOld(state, false, rules.failed_history_limit, decision);
  if (rules.suspend) return decision;
  decision.wake = rules.schedule.NextAfter(now);
  const DueStart due = FindDue(rules, state, now);
  if (!due.at) return decision;
  std::vector<std::string> running;
  for (const StartedExperiment& one : state.started) {
    if (!one.ended) running.push_back(one.name);
  }
  if (running.size() >= kMaxActive) {
    decision.waiting = absl::StrCat(running.size(), " experiments of it run already");
    return decision;
  }
  if (rules.concurrency == ConcurrencyPolicy::kForbid && !running.empty()) {
    decision.waiting = absl::StrCat(running.front(), " still runs (concurrencyPolicy Forbid)");
    return decision;
  }
  if (rules.concurrency == ConcurrencyPolicy::kReplace) decision.stop = std::move(running);
  decision.start = due.at;
  decision.missed = due.missed;
  decision.name = ExperimentNameOf(state.key.name, *due.at);
  return decision;
}

std::string ExperimentNameNow(const std::string& schedule, absl::Time now) {
  return absl::StrCat(schedule, "-r", Base36(std::max<int64_t>(1, absl::ToUnixSeconds(now))));
}

std::string ExperimentNameFor(const std::string& schedule, uint64_t request) {
  constexpr uint64_t kSixDigits = 36ULL * 36 * 36 * 36 * 36 * 36;
  return absl::StrCat(schedule, "-m", Base36(1 + request % (kSixDigits - 1)));
}

std::string ExperimentNameOf(const std::string& schedule, absl::Time scheduled) {
  return absl::StrCat(schedule, "-", absl::ToUnixSeconds(scheduled) / 60);
}

}  // namespace shirabe::schedule
