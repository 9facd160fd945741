// What charts draw, over a store: columns that follow it, summaries and capacity.
#include "client/store_reads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/stored.h"

namespace shirabe::client {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ChartReadsTest : public testing::Test {
 protected:
  static v1::ColumnsRequest Request(const std::vector<std::string>& fields = {}) {
    v1::ColumnsRequest request;
    request.set_namespace_("default");
    request.set_experiment("digits");
    request.mutable_fields()->Assign(fields.begin(), fields.end());
    return request;
  }
  v1::Columns Trials(const v1::ColumnsRequest& request) {
    auto columns = stored_.client().Get<v1::Columns>("GetTrialColumns", request);
    EXPECT_TRUE(columns.ok()) << columns.status();
    return columns.value_or(v1::Columns());
  }
  v1::Columns Attempts(const v1::ColumnsRequest& request) {
    auto columns = stored_.client().Get<v1::Columns>("GetAttemptColumns", request);
    EXPECT_TRUE(columns.ok()) << columns.status();
    return columns.value_or(v1::Columns());
  }
  static double At0(const v1::Columns& columns, const std::string& name) {
    for (const v1::Column& column : columns.columns()) {
      if (column.name() == name) return column.values(0);
    }
    ADD_FAILURE() << "there is no column " << name;
    return 0;
  }
  static std::string Word0(const v1::Columns& columns, const std::string& name) {
    for (const v1::Column& column : columns.columns()) {
      if (column.name() != name) continue;
      const double index = column.values(0);
      return std::isnan(index) ? "" : column.dictionary(static_cast<int>(index));
    }
    ADD_FAILURE() << "there is no column " << name;
    return "";
  }
  void PutAttempt(const v1::Attempt& attempt) {
    db::Batch batch{.experiment = stored_.key()};
    batch.attempts.push_back({attempt, 0});
    stored_.Commit(batch);
  }
  v1::Summary Summary() {
    v1::SummaryRequest request;
    request.set_namespace_("default");
    request.set_experiment("digits");
    auto summary = stored_.client().Get<v1::Summary>("GetSummary", request);
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.value_or(v1::Summary());
  }

  Stored stored_{/*read_only=*/false};
};

// ---- columns -----------------------------------------------------------------------------------

TEST_F(ChartReadsTest, ATrialIsARowOfItsColumns) {
  v1::Trial trial =
      MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.25, {.lr = 0.01, .bs = 16, .opt = "it's, \"adam\""});
  trial.set_cost(1.5);
  trial.set_preemptions(2);
  trial.set_reason("ObjectiveReached");
  stored_.Put(trial);
  const v1::Columns row = Trials(Request());
  EXPECT_EQ(row.rows(), 1);
  EXPECT_EQ(At0(row, "trial"), 1);
  EXPECT_EQ(Word0(row, "state"), "Succeeded");
  EXPECT_EQ(At0(row, "objective"), 0.25);
  EXPECT_EQ(At0(row, "step"), 2);
  EXPECT_EQ(At0(row, "start"), kStart + 20);
  EXPECT_EQ(At0(row, "end"), kStart + 80);
  EXPECT_EQ(At0(row, "seconds"), 60);
  EXPECT_EQ(At0(row, "cost"), 1.5);
  EXPECT_EQ(At0(row, "preemptions"), 2);
  EXPECT_EQ(At0(row, "metric.acc"), 0.75);
  EXPECT_EQ(At0(row, "param.lr"), 0.01);
  EXPECT_EQ(At0(row, "param.bs"), 16);
  EXPECT_EQ(Word0(row, "param.opt"), "it's, \"adam\"");
  const v1::Columns details = Trials(Request({"reason", "created", "metric.loss", "metric.loss.max",
                                              "metric.acc.min", "metric.acc.count"}));
  EXPECT_EQ(Word0(details, "reason"), "ObjectiveReached");
  EXPECT_EQ(At0(details, "created"), kStart + 10);
  EXPECT_EQ(At0(details, "metric.loss"), 0.25);
  EXPECT_EQ(At0(details, "metric.loss.max"), 1.25);
  EXPECT_EQ(At0(details, "metric.acc.min"), 0.5);
  EXPECT_EQ(At0(details, "metric.acc.count"), 2);
}

