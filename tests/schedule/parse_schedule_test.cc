// What a file of a ScheduledExperiment may say: each mistake is found, with its place, its value
// and the fix, by the rules of CronJob and of experiments.
#include "schedule/parse_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "tests/support/small_schedule.h"

namespace shirabe::schedule {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> ErrorsOf(const std::string& yaml) {
  std::vector<std::string> errors;
  for (const ParsedSchedule& parsed : ParseSchedules(yaml)) {
    for (const experiment::Finding& finding : parsed.findings) {
      if (!finding.warning) errors.push_back(experiment::FormatFinding(finding, "f"));
    }
  }
  return errors;
}

TEST(ParseSchedule, ReadsAllItsWords) {
  const auto parsed = ParseSchedules(ScheduleYaml(
      {.schedule = "30 2 * * 1-5",
       .more = "timeZone: Europe/Berlin\nconcurrencyPolicy: Replace\nstartingDeadlineSeconds: 600\n"
               "suspend: true\nsuccessfulExperimentsHistoryLimit: 5\n"
               "failedExperimentsHistoryLimit: 0\nwarmStartFromLast: true"}));
  ASSERT_THAT(parsed, SizeIs(1));
  ASSERT_FALSE(experiment::HasErrors(parsed[0].findings)) << parsed[0].findings[0].message;
  const auto rules = RulesOf(parsed[0].schedule.spec());
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->concurrency, ConcurrencyPolicy::kReplace);
  EXPECT_EQ(rules->starting_deadline, absl::Minutes(10));
  EXPECT_EQ(rules->successful_history_limit, 5);
  EXPECT_EQ(rules->failed_history_limit, 0);
  EXPECT_TRUE(rules->suspend);
  const v1::Experiment made = ExperimentOf(parsed[0].schedule, "nightly-1", absl::UnixEpoch(), "");
  EXPECT_EQ(made.metadata().labels().at(kScheduleLabel), "nightly");
  EXPECT_EQ(made.metadata().annotations().at(kScheduledAt), "1970-01-01T00:00:00+00:00");
  EXPECT_EQ(made.spec().max_trial_count(), 4);
}

TEST(ParseSchedule, PassesOverOtherKinds) {
  EXPECT_THAT(ParseSchedules(Yaml({})), SizeIs(0));
  EXPECT_THAT(ParseSchedules(Yaml({}) + "---\n" + ScheduleYaml({})), SizeIs(1));
}

TEST(ParseSchedule, HasTheDefaultsOfCronJob) {
  const auto parsed = ParseSchedules(ScheduleYaml({}));
  ASSERT_THAT(ErrorsOf(ScheduleYaml({})), SizeIs(0));
  const v1::ScheduledExperimentSpec& spec = parsed.at(0).schedule.spec();
  EXPECT_EQ(spec.concurrency_policy(), v1::ALLOW);
  EXPECT_EQ(spec.successful_experiments_history_limit(), 3);
  EXPECT_EQ(spec.failed_experiments_history_limit(), 1);
}

