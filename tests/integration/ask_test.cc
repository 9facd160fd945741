// Ask and tell over a real database: the callers run the trials, and may die, repeat themselves, or
// tell what nobody asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "client/local_client.h"
#include "client/wire_format.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "tests/support/eventually.h"

namespace shirabe::client {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);
const ExperimentKey kAsked{"default", "asked"};

constexpr char kSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: asked}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 6
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
  shirabe: {askAndTell: true, seed: 3}
)";

class AskTest : public testing::Test {
 protected:
  AskTest() : home_(testing::TempDir() + "ask-" + std::to_string(getpid())) {
    std::filesystem::remove_all(home_);
    std::filesystem::create_directories(home_);
    Open();
    auto parsed = experiment::ParseExperiments(kSpec);
    for (const auto& finding : parsed[0].findings) {
      EXPECT_TRUE(finding.warning) << experiment::FormatFinding(finding, "spec");
    }
    EXPECT_TRUE(client_->Submit(parsed[0].experiment, {}).ok());
  }
  ~AskTest() override {
    client_ = nullptr;
    EXPECT_TRUE(RemoveFolder(home_));
  }

  // As a new process would.
  void Open() {
    client_ = nullptr;
    auto opened = LocalClient::Open({.place = {.home = home_, .db = "sqlite:" + home_ + "/db"},
                                     .read_only = false,
                                     .clock = RealClock()});
    ASSERT_TRUE(opened.ok()) << opened.status();
    client_ = std::move(*opened);
  }

  v1::AskReply Ask(const std::string& caller) {
    const auto asked = client_->Ask(kAsked, caller, kPatience);
    EXPECT_TRUE(asked.ok()) << asked.status();
    return asked.ok() ? *asked : v1::AskReply();
  }

  static experiment::Report End(const v1::AskReply& asked, double loss) {
    return {.trial = {kAsked, asked.trial().number()},
            .attempt = asked.attempt(),
            .token = asked.token(),
            .points = {{.metric = "loss", .value = loss, .implicit_step = true}},
            .end = experiment::Report::End::kCompleted};
  }
  Status Tell(const experiment::Report& report) { return client_->Tell(report).status(); }
  void Cancel() {
    v1::Intent cancel;
    cancel.set_verb(v1::Intent::CANCEL);
    ASSERT_TRUE(client_->Send(kAsked, cancel).ok());
    EXPECT_TRUE(Ask("v").ended());
  }

  const std::string home_;
  std::unique_ptr<LocalClient> client_;
};

TEST_F(AskTest, GivesOutEveryTrialOnceAndEnds) {
  std::set<int64_t> seen;
  for (int i = 0; i < 6; ++i) {
    const v1::AskReply asked = Ask("w" + std::to_string(i % 2));
    ASSERT_TRUE(asked.has_trial()) << asked.reason();
    EXPECT_TRUE(seen.insert(asked.trial().number()).second);
    ASSERT_TRUE(Tell(End(asked, 1.0 / (i + 1))).ok());
  }
  const v1::AskReply none = Ask("w0");
  EXPECT_FALSE(none.has_trial());
  EXPECT_TRUE(none.ended()) << none.reason();
  const auto experiment = client_->GetExperiment(kAsked);
  ASSERT_TRUE(experiment.ok());
  EXPECT_EQ(experiment->status().trials_succeeded(), 6);
  EXPECT_DOUBLE_EQ(experiment->status().current_optimal_trial().objective(), 1.0 / 6);
}

TEST_F(AskTest, GivesACallerWhoAsksAgainTheSameTrial) {
  const v1::AskReply first = Ask("w");
  ASSERT_TRUE(first.has_trial());
  Open();  // the caller's first answer was lost, and so is the process
  const v1::AskReply again = Ask("w");
  ASSERT_TRUE(again.has_trial());
  EXPECT_EQ(again.trial().number(), first.trial().number());
  EXPECT_EQ(again.token(), first.token());
  const v1::AskReply other = Ask("v");
  ASSERT_TRUE(other.has_trial());
  EXPECT_NE(other.trial().number(), first.trial().number());
}