TEST_F(ChartReadsTest, WhatATrialDoesNotHaveIsNotANumber) {
  stored_.Put(MakeTrial(1, v1::TRIAL_PENDING));
  const v1::Columns row = Trials(Request());
  for (const char* name : {"objective", "step", "start", "end", "seconds", "metric.acc"}) {
    EXPECT_TRUE(std::isnan(At0(row, name))) << name;
  }
  EXPECT_EQ(At0(row, "attempts"), 0);
}

TEST_F(ChartReadsTest, ACategoryOfNoLettersIsAValue) {
  stored_.Put(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.25, {.lr = 0.01, .bs = 16, .opt = ""}));
  EXPECT_FALSE(std::isnan(At0(Trials(Request()), "param.opt")));
}

TEST_F(ChartReadsTest, AValueThatIsNotFiniteComesAsItIs) {
  v1::Trial trial = MakeTrial(1, v1::TRIAL_RUNNING, 0.25);
  trial.mutable_observation()->mutable_metrics(1)->set_latest(
      -std::numeric_limits<double>::infinity());
  stored_.Put(trial);
  EXPECT_EQ(At0(Trials(Request({"metric.acc"})), "metric.acc"),
            -std::numeric_limits<double>::infinity());
}

TEST_F(ChartReadsTest, SinceARevisionOnlyWhatHasChanged) {
  for (int64_t n = 1; n <= 5; ++n) stored_.Put(MakeTrial(n, v1::TRIAL_RUNNING));
  const v1::Columns all = Trials(Request({"trial"}));
  EXPECT_EQ(all.rows(), 5);
  v1::ColumnsRequest request = Request({"trial", "objective"});
  request.set_since(all.revision());
  EXPECT_EQ(Trials(request).rows(), 0);
  stored_.Put(MakeTrial(4, v1::TRIAL_SUCCEEDED, 0.5));
  stored_.Put(MakeTrial(6, v1::TRIAL_RUNNING));
  const v1::Columns changed = Trials(request);
  EXPECT_THAT(changed.columns(0).values(), ElementsAre(4, 6));
  EXPECT_EQ(changed.columns(1).values(0), 0.5);
  EXPECT_EQ(changed.total(), 6);
  EXPECT_GT(changed.revision(), all.revision());
}

TEST_F(ChartReadsTest, ARevisionThatTheStoreHasNotReachedIsRefused) {
  v1::ColumnsRequest request = Request();
  request.set_since(1'000'000);
  const Status status = stored_.client().Get<v1::Columns>("GetTrialColumns", request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("since: revision 1000000 is not of this store"));
}

TEST_F(ChartReadsTest, WhoKnowsTheVersionGetsNothingElse) {
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  v1::ColumnsRequest request = Request();
  request.set_known(Trials(request).version());
  EXPECT_EQ(Trials(request).columns_size(), 0);
  // Another experiment's commit changes nothing here.
  v1::Experiment other = MakeExperiment("other");
  db::Batch batch{.experiment = experiment::KeyOf(other)};
  batch.put = {other, 0};
  ASSERT_TRUE(stored_.store().Commit(batch).ok());
  EXPECT_EQ(Trials(request).columns_size(), 0);
  stored_.Put(MakeTrial(1, v1::TRIAL_FAILED));
  const v1::Columns changed = Trials(request);
  EXPECT_EQ(Word0(changed, "state"), "Failed");
  EXPECT_NE(changed.version(), request.known());
}

