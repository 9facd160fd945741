// Which start of a schedule is due, by CronJob's rules: missed ones, deadlines, what runs, and what
// is kept; and days of it by a virtual clock, with crashes.
#include "schedule/start_decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/rng.h"

namespace shirabe::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text + ":00Z", &time, &error)) << error;
  return time;
}

StartRules Rules(const std::string& cron, const std::string& zone = "") {
  return {.schedule = *CronSchedule::Parse(cron, zone)};
}

ScheduleState NewState() {
  return {.key = {"default", "nightly"}, .created = At("2026-11-01T00:00"), .started = {}};
}

TEST(DecideStart, NothingBeforeItsTime) {
  const StartDecision decision =
      DecideStart(Rules("0 2 * * *"), NewState(), At("2026-11-01T01:59"));
  EXPECT_FALSE(decision.start);
  EXPECT_EQ(decision.wake, At("2026-11-01T02:00"));
}

TEST(DecideStart, IsNamedAfterItsScheduledTimeHoweverLate) {
  const auto rules = Rules("0 2 * * *");
  const StartDecision decision = DecideStart(rules, NewState(), At("2026-11-01T02:17"));
  ASSERT_TRUE(decision.start);
  EXPECT_EQ(*decision.start, At("2026-11-01T02:00"));
  EXPECT_EQ(decision.name, ExperimentNameOf("nightly", At("2026-11-01T02:00")));
  EXPECT_TRUE(ValidateExperimentName(decision.name).ok());
  EXPECT_TRUE(ValidateExperimentName(
                  ExperimentNameOf(std::string(kMaxScheduleName, 'x'), At("2100-01-01T00:00")))
                  .ok());
}

TEST(DecideStart, OfSeveralMissedOnlyTheLastIsMadeUp) {
  ScheduleState state = NewState();
  state.last_scheduled = At("2026-11-01T02:00");
  const StartDecision decision = DecideStart(Rules("0 2 * * *"), state, At("2026-11-05T12:00"));
  EXPECT_EQ(decision.start, At("2026-11-05T02:00"));
  EXPECT_EQ(decision.missed, 3);
  // Also where it was away for years.
  const StartDecision late = DecideStart(Rules("* * * * *"), state, At("2036-11-05T12:00"));
  EXPECT_EQ(late.start, At("2036-11-05T12:00"));
  EXPECT_EQ(late.missed, kMaxMissed);
}

TEST(DecideStart, AfterItsDeadlineAStartIsMissed) {
  StartRules rules = Rules("0 2 * * *");
  rules.starting_deadline = absl::Minutes(10);
  EXPECT_TRUE(DecideStart(rules, NewState(), At("2026-11-01T02:09")).start);
  const StartDecision missed = DecideStart(rules, NewState(), At("2026-11-01T02:11"));
  EXPECT_FALSE(missed.start);
  EXPECT_EQ(missed.wake, At("2026-11-02T02:00"));
}

TEST(DecideStart, WhileOneRunsThePolicyDecides) {
  StartRules rules = Rules("0 * * * *");
  ScheduleState state = NewState();
  state.last_scheduled = At("2026-11-01T02:00");
  state.started = {{.name = "nightly-1", .scheduled = At("2026-11-01T02:00")}};
  const absl::Time now = At("2026-11-01T03:00");
  EXPECT_THAT(DecideStart(rules, state, now).stop, IsEmpty());
  EXPECT_TRUE(DecideStart(rules, state, now).start);
  rules.concurrency = ConcurrencyPolicy::kForbid;
  EXPECT_FALSE(DecideStart(rules, state, now).start);
  EXPECT_EQ(DecideStart(rules, state, now).waiting,
            "nightly-1 still runs (concurrencyPolicy Forbid)");
  state.started[0].ended = true;
  EXPECT_EQ(DecideStart(rules, state, At("2026-11-01T03:20")).start, now) << "then it is made up";
  state.started[0].ended = false;
  rules.concurrency = ConcurrencyPolicy::kReplace;
  EXPECT_THAT(DecideStart(rules, state, now).stop, ElementsAre("nightly-1"));
  EXPECT_TRUE(DecideStart(rules, state, now).start);
}

TEST(DecideStart, SuspendedItStartsNothingAndStillTidiesUp) {
  StartRules rules = Rules("0 * * * *");
  rules.suspend = true;
  ScheduleState state = NewState();
  for (int i = 0; i < 5; ++i) {
    state.started.push_back({.name = "good-" + std::to_string(i),
                             .scheduled = state.created + absl::Hours(i),
                             .ended = true,
                             .succeeded = true});
    state.started.push_back({.name = "bad-" + std::to_string(i),
                             .scheduled = state.created + absl::Hours(i),
                             .ended = true});
  }
  const StartDecision decision = DecideStart(rules, state, At("2026-11-09T00:00"));
  EXPECT_FALSE(decision.start);
  EXPECT_THAT(decision.remove, ElementsAre("good-1", "good-0", "bad-3", "bad-2", "bad-1", "bad-0"));
}

// Days of a schedule, by a process that looks now and then, is away now and then, and dies between
// making an experiment and writing down that it has.
class Days {
 public:
  explicit Days(uint64_t seed) : rng_(seed) {}

  std::multiset<std::string> Run(const StartRules& rules, absl::Time from, absl::Time to) {
    state_.created = from;
    for (absl::Time now = from; now < to; now += absl::Seconds(20 + rng_.Below(200))) {
      if (rng_.Below(60) == 0) now += absl::Hours(rng_.Below(5));
      if (now >= to) break;
      const StartDecision decision = DecideStart(rules, state_, now);
      if (!decision.start) continue;
      // A name that is there is not made again.
      if (names_.insert(decision.name).second) made_.insert(decision.name);
      const bool dies = rng_.Below(3) == 0;
      if (dies) continue;
      state_.last_scheduled = decision.start;
    }
    return made_;
  }

 private:
  Rng rng_;
  ScheduleState state_ = NewState();
  std::set<std::string> names_;
  std::multiset<std::string> made_;
};

TEST(DecideStart, OverDaysAndChangesOfClocksEachStartIsMadeOnce) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto rules = Rules("*/30 1-4 * * *", "Europe/Berlin");
    const absl::Time from = At("2026-10-20T00:00"), to = At("2026-10-30T00:00");
    std::set<std::string> due;
    for (absl::Time at = rules.schedule.NextAfter(from); at < to;
         at = rules.schedule.NextAfter(at)) {
      due.insert(ExperimentNameOf("nightly", at));
    }
    EXPECT_EQ(due.size(), 79u) << "eight a day but the first three, and two more on the 25th";
    const auto made = Days(seed).Run(rules, from, to);
    for (const std::string& name : made) {
      ASSERT_EQ(made.count(name), 1u) << "seed " << seed;
      ASSERT_TRUE(due.count(name) == 1) << "seed " << seed << ": " << name << " was never due";
    }
    EXPECT_GT(made.size(), due.size() / 3) << "seed " << seed;
  }
}

}  // namespace
}  // namespace shirabe::schedule