TEST(ParseSchedule, SaysEachMistakeWithItsPlace) {
  const struct {
    std::string yaml, error;
  } cases[] = {
      {ScheduleYaml({.schedule = "61 2 * * *"}),
       "spec.schedule: the minute \"61\" is out of range"},
      {ScheduleYaml({.schedule = "every night"}), "spec.schedule: \"every night\" has 2 fields"},
      {ScheduleYaml({.schedule = "0 0 30 2 *"}), "is never due"},
      {ScheduleYaml({.schedule = "TZ=UTC 0 0 * * *"}), "write it into timeZone"},
      {ScheduleYaml({.more = "timeZone: Mars/Olympus"}),
       "spec.timeZone: timeZone \"Mars/Olympus\""},
      {ScheduleYaml({.more = "timeZone: ../../../etc/passwd"}), "spec.timeZone"},
      {ScheduleYaml({.more = "timeZone: /etc/localtime"}), "spec.timeZone"},
      {ScheduleYaml({.more = "timeZone: localtime"}), "spec.timeZone"},
      {ScheduleYaml({.more = "concurrencyPolicy: Sometimes"}), "spec.concurrencyPolicy"},
      {ScheduleYaml({.more = "startingDeadlineSeconds: -1"}),
       "spec.startingDeadlineSeconds: must be at least 0, not -1"},
      {ScheduleYaml({.more = "successfulExperimentsHistoryLimit: 1000000"}),
       "spec.successfulExperimentsHistoryLimit: must be at most 100, not 1000000"},
      {ScheduleYaml({.more = "failedExperimentsHistoryLimit: -3"}),
       "spec.failedExperimentsHistoryLimit: must be at least 0, not -3"},
      {ScheduleYaml({.more = "warmStartFromLast: true\nsuccessfulExperimentsHistoryLimit: 0"}),
       "must be at least 1 with warmStartFromLast"},
      {ScheduleYaml({.name = "a-name-of-thirty-two-characters-"}), "metadata.name"},
      {ScheduleYaml({.name = std::string(32, 'x')}), "at most 31 are taken"},
      {ScheduleYaml({.name = "Nightly"}), "metadata.name"},
      {ScheduleYaml({.ns = "No_Namespace"}), "metadata.namespace"},
      {ScheduleYaml({.spec_more = "maxTrialCountt: 3\nshirabe: {askAndTell: true}"}),
       "spec.experimentTemplate.spec.maxTrialCountt"},
      {ScheduleYaml({.spec_more = ""}), "spec.experimentTemplate.spec.trialTemplate"},
      {absl::StrReplaceAll(
           ScheduleYaml({}),
           {{"  experimentTemplate:\n", "  experimentTemplate:\n    metadata: {name: mine}\n"}}),
       "spec.experimentTemplate.metadata.name"},
      {absl::StrReplaceAll(ScheduleYaml({}), {{"  schedule: \"0 2 * * *\"\n", ""}}),
       "spec.schedule: is required"},
      {absl::StrReplaceAll(ScheduleYaml({}), {{"v1beta1", "v2"}}), "apiVersion"},
  };
  for (const auto& [yaml, error] : cases) {
    EXPECT_THAT(ErrorsOf(yaml), Contains(HasSubstr(error))) << yaml;
  }
}

TEST(ParseSchedule, SaysAMistakeOfTheTemplateOnce) {
  const auto errors = ErrorsOf(absl::StrReplaceAll(
      ScheduleYaml({}), {{"objectiveMetricName: loss", "additionalMetricNames: [acc]"}}));
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_THAT(errors[0],
              HasSubstr("spec.experimentTemplate.spec.objective.objectiveMetricName: is required"));
}

TEST(ParseObjects, EachDocumentIsOfTheKindThatItSays) {
  const std::string schedule = ScheduleYaml({.name = "hourly", .schedule = "0 * * * *"});
  const ParsedObjects both =
      ParseObjects("kind: Experiment\nspec: 7\n---\n" + schedule + "\n---\nkind: Job\n");
  ASSERT_EQ(both.schedules.size(), 1u);
  EXPECT_EQ(both.schedules[0].schedule.metadata().name(), "hourly");
  EXPECT_FALSE(experiment::HasErrors(both.schedules[0].findings));
  ASSERT_EQ(both.experiments.size(), 2u);
  EXPECT_TRUE(experiment::HasErrors(both.experiments[0].findings));
  ASSERT_EQ(both.experiments[1].findings.size(), 1u);
  EXPECT_EQ(both.experiments[1].findings[0].path, "kind");
  // What is wrong with a schedule is said of it alone.
  const ParsedObjects wrong = ParseObjects("kind: ScheduledExperiment\nspec: {schedule: never}\n");
  EXPECT_TRUE(wrong.experiments.empty());
  EXPECT_TRUE(experiment::HasErrors(wrong.schedules.at(0).findings));
  EXPECT_EQ(ParseObjects("").experiments.at(0).findings.size(), 1u);
}

}  // namespace
}  // namespace shirabe::schedule