TEST_F(ChartReadsTest, AnExperimentThatWasMadeAgainHasNoneOfTheOldRows) {
  for (int64_t n = 1; n <= 3; ++n) stored_.Put(MakeTrial(n, v1::TRIAL_SUCCEEDED, 0.5));
  const v1::Columns before = Trials(Request());
  EXPECT_EQ(before.rows(), 3);
  ASSERT_TRUE(
      stored_.store().Commit({.experiment = stored_.key(), .delete_experiment = true}).ok());
  EXPECT_TRUE(
      absl::IsNotFound(stored_.client().Get<v1::Columns>("GetTrialColumns", Request()).status()));
  *stored_.experiment.mutable_metadata()->mutable_creation_timestamp() = ToProto(At(5));
  stored_.PutExperiment();
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  const v1::Columns after = Trials(Request());
  EXPECT_EQ(after.rows(), 1);
  EXPECT_EQ(Word0(after, "state"), "Running");
  EXPECT_NE(after.created().seconds(), before.created().seconds());
  EXPECT_NE(after.version(), before.version());
}

TEST_F(ChartReadsTest, ManyChangesAtOnceAreReadAsWell) {
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  EXPECT_EQ(Trials(Request()).rows(), 1);
  db::Batch batch{.experiment = stored_.key()};
  for (int64_t n = 2; n <= 5000; ++n) batch.trials.push_back({MakeTrial(n, v1::TRIAL_PENDING), 0});
  stored_.Commit(batch);
  const v1::Columns all = Trials(Request({"trial"}));
  ASSERT_EQ(all.rows(), 5000);
  EXPECT_EQ(all.columns(0).values(4999), 5000);
}

TEST_F(ChartReadsTest, AnAttemptIsARowOfTheTimeline) {
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  PutAttempt(MakeClosedAttempt(1, 1));
  v1::Attempt open = MakeClosedAttempt(1, 2);
  open.set_state(v1::ATTEMPT_RUNNING);
  open.set_cause(v1::CAUSE_NONE);
  open.clear_end_time();
  open.clear_placements();
  PutAttempt(open);
  const v1::Columns rows = Attempts(Request());
  EXPECT_EQ(rows.rows(), 2);
  EXPECT_EQ(At0(rows, "attempt"), 1);
  EXPECT_EQ(Word0(rows, "cause"), "preempted-spot");
  EXPECT_EQ(Word0(rows, "node"), "spot-1");
  EXPECT_EQ(Word0(rows, "capacity"), "spot");
  EXPECT_EQ(At0(rows, "pricePerHour"), 3.6);
  EXPECT_EQ(At0(rows, "cost"), 0.0395);
  EXPECT_EQ(At0(rows, "resumedFromStep"), 5200);
  v1::ColumnsRequest second = Request({"attempt", "state", "cause", "node", "end", "cost"});
  second.mutable_after()->set_trial(1);
  second.mutable_after()->set_attempt(1);
  const v1::Columns running = Attempts(second);
  ASSERT_EQ(running.rows(), 1);
  EXPECT_EQ(At0(running, "attempt"), 2);
  EXPECT_EQ(Word0(running, "state"), "running");
  EXPECT_EQ(Word0(running, "cause"), "");
  EXPECT_EQ(Word0(running, "node"), "");
  EXPECT_TRUE(std::isnan(At0(running, "end")));
  EXPECT_TRUE(std::isnan(At0(running, "cost"))) << "it grows";
}

TEST_F(ChartReadsTest, TheColumnsOfMetricsWithLikeNamesStayApart) {
  *stored_.experiment.mutable_spec()->mutable_objective()->add_additional_metric_names() =
      "loss.max";
  stored_.PutExperiment();
  v1::Trial trial = MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.25);
  *trial.mutable_observation()->add_metrics() = MakeMetric("loss.max", 40, 44);
  stored_.Put(trial);
  EXPECT_EQ(At0(Trials(Request({"metric.loss.max"})), "metric.loss.max"), 40) << "its least";
  EXPECT_EQ(At0(Trials(Request({"metric.loss.max#2"})), "metric.loss.max#2"), 1.25);
}

