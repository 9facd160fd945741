// Schedules over a store: made, changed and steered; what is due is started once, history is kept
// within its limits, and what cannot be started is said. Time is set by hand.
#include "schedule/schedule_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "base/timestamp.h"
#include "db/schedules.h"
#include "experiment/conditions.h"
#include "schedule/parse_schedule.h"
#include "tests/support/small_schedule.h"

namespace shirabe::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const ExperimentKey kNightly{"default", "nightly"};

class ScheduleRecordsTest : public testing::Test {
 protected:
  static absl::Time Day(int day, int hour, int minute = 0) {
    return absl::FromCivil(absl::CivilSecond(2026, 11, day, hour, minute, 0), absl::UTCTimeZone());
  }

  void Put(const SmallSchedule& wanted = {}) {
    v1::SubmitScheduleRequest request;
    *request.mutable_schedule() = ParseSchedules(ScheduleYaml(wanted)).at(0).schedule;
    request.mutable_schedule()->mutable_status()->mutable_created_by()->set_name("alice");
    const auto put = records().Submit(request);
    ASSERT_TRUE(put.ok()) << put.status();
  }

  ScheduleRecords records() {
    return ScheduleRecords(
        {.store = store_.get(), .clock = &clock_, .check = check_, .namespace_gone = gone_});
  }
  void GoTo(absl::Time time) { clock_.Advance(time - clock_.Now()); }
  absl::Time Pass() {
    const auto wake = records().Reconcile(kNightly);
    EXPECT_TRUE(wake.ok()) << wake.status();
    return wake.value_or(absl::InfiniteFuture());
  }
  v1::ScheduledExperiment Get() { return records().Get(kNightly).value(); }
  v1::ScheduledExperimentStatus StatusNow() { return Get().status(); }

  std::vector<std::string> Experiments() {
    std::vector<std::string> names;
    const auto rows = store_->ListExperiments("").value();
    for (const auto& row : rows) {
      names.push_back(row.record.metadata().name());
    }
    return names;
  }
  std::string NameAt(absl::Time time) { return ExperimentNameOf("nightly", time); }

