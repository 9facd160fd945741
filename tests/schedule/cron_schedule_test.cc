// Schedules in cron's five fields: against croniter's starts (make_oracle.py), over changes of
// clocks, and what is none.
#include "schedule/cron_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "tests/support/paths.h"

namespace shirabe::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The next starts after a local time, as local times with their offset.
std::vector<std::string> StartsAfter(const std::string& text, const std::string& zone,
                                     const std::string& local, int count) {
  const auto schedule = CronSchedule::Parse(text, zone);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return {};
  absl::CivilSecond from;
  EXPECT_TRUE(absl::ParseCivilTime(local, &from)) << local;
  absl::Time at = absl::FromCivil(from, schedule->zone());
  std::vector<std::string> starts;
  for (int i = 0; i < count; ++i) {
    at = schedule->NextAfter(at);
    starts.push_back(absl::FormatTime("%m-%dT%H:%M%Ez", at, schedule->zone()));
  }
  return starts;
}

TEST(CronSchedule, StartsWhenCroniterSays) {
  const auto file = ReadFile(SourceDir() + "/tests/testdata/schedule/starts.txt");
  ASSERT_TRUE(file.ok()) << file.status();
  int compared = 0;
  for (const auto line : absl::StrSplit(*file, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '|');
    ASSERT_EQ(parts.size(), 4u) << line;
    const auto schedule = CronSchedule::Parse(parts[0], parts[1]);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    int64_t seconds = 0;
    ASSERT_TRUE(absl::SimpleAtoi(parts[2], &seconds));
    absl::Time at = absl::FromUnixSeconds(seconds);
    for (const auto wanted : absl::StrSplit(parts[3], ' ')) {
      at = schedule->NextAfter(at);
      ASSERT_EQ(absl::ToUnixSeconds(at), std::stoll(std::string(wanted))) << line;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(CronSchedule, WhatAChangeOfClocksLeavesOutIsNotMadeUp) {
  // 29 March 2026: 02:00 becomes 03:00.
  EXPECT_THAT(StartsAfter("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00", 3),
              ElementsAre("03-28T02:30+01:00", "03-30T02:30+02:00", "03-31T02:30+02:00"));
  EXPECT_THAT(StartsAfter("0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00", 3),
              ElementsAre("03-29T01:00+01:00", "03-29T03:00+02:00", "03-29T04:00+02:00"));
}

TEST(CronSchedule, WhatAChangeOfClocksRepeatsIsDueTwice) {
  // 25 October 2026: 03:00 becomes 02:00.
  EXPECT_THAT(StartsAfter("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00", 3),
              ElementsAre("10-25T02:30+02:00", "10-25T02:30+01:00", "10-26T02:30+01:00"));
  EXPECT_THAT(StartsAfter("0 * * * *", "Europe/Berlin", "2026-10-25T00:30:00", 4),
              ElementsAre("10-25T01:00+02:00", "10-25T02:00+02:00", "10-25T02:00+01:00",
                          "10-25T03:00+01:00"));
}

TEST(CronSchedule, HalfAnHourIsAChangeOfClocksToo) {
  // Lord Howe, 5 April 2026: 02:00 becomes 01:30.
  EXPECT_THAT(StartsAfter("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00", 3),
              ElementsAre("04-05T01:45+11:00", "04-05T01:45+10:30", "04-06T01:45+10:30"));
}

TEST(CronSchedule, BothKindsOfDayRestrictedMeansEither) {
  EXPECT_THAT(StartsAfter("0 0 13 * 5", "", "2026-11-01T00:00:00", 4),
              ElementsAre("11-06T00:00+00:00", "11-13T00:00+00:00", "11-20T00:00+00:00",
                          "11-27T00:00+00:00"));
  EXPECT_THAT(StartsAfter("0 0 */10 * 0", "", "2026-11-02T00:00:00", 3),
              ElementsAre("11-08T00:00+00:00", "11-11T00:00+00:00", "11-15T00:00+00:00"));
}

TEST(CronSchedule, SomeDaysAreRareAndSomeNever) {
  EXPECT_THAT(StartsAfter("0 0 29 2 *", "", "2096-03-01T00:00:00", 1),
              ElementsAre("02-29T00:00+00:00"));
  const auto never = CronSchedule::Parse("0 0 30 2 *", "");
  ASSERT_TRUE(never.ok());
  EXPECT_EQ(never->NextAfter(absl::FromUnixSeconds(0)), absl::InfiniteFuture());
}

TEST(CronSchedule, WhatIsNoneIsRefusedByItsField) {
  const auto refused = [](const std::string& text, const std::string& zone = "") {
    const auto schedule = CronSchedule::Parse(text, zone);
    EXPECT_TRUE(absl::IsInvalidArgument(schedule.status())) << text;
    EXPECT_LT(Message(schedule.status()).size(), 400u);
    return Message(schedule.status());
  };
  EXPECT_THAT(refused(""), HasSubstr("has 0 fields: write five fields"));
  EXPECT_THAT(refused("* * * *"), HasSubstr("has 4 fields"));
  EXPECT_THAT(refused("* * * * * *"), HasSubstr("has 6 fields"));
  EXPECT_THAT(refused("60 * * * *"), HasSubstr("the minute \"60\" is out of range"));
  EXPECT_THAT(refused("* 24 * * *"), HasSubstr("the hour \"24\" is out of range"));
  EXPECT_THAT(refused("* * 0 * *"), HasSubstr("the day of the month \"0\" is out of range"));
  EXPECT_THAT(refused("* * * 13 *"), HasSubstr("the month \"13\" is out of range"));
  EXPECT_THAT(refused("* * * * 7"), HasSubstr("is no day (Sunday is 0)"));
  EXPECT_THAT(refused("* * * * someday"), HasSubstr("\"someday\" cannot be read"));
  EXPECT_THAT(refused("5-1 * * * *"), HasSubstr("ends before it begins"));
  for (const char* text : {"*/0 * * * *", "*/-1 * * * *", "*/ * * * *", "1/2/3 * * * *"}) {
    refused(text);
  }
  for (const char* text : {"1, * * * *", ", * * * *", "1-2-3 * * * *", "+1 * * * *", "- * * * *",
                           "1\n* * * *", "99999999999 * * * *", "@every 1h", "@reboot"}) {
    refused(text);
  }
  EXPECT_THAT(refused("TZ=UTC 0 0 * * *"), HasSubstr("write it into timeZone"));
  EXPECT_THAT(refused(std::string(1 << 20, '*')), HasSubstr("bytes"));
  EXPECT_THAT(refused("0 0 * * *", "Mars/Olympus"), HasSubstr("timeZone \"Mars/Olympus\""));
  for (const char* zone : {"../../etc/passwd", "/etc/localtime", "localtime", "Local"}) {
    refused("0 0 * * *", zone);
  }
}

}  // namespace
}  // namespace shirabe::schedule