TEST_F(ChartReadsTest, TablesThatAreNotUsedGoWhenThereAreTooManyBytes) {
  NamespaceGuard everywhere(&stored_.store(), &stored_.clock, [](const ExperimentKey&) {});
  ColumnCache cache(&stored_.store(), &everywhere, /*max_bytes=*/64 << 10);
  for (const char* name : {"one", "two", "three"}) {
    v1::Experiment experiment = MakeExperiment(name);
    db::Batch batch{.experiment = experiment::KeyOf(experiment)};
    batch.put = {experiment, 0};
    for (int64_t n = 1; n <= 200; ++n) {
      v1::Trial trial = MakeTrial(n, v1::TRIAL_PENDING);
      trial.set_experiment(name);
      batch.trials.push_back({trial, 0});
    }
    ASSERT_TRUE(stored_.store().Commit(batch).ok());
  }
  for (int round = 0; round < 3; ++round) {
    for (const char* name : {"one", "two", "three"}) {
      ASSERT_TRUE(cache
                      .Read({"default", name}, ColumnCache::Rows::kTrials,
                            [&](const ColumnSnapshot& snapshot) {
                              EXPECT_EQ(snapshot.table.rows(), 200);
                              return absl::OkStatus();
                            })
                      .ok());
      EXPECT_LE(cache.bytes(), 128 << 10) << "one that is larger than all may be, alone";
      EXPECT_GT(cache.bytes(), 0);
    }
  }
}

// ---- summaries ---------------------------------------------------------------------------------

TEST_F(ChartReadsTest, ASummarySaysHowItIsGettingOn) {
  SetCondition("Running", stored_.experiment);
  v1::ExperimentStatus& status = *stored_.experiment.mutable_status();
  status.set_trials(12);
  status.set_trials_succeeded(7);
  status.set_trials_failed(1);
  status.set_trials_running(2);
  status.set_trials_pending(2);
  status.mutable_shirabe()->set_seconds(400);
  status.mutable_shirabe()->set_cost(4);
  status.mutable_shirabe()->set_wasted_seconds(100);
  status.mutable_shirabe()->set_preemptions(3);
  status.mutable_shirabe()->set_waiting("no free slot");
  status.mutable_shirabe()->add_tags("thesis");
  status.mutable_shirabe()->mutable_on_success()->set_phase(v1::FOLLOW_UP_FAILED);
  SetBest(MakeTrial(4, v1::TRIAL_SUCCEEDED, 0.125), stored_.experiment);
  stored_.PutExperiment();
  stored_.Put(MakeTrial(9, v1::TRIAL_RUNNING));
  v1::Attempt open = MakeClosedAttempt(9, 1);
  open.set_state(v1::ATTEMPT_RUNNING);
  open.mutable_placements(0)->clear_end_time();
  PutAttempt(open);
  const v1::Summary summary = Summary();
  EXPECT_EQ(summary.state(), "Running");
  EXPECT_EQ(summary.waiting(), "no free slot");
  EXPECT_THAT(summary.tags(), testing::ElementsAre("thesis"));
  EXPECT_EQ(summary.on_success(), "Failed");
  EXPECT_EQ(summary.trials_ended(), 8);
  EXPECT_EQ(summary.max_trials(), 32);
  EXPECT_EQ(summary.best().trial(), 4);
  EXPECT_EQ(summary.best().value(), 0.125);
  EXPECT_THAT(summary.best().assignments(), SizeIs(3));
  // The open attempt has run from 20 s to 100 s, at 0.001 a second.
  EXPECT_THAT(summary.seconds(), DoubleNear(480, 1e-9));
  EXPECT_THAT(summary.cost(), DoubleNear(4.08, 1e-9));
  EXPECT_EQ(summary.cost_per_hour(), 3.6);
  EXPECT_EQ(summary.running_spot(), 1);
  EXPECT_EQ(summary.running_on_demand(), 0);
  EXPECT_EQ(summary.wasted_share(), 0.25);
  // 24 trials of 50 s are left, of which 50 s are done, and two run at the same time.
  EXPECT_THAT(summary.eta_seconds(), DoubleNear((24 * 50 - 50) / 2.0, 1e-9));
}