TEST_F(AskTest, CountsWhatIsToldTwiceOnce) {
  const v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  experiment::Report progress = End(asked, 0.5);
  progress.end = experiment::Report::End::kNone;
  progress.points[0].step = 3;
  progress.points[0].implicit_step = false;
  ASSERT_TRUE(Tell(progress).ok());
  ASSERT_TRUE(Tell(progress).ok());
  ASSERT_TRUE(Tell(End(asked, 0.25)).ok());
  ASSERT_TRUE(Tell(End(asked, 0.25)).ok());
  const auto rows = client_->ListObservations({.trial = {kAsked, asked.trial().number()}});
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 2u);
  EXPECT_EQ(Tell(End(asked, 0.75)).code(), absl::StatusCode::kAlreadyExists);
}

// The end of one trial and the beginning of the next are one commit of the store.
TEST_F(AskTest, ATrialCostsOneCommit) {
  auto controller = client_->MakeController({}, 1);
  ASSERT_TRUE(controller.ok());
  client_->Attach(controller->get());
  v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  EXPECT_EQ(asked.trial().phase(), v1::TRIAL_RUNNING);
  EXPECT_TRUE(client_->store().ListIntents(kAsked)->empty());
  for (int trial = 2; trial <= 6; ++trial) {
    const int64_t before = *client_->Revision();
    experiment::Report report = End(asked, 1.0 / trial);
    report.next_for = "w";
    const auto told = client_->Get<v1::TellReply>("Tell", ToWire(report));
    ASSERT_TRUE(told.ok()) << told.status();
    EXPECT_EQ(*client_->Revision(), before + 1);
    ASSERT_TRUE(told->next().has_trial()) << told->next().reason();
    EXPECT_EQ(told->next().trial().number(), trial);
    // What it was given is what is stored, and what asking again gives.
    const v1::AskReply again = Ask("w");
    EXPECT_EQ(again.token(), told->next().token());
    EXPECT_EQ(again.SerializeAsString(), told->next().SerializeAsString());
    asked = told->next();
  }
  experiment::Report last = End(asked, 0.1);
  last.next_for = "w";
  const auto told = client_->Get<v1::TellReply>("Tell", ToWire(last));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_FALSE(told->next().has_trial());
  EXPECT_TRUE(Ask("w").ended());
  const auto repeated = client_->Get<v1::TellReply>("Tell", ToWire(last));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_TRUE(repeated->next().ended());
  EXPECT_EQ(client_->ListTrials({.experiment = kAsked})->size(), 6u);
  client_->Attach(nullptr);
}

TEST_F(AskTest, WhoReportsWithoutAnEndIsGivenTheTrialThatRuns) {
  auto controller = client_->MakeController({}, 1);
  ASSERT_TRUE(controller.ok());
  client_->Attach(controller->get());
  const v1::AskReply asked = Ask("w");
  experiment::Report report = End(asked, 1);
  report.end = experiment::Report::End::kNone;
  report.next_for = "w";
  const auto told = client_->Get<v1::TellReply>("Tell", ToWire(report));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->next().trial().number(), asked.trial().number());
  // What is refused asks for nothing.
  report = End(asked, 1);
  report.token = "guessed";
  report.next_for = "v";
  EXPECT_EQ(Tell(report).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(client_->ListTrials({.experiment = kAsked})->size(), 1u);
  client_->Attach(nullptr);
}

TEST_F(AskTest, AFailedTrialIsNoSuccess) {
  const v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  experiment::Report report = End(asked, 0);
  report.points.clear();
  report.end = experiment::Report::End::kFailed;
  report.message = "the loss exploded";
  ASSERT_TRUE(Tell(report).ok());
  ASSERT_TRUE(Tell(report).ok());
  const auto trial = client_->GetTrial({kAsked, asked.trial().number()});
  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(trial->phase(), v1::TRIAL_FAILED);
  EXPECT_THAT(trial->message(), HasSubstr("the loss exploded"));
  const v1::AskReply nan = Ask("w");
  ASSERT_TRUE(Tell(End(nan, std::numeric_limits<double>::quiet_NaN())).ok());
  EXPECT_EQ(client_->GetTrial({kAsked, nan.trial().number()})->reason(), "ObjectiveNotFinite");
}