  // As its owner would.
  void End(const std::string& name, const std::string& how) {
    auto stored = store_->GetExperiment({"default", name}).value();
    v1::Condition& condition = *stored.record.mutable_status()->add_conditions();
    condition.set_type(how);
    condition.set_status("True");
    *stored.record.mutable_status()->mutable_completion_time() = ToProto(clock_.Now());
    db::Batch batch;
    batch.experiment = {"default", name};
    batch.put = {stored.record, stored.revision};
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
  bool WasAsked(const std::string& name, v1::Intent::Verb verb) {
    const auto intents = store_->ListIntents({"default", name}).value();
    for (const v1::Intent& intent : intents) {
      if (intent.verb() == verb) return true;
    }
    return false;
  }
  std::string LastEvent() {
    const auto status = StatusNow();
    return status.events().empty() ? "" : status.events().rbegin()->message();
  }
  v1::SteerScheduleReply Steer(v1::SteerScheduleRequest::Action action) {
    v1::SteerScheduleRequest request;
    request.mutable_schedule()->set_namespace_("default");
    request.mutable_schedule()->set_name("nightly");
    request.set_action(action);
    request.mutable_actor()->set_name("bob");
    const auto reply = records().Steer(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.value_or(v1::SteerScheduleReply());
  }

  ManualClock clock_{Day(1, 0)};
  std::unique_ptr<db::Store> store_ = db::Open("memory:").value();
  std::function<Status(const v1::Experiment&)> check_;
  std::function<bool(const std::string&, const std::string&)> gone_;
};

TEST_F(ScheduleRecordsTest, StartsWhatIsDueOnceAndKnowsTheNext) {
  Put();
  EXPECT_EQ(Pass(), Day(1, 2));
  EXPECT_THAT(Experiments(), IsEmpty());
  GoTo(Day(1, 2, 1));
  Pass();
  Pass();
  ASSERT_THAT(Experiments(), ElementsAre(NameAt(Day(1, 2))));
  const v1::ScheduledExperimentStatus status = StatusNow();
  EXPECT_EQ(FromProto(status.last_schedule_time()), Day(1, 2));
  EXPECT_EQ(FromProto(status.next_schedule_time()), Day(2, 2));
  EXPECT_THAT(status.active(), ElementsAre(NameAt(Day(1, 2))));
  EXPECT_EQ(status.starts(), 1);
  const auto made = store_->GetExperiment({"default", NameAt(Day(1, 2))}).value().record;
  EXPECT_EQ(made.status().shirabe().created_by().name(), "alice");
  EXPECT_EQ(made.metadata().labels().at(kScheduleLabel), "nightly");
  EXPECT_EQ(experiment::CurrentCondition(made).type(), "Created");
}

TEST_F(ScheduleRecordsTest, OfMissedStartsTheLastIsMadeAndTheOthersAreSaid) {
  Put();
  GoTo(Day(5, 12));
  Pass();
  EXPECT_THAT(Experiments(), ElementsAre(NameAt(Day(5, 2))));
  EXPECT_EQ(StatusNow().missed_starts(), 4);
  EXPECT_EQ(StatusNow().events(1).reason(), "StartsMissed");
}

TEST_F(ScheduleRecordsTest, MoreThanAHundredMissedStartsAreSaidAndNotMadeUpFor) {
  Put({.schedule = "* * * * *"});
  GoTo(Day(20, 12));
  Pass();
  EXPECT_THAT(Experiments(), ElementsAre(NameAt(Day(20, 12))));
  EXPECT_EQ(StatusNow().events(1).reason(), "TooManyMissedTimes");
  EXPECT_THAT(StatusNow().events(1).message(), HasSubstr("more than 100"));
}

TEST_F(ScheduleRecordsTest, ALateStartPastItsDeadlineIsLeftOut) {
  Put({.more = "startingDeadlineSeconds: 60"});
  GoTo(Day(1, 3));
  EXPECT_EQ(Pass(), Day(2, 2));
  EXPECT_THAT(Experiments(), IsEmpty());
}

TEST_F(ScheduleRecordsTest, ForbidWaitsForTheOneThatRunsAndSaysSo) {
  Put({.schedule = "0 * * * *", .more = "concurrencyPolicy: Forbid"});
  GoTo(Day(1, 1));
  Pass();
  GoTo(Day(1, 2));
  EXPECT_LE(Pass(), Day(1, 2) + absl::Seconds(10));
  EXPECT_THAT(Experiments(), SizeIs(1));
  EXPECT_THAT(StatusNow().waiting(), HasSubstr("still runs"));
  End(NameAt(Day(1, 1)), "Succeeded");
  Pass();
  EXPECT_THAT(Experiments(), ElementsAre(NameAt(Day(1, 1)), NameAt(Day(1, 2))));
  EXPECT_EQ(StatusNow().waiting(), "");
}

TEST_F(ScheduleRecordsTest, ReplaceCancelsTheOneThatRuns) {
  Put({.schedule = "0 * * * *", .more = "concurrencyPolicy: Replace"});
  GoTo(Day(1, 1));
  Pass();
  GoTo(Day(1, 2));
  Pass();
  EXPECT_THAT(Experiments(), SizeIs(2));
  EXPECT_TRUE(WasAsked(NameAt(Day(1, 1)), v1::Intent::CANCEL));
  EXPECT_FALSE(WasAsked(NameAt(Day(1, 2)), v1::Intent::CANCEL));
}

TEST_F(ScheduleRecordsTest, KeepsAsManyAsItsHistoryLimitsSay) {
  Put({.schedule = "0 * * * *",
       .more = "successfulExperimentsHistoryLimit: 1\nfailedExperimentsHistoryLimit: 0"});
  for (int hour = 1; hour <= 3; ++hour) {
    GoTo(Day(1, hour));
    Pass();
    End(NameAt(Day(1, hour)), hour == 2 ? "Failed" : "Succeeded");
    Pass();
  }
  EXPECT_TRUE(WasAsked(NameAt(Day(1, 1)), v1::Intent::DELETE));
  EXPECT_TRUE(WasAsked(NameAt(Day(1, 2)), v1::Intent::DELETE));
  EXPECT_FALSE(WasAsked(NameAt(Day(1, 3)), v1::Intent::DELETE));
  EXPECT_EQ(FromProto(StatusNow().last_successful_time()), Day(1, 3));
}

TEST_F(ScheduleRecordsTest, EachLearnsFromTheLastThatHasSucceededIfAsked) {
  Put({.schedule = "0 * * * *", .more = "warmStartFromLast: true"});
  const auto sources = [&](int hour) {
    const auto made = store_->GetExperiment({"default", NameAt(Day(1, hour))}).value().record;
    const auto& names = made.spec().shirabe().warm_start().experiments();
    return std::vector<std::string>(names.begin(), names.end());
  };
  const char* ends[] = {"Succeeded", "Failed", "Succeeded"};
  for (int hour = 1; hour <= 3; ++hour) {
    GoTo(Day(1, hour));
    Pass();
    End(NameAt(Day(1, hour)), ends[hour - 1]);
  }
  EXPECT_THAT(sources(1), IsEmpty());
  EXPECT_THAT(sources(2), ElementsAre(NameAt(Day(1, 1))));
  EXPECT_THAT(sources(3), ElementsAre(NameAt(Day(1, 1)))) << "the second has failed";
}

TEST_F(ScheduleRecordsTest, AnotherSearchBeginsWithoutTheResultsOfTheLastAndSaysWhy) {
  Put({.schedule = "0 * * * *", .more = "warmStartFromLast: true"});
  GoTo(Day(1, 1));
  Pass();
  End(NameAt(Day(1, 1)), "Succeeded");
  SmallSchedule other{.schedule = "0 * * * *", .more = "warmStartFromLast: true"};
  v1::SubmitScheduleRequest request;
  *request.mutable_schedule() = ParseSchedules(ScheduleYaml(other)).at(0).schedule;
  request.mutable_schedule()
      ->mutable_spec()
      ->mutable_experiment_template()
      ->mutable_spec()
      ->mutable_objective()
      ->set_type(v1::MAXIMIZE);
  ASSERT_TRUE(records().Submit(request).ok());
  GoTo(Day(1, 2));
  Pass();
  EXPECT_THAT(Experiments(), SizeIs(2));
  bool said = false;
  const auto status = StatusNow();
  for (const v1::ScheduleEvent& event : status.events()) {
    said |= event.reason() == "WarmStartLeftOut";
  }
  EXPECT_TRUE(said);
}

TEST_F(ScheduleRecordsTest, AStartThatIsRefusedIsSaidOnceAndTriedAgain) {
  Put();
  check_ = [](const v1::Experiment&) { return absl::ResourceExhaustedError("no room"); };
  GoTo(Day(1, 2));
  for (int i = 0; i < 3; ++i) {
    EXPECT_LE(Pass(), clock_.Now() + absl::Minutes(1));
    clock_.Advance(absl::Minutes(1));
  }
  EXPECT_THAT(Experiments(), IsEmpty());
  EXPECT_THAT(StatusNow().waiting(), HasSubstr("no room"));
  EXPECT_THAT(StatusNow().events(), SizeIs(2));
  check_ = nullptr;
  Pass();
  EXPECT_THAT(Experiments(), ElementsAre(NameAt(Day(1, 2))));
}

TEST_F(ScheduleRecordsTest, AnExperimentOfAnotherThatHasTheNameIsLeftAlone) {
  Put();
  db::Batch batch;
  batch.experiment = {"default", NameAt(Day(1, 2))};
  batch.put.emplace();
  batch.put->record.mutable_metadata()->set_namespace_("default");
  batch.put->record.mutable_metadata()->set_name(NameAt(Day(1, 2)));
  ASSERT_TRUE(store_->Commit(batch).ok());
  GoTo(Day(1, 2));
  Pass();
  EXPECT_THAT(LastEvent(), HasSubstr("is there already"));
  EXPECT_THAT(StatusNow().active(), IsEmpty());
  GoTo(Day(2, 2));
  Pass();
  EXPECT_THAT(StatusNow().active(), ElementsAre(NameAt(Day(2, 2)))) << "the next is made";
}

TEST_F(ScheduleRecordsTest, StartsNoneWhileSuspendedButByHand) {
  Put();
  EXPECT_TRUE(Steer(v1::SteerScheduleRequest::SUSPEND).changed());
  EXPECT_FALSE(Steer(v1::SteerScheduleRequest::SUSPEND).changed());
  GoTo(Day(2, 12));
  Pass();
  EXPECT_THAT(Experiments(), IsEmpty());
  const std::string by_hand = Steer(v1::SteerScheduleRequest::START).experiment();
  EXPECT_THAT(Experiments(), ElementsAre(by_hand));
  EXPECT_FALSE(StatusNow().has_last_schedule_time()) << "it was not at its time";
  EXPECT_EQ(store_->GetExperiment({"default", by_hand})
                .value()
                .record.status()
                .shirabe()
                .created_by()
                .name(),
            "bob");
  Steer(v1::SteerScheduleRequest::RESUME);
  Pass();
  EXPECT_THAT(Experiments(), SizeIs(2)) << "the last that was missed";
}

TEST_F(ScheduleRecordsTest, NoMoreRunAtOnceThanAreBounded) {
  Put({.schedule = "* * * * *"});
  for (int i = 1; i <= 110; ++i) {
    GoTo(Day(1, 0) + absl::Minutes(i));
    Pass();
  }
  EXPECT_THAT(Experiments(), SizeIs(kMaxActive));
  EXPECT_THAT(StatusNow().waiting(), HasSubstr("100 experiments of it run"));
  v1::SteerScheduleRequest request;
  request.mutable_schedule()->set_namespace_("default");
  request.mutable_schedule()->set_name("nightly");
  request.set_action(v1::SteerScheduleRequest::START);
  EXPECT_TRUE(absl::IsResourceExhausted(records().Steer(request).status()));
}

TEST_F(ScheduleRecordsTest, ApplyChangesItAndKeepsWhatItHasDone) {
  Put();
  GoTo(Day(1, 2));
  Pass();
  Put({.schedule = "0 5 * * *"});
  EXPECT_EQ(Get().metadata().generation(), 2);
  EXPECT_EQ(FromProto(StatusNow().last_schedule_time()), Day(1, 2));
  Put({.schedule = "0 5 * * *"});
  EXPECT_EQ(Get().metadata().generation(), 2) << "nothing to change";
  EXPECT_EQ(Pass(), Day(1, 2) + absl::Seconds(2)) << "one runs";
}

TEST_F(ScheduleRecordsTest, ThatOfANamespaceThatIsGoneStartsNothing) {
  Put();
  gone_ = [](const std::string&, const std::string&) { return true; };
  EXPECT_TRUE(absl::IsNotFound(records().Get(kNightly).status()));
  EXPECT_THAT(records().List("").value(), IsEmpty());
  GoTo(Day(1, 2));
  EXPECT_EQ(Pass(), absl::InfiniteFuture());
  gone_ = nullptr;
  EXPECT_TRUE(absl::IsNotFound(records().Get(kNightly).status())) << "it was deleted";
  EXPECT_THAT(Experiments(), IsEmpty());
}

TEST_F(ScheduleRecordsTest, DeletingItLeavesItsExperiments) {
  Put();
  GoTo(Day(1, 2));
  Pass();
  v1::DeleteScheduleRequest request;
  request.mutable_schedule()->set_namespace_("default");
  request.mutable_schedule()->set_name("nightly");
  ASSERT_TRUE(records().Delete(request).ok());
  EXPECT_TRUE(absl::IsNotFound(records().Delete(request)));
  EXPECT_THAT(Experiments(), SizeIs(1));
  EXPECT_EQ(Pass(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace shirabe::schedule