TEST_F(ChartReadsTest, ThereIsNoTimeLeftToTellWhereNothingSaysIt) {
  EXPECT_FALSE(Summary().has_eta_seconds()) << "no trial has ended";
  stored_.experiment.mutable_status()->set_trials_succeeded(4);
  stored_.experiment.mutable_status()->mutable_shirabe()->set_seconds(40);
  stored_.PutExperiment();
  EXPECT_TRUE(Summary().has_eta_seconds());
  stored_.experiment.mutable_status()->mutable_shirabe()->set_paused(true);
  stored_.PutExperiment();
  EXPECT_FALSE(Summary().has_eta_seconds());
  stored_.experiment.mutable_status()->mutable_shirabe()->set_paused(false);
  stored_.experiment.mutable_spec()->clear_max_trial_count();
  stored_.PutExperiment();
  EXPECT_FALSE(Summary().has_eta_seconds());
}

TEST_F(ChartReadsTest, ASummaryIsMadeAnewOnlyWhenItsExperimentHasChanged) {
  const v1::Summary first = Summary();
  stored_.clock.Advance(absl::Seconds(30));
  v1::Experiment other = MakeExperiment("other");
  db::Batch batch{.experiment = experiment::KeyOf(other)};
  batch.put = {other, 0};
  ASSERT_TRUE(stored_.store().Commit(batch).ok());
  EXPECT_EQ(Summary().version(), first.version());
  EXPECT_EQ(Summary().as_of().seconds(), first.as_of().seconds()) << "it is that of before";
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  const v1::Summary second = Summary();
  EXPECT_NE(second.version(), first.version());
  EXPECT_EQ(second.as_of().seconds(), first.as_of().seconds() + 30);
}

TEST_F(ChartReadsTest, SummariesComeAndGoWithTheirExperiments) {
  const auto names = [&](const std::string& ns) {
    v1::ListSummariesRequest request;
    request.set_namespace_(ns);
    std::vector<std::string> list;
    const auto summaries = stored_.client().List<v1::Summary>("ListSummaries", request);
    EXPECT_TRUE(summaries.ok()) << summaries.status();
    for (const v1::Summary& summary : *summaries) {
      list.push_back(summary.namespace_() + "/" + summary.name());
    }
    return list;
  };
  EXPECT_THAT(names(""), ElementsAre("default/digits"));
  v1::Experiment other = MakeExperiment("other");
  other.mutable_metadata()->set_namespace_("team");
  db::Batch batch{.experiment = experiment::KeyOf(other)};
  batch.put = {other, 0};
  ASSERT_TRUE(stored_.store().Commit(batch).ok());
  EXPECT_THAT(names(""), ElementsAre("default/digits", "team/other"));
  EXPECT_THAT(names("team"), ElementsAre("team/other"));
  EXPECT_THAT(names("tea"), IsEmpty());
  ASSERT_TRUE(
      stored_.store().Commit({.experiment = stored_.key(), .delete_experiment = true}).ok());
  EXPECT_THAT(names(""), ElementsAre("team/other"));
}

TEST_F(ChartReadsTest, NothingIsShownOfANamespaceThatIsGone) {
  stored_.experiment.mutable_status()->mutable_shirabe()->set_namespace_uid("old");
  stored_.PutExperiment();
  std::string uid = "old";
  stored_.client().SetNamespaces([&](const std::string&) -> StatusOr<std::string> { return uid; });
  EXPECT_EQ(Summary().name(), "digits");
  EXPECT_EQ(Trials(Request()).total(), 0);
  uid = "new";
  LocalClient& client = stored_.client();
  v1::SummaryRequest summary;
  summary.set_namespace_("default");
  summary.set_experiment("digits");
  v1::CurvesRequest curves;
  curves.set_namespace_("default");
  curves.set_experiment("digits");
  EXPECT_TRUE(absl::IsNotFound(client.Get<v1::Summary>("GetSummary", summary).status()));
  EXPECT_TRUE(absl::IsNotFound(client.Get<v1::Columns>("GetTrialColumns", Request()).status()));
  EXPECT_TRUE(absl::IsNotFound(client.Get<v1::Columns>("GetAttemptColumns", Request()).status()));
  EXPECT_TRUE(absl::IsNotFound(client.Get<v1::Curves>("GetCurves", curves).status()));
  EXPECT_THAT(*client.List<v1::Summary>("ListSummaries", v1::ListSummariesRequest()), IsEmpty());
}

// ---- capacity ----------------------------------------------------------------------------------