TEST_F(AskTest, RefusesWhatDoesNotBelongThere) {
  const v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  experiment::Report report = End(asked, 1);
  report.points[0].metric = "los";
  EXPECT_EQ(Tell(report).code(), absl::StatusCode::kInvalidArgument);
  report = End(asked, 1);
  report.token = "guessed";
  EXPECT_EQ(Tell(report).code(), absl::StatusCode::kPermissionDenied);
  report = End(asked, 1);
  report.trial.number = 77;
  EXPECT_EQ(Tell(report).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client_->Ask(kAsked, "", kPatience).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_->GetTrial({kAsked, asked.trial().number()})->phase(), v1::TRIAL_RUNNING);
}

TEST_F(AskTest, EightCallersAtOnceGetATrialEachAndNoMoreThanThereAre) {
  auto controller = client_->MakeController({}, 1);
  ASSERT_TRUE(controller.ok());
  client_->Attach(controller->get());
  std::mutex mutex;
  std::multiset<int64_t> told;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 8; ++i) {
      callers.emplace_back([&, i] {
        for (;;) {
          const v1::AskReply asked = Ask("w" + std::to_string(i));
          if (!asked.has_trial()) break;
          EXPECT_TRUE(Tell(End(asked, i)).ok());
          std::lock_guard lock(mutex);
          told.insert(asked.trial().number());
        }
      });
    }
  }
  client_->Attach(nullptr);
  EXPECT_EQ(told, (std::multiset<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(AskTest, ACallerIsToldThatHisTrialWasStopped) {
  const v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  Cancel();
  const auto told = client_->Tell(End(asked, 0.5));
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_FALSE(told->stop.empty());
  EXPECT_TRUE(told->ignored);
  EXPECT_EQ(client_->GetTrial({kAsked, asked.trial().number()})->phase(), v1::TRIAL_KILLED);
  v1::Intent again;
  again.set_verb(v1::Intent::RETRY);
  again.set_trial(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->Send(kAsked, again)));
  EXPECT_TRUE(Ask("v").ended());
  EXPECT_EQ(client_->ListTrials({.experiment = kAsked})->size(), 1u);
}

// Its last value is its result: only another one is told for nothing.
TEST_F(AskTest, OfATrialThatWasStoppedOnlyTheResultThatItHasCounts) {
  const v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  experiment::Report report = End(asked, 0.5);
  report.end = experiment::Report::End::kNone;
  const auto reported = client_->Tell(report);
  ASSERT_TRUE(reported.ok()) << reported.status();
  EXPECT_FALSE(reported->ignored);
  Cancel();
  const auto again = client_->Tell(End(asked, 0.5));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->stop.empty());
  EXPECT_FALSE(again->ignored);
  const auto other = client_->Tell(End(asked, 0.25));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(other->ignored);
  const auto trial = client_->GetTrial({kAsked, asked.trial().number()});
  EXPECT_EQ(trial->phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(trial->objective(), 0.5);
}

TEST_F(AskTest, ARetryIsGivenToTheNextWhoAsks) {
  const v1::AskReply asked = Ask("w");
  ASSERT_TRUE(asked.has_trial());
  ASSERT_TRUE(Tell(End(asked, 1)).ok());
  v1::Intent again;
  again.set_verb(v1::Intent::RETRY);
  again.set_trial(asked.trial().number());
  ASSERT_TRUE(client_->Send(kAsked, again).ok());
  const v1::AskReply second = Ask("v");
  ASSERT_TRUE(second.has_trial());
  EXPECT_EQ(second.trial().point().x(0), asked.trial().point().x(0));
  EXPECT_THAT(second.trial().explanation(), HasSubstr("trial 1"));
}

}  // namespace
}  // namespace shirabe::client