TEST_F(ChartReadsTest, CapacitySaysWhatRunsAndWhatItCost) {
  const int64_t hour = (kStart / 3600 + 1) * 3600 - kStart;  // the next full one, from kStart
  stored_.clock.Advance(absl::Seconds(hour + 900 - 100));    // a quarter past it
  stored_.experiment.mutable_status()->set_trials_pending(3);
  stored_.experiment.mutable_status()->mutable_shirabe()->set_waiting("no free slot");
  stored_.PutExperiment();
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  // Half an hour before the full hour, and a quarter after it, at 3.60 an hour.
  v1::Attempt lost = MakeClosedAttempt(1, 1);
  *lost.mutable_start_time() = ToProto(At(hour - 1800));
  *lost.mutable_end_time() = ToProto(At(hour + 600));
  lost.set_seconds(2400);
  lost.set_cost(2.4);
  lost.set_wasted_seconds(600);
  PutAttempt(lost);
  v1::Attempt open = MakeClosedAttempt(1, 2);
  open.set_state(v1::ATTEMPT_RUNNING);
  open.set_cause(v1::CAUSE_NONE);
  open.clear_end_time();
  open.set_cost(0);
  *open.mutable_start_time() = ToProto(At(hour + 600));
  PutAttempt(open);
  v1::CapacityRequest request;
  request.set_hours(2);
  const auto report = stored_.client().Get<v1::CapacityReport>("GetCapacity", request).value();
  EXPECT_EQ(report.running(), 1);
  EXPECT_EQ(report.running_spot(), 1);
  EXPECT_EQ(report.pending(), 3);
  EXPECT_EQ(report.cost_per_hour(), 3.6);
  ASSERT_THAT(report.pools(), SizeIs(1));
  EXPECT_EQ(report.pools(0).pool(), "a100-spot");
  EXPECT_EQ(report.pools(0).nodes(), 1);
  ASSERT_THAT(report.attempts(), SizeIs(1));
  EXPECT_EQ(report.attempts(0).attempt(), 2);
  EXPECT_EQ(report.attempts(0).node(), "spot-1");
  ASSERT_THAT(report.queue(), SizeIs(1));
  EXPECT_EQ(report.queue(0).waiting(), "no free slot");
  ASSERT_THAT(report.hours(), SizeIs(2));
  EXPECT_EQ(report.hours(1).start().seconds(), kStart + hour);
  EXPECT_EQ(report.hours(0).started(), 1);
  EXPECT_EQ(report.hours(0).seconds(), 1800);
  EXPECT_THAT(report.hours(0).cost(), DoubleNear(1.8, 1e-9));
  EXPECT_EQ(report.hours(0).preemptions(), 0);
  EXPECT_EQ(report.hours(1).started(), 1);
  EXPECT_EQ(report.hours(1).preemptions(), 1);
  EXPECT_THAT(report.hours(1).wasted_cost(), DoubleNear(0.6, 1e-9));
  EXPECT_EQ(report.hours(1).seconds(), 600 + 300);
  EXPECT_THAT(report.hours(1).cost(), DoubleNear(0.6 + 0.3, 1e-9));
  EXPECT_EQ(report.hours(1).spot_seconds(), 900);
}

TEST_F(ChartReadsTest, CapacityIsOfTheNamespaceThatWasAskedFor) {
  stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  v1::Attempt open = MakeClosedAttempt(1, 1);
  open.set_state(v1::ATTEMPT_RUNNING);
  open.clear_end_time();
  PutAttempt(open);
  const auto running = [&](const std::string& ns) {
    v1::CapacityRequest request;
    request.set_namespace_(ns);
    return stored_.client().Get<v1::CapacityReport>("GetCapacity", request)->running();
  };
  EXPECT_EQ(running("default"), 1);
  EXPECT_EQ(running(""), 1);
  EXPECT_EQ(running("other"), 0);
  v1::CapacityRequest request;
  request.set_hours(-1);
  EXPECT_THAT(Message(stored_.client().Get<v1::CapacityReport>("GetCapacity", request).status()),
              HasSubstr("hours must be from 1 to 744"));
}

}  // namespace
}  // namespace shirabe::client
