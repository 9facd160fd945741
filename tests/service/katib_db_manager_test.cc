// Katib's DBManager and EarlyStopping services, over observations made up here.
#include "service/katib/katib_db_manager.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "service/katib/katib_early_stopping.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "tests/service/katib_testing.h"

namespace shirabe::service {
namespace {

using ::testing::HasSubstr;

struct Kept {
  std::map<std::string, std::vector<KatibObservation>> rows;  // by trial
  std::vector<KatibReport> reports;
  std::vector<std::string> deleted, stopped;
};

class FakeObservations : public KatibObservationStore {
 public:
  explicit FakeObservations(Kept& kept) : kept_(kept) {}
  Status Report(const KatibReport& report) override {
    kept_.reports.push_back(report);
    return absl::OkStatus();
  }
  StatusOr<std::vector<KatibObservation>> Read(const std::string& trial,
                                               const std::string& metric) override {
    if (!kept_.rows.contains(trial)) return absl::NotFoundError("there is no trial " + trial);
    std::vector<KatibObservation> rows;
    for (const KatibObservation& row : kept_.rows[trial]) {
      if (metric.empty() || row.metric == metric) rows.push_back(row);
    }
    return rows;
  }
  Status Delete(const std::string& trial) override {
    kept_.deleted.push_back(trial);
    return absl::OkStatus();
  }
  Status SetEarlyStopped(const std::string& trial) override {
    kept_.stopped.push_back(trial);
    return absl::OkStatus();
  }

 private:
  Kept& kept_;
};

class KatibTest : public ::testing::Test {
 protected:
  KatibAccess Access() {
    return [this](const grpc::ServerContext&,
                  const std::string&) -> StatusOr<std::unique_ptr<KatibObservationStore>> {
      if (refused_) return absl::UnauthenticatedError("a token is required");
      return std::make_unique<FakeObservations>(kept_);
    };
  }

  Kept kept_;
  bool refused_ = false;
  ManualClock clock_;
};

class KatibDbManagerTest : public KatibTest {
 protected:
  grpc::Status Report(const katib::ReportObservationLogRequest& request) {
    grpc::ClientContext context;
    katib::ReportObservationLogReply reply;
    return stub_->ReportObservationLog(&context, request, &reply);
  }
  std::vector<std::string> Get(const katib::GetObservationLogRequest& request) {
    grpc::ClientContext context;
    katib::GetObservationLogReply reply;
    status_ = stub_->GetObservationLog(&context, request, &reply);
    std::vector<std::string> lines;
    for (const auto& log : reply.observation_log().metric_logs()) {
      lines.push_back(log.time_stamp() + " " + log.metric().name() + "=" + log.metric().value());
    }
    return lines;
  }
  static void Add(katib::ReportObservationLogRequest& request, const std::string& value,
                  const std::string& time) {
    auto& log = *request.mutable_observation_log()->add_metric_logs();
    log.set_time_stamp(time);
    log.mutable_metric()->set_name("loss");
    log.mutable_metric()->set_value(value);
  }

  InProcess server_{MakeKatibDbManager(Access(), &clock_)};
  std::unique_ptr<katib::DBManager::Stub> stub_ = katib::DBManager::NewStub(server_.channel());
  grpc::Status status_;
};

TEST_F(KatibDbManagerTest, TakesWhatKatibsPushersSend) {
  katib::ReportObservationLogRequest request;
  request.set_trial_name("exp-7");
  Add(request, "0.5", "2026-11-21T08:30:00.25+09:00");
  Add(request, "NaN", "");
  ASSERT_TRUE(Report(request).ok());
  ASSERT_EQ(kept_.reports.size(), 1u);
  const KatibReport& report = kept_.reports[0];
  EXPECT_EQ(report.trial, "exp-7");
  EXPECT_EQ(report.attempt, 0);
  EXPECT_EQ(report.rows[0].value, 0.5);
  EXPECT_EQ(absl::ToUnixMillis(report.rows[0].time), 1795217400250);
  EXPECT_FALSE(report.rows[0].step.has_value());
  EXPECT_TRUE(std::isnan(report.rows[1].value));
  EXPECT_EQ(report.rows[1].time, clock_.Now());
}

// As Katib's collectors report lines without a time, and lines of the same second.
TEST_F(KatibDbManagerTest, ValuesAtTheSameTimeAreSeveralInTheirOrder) {
  katib::ReportObservationLogRequest request;
  request.set_trial_name("exp-7");
  for (const char* time : {"0001-01-01T00:00:00Z", "", "2026-11-21T08:30:00Z"}) {
    Add(request, "0.5", time);
    Add(request, "0.75", time);
  }
  ASSERT_TRUE(Report(request).ok());
  ASSERT_TRUE(Report(request).ok());  // again, as one whose answer was lost
  const auto& rows = kept_.reports[0].rows;
  ASSERT_EQ(rows.size(), 6u);
  std::set<int64_t> times;
  for (size_t i = 0; i < rows.size(); ++i) {
    times.insert(absl::ToUnixMicros(rows[i].time));
    EXPECT_EQ(rows[i].value, i % 2 == 0 ? 0.5 : 0.75);
    EXPECT_EQ(rows[i].time, kept_.reports[1].rows[i].time);
    if (i % 2 == 1) {
      EXPECT_GT(rows[i].time, rows[i - 1].time);
    }
  }
  EXPECT_EQ(times.size(), 6u);
}

TEST_F(KatibDbManagerTest, OursAddAStepAnAttemptAndItsToken) {
  katib::ReportObservationLogRequest request;
  request.set_trial_name("lab/exp-7");
  request.set_attempt(2);
  request.set_token("secret");
  Add(request, "0.5", "");
  request.mutable_observation_log()->mutable_metric_logs(0)->set_step(120);
  ASSERT_TRUE(Report(request).ok());
  EXPECT_EQ(kept_.reports[0].attempt, 2);
  EXPECT_EQ(kept_.reports[0].token, "secret");
  EXPECT_EQ(kept_.reports[0].rows[0].step, 120);
}

TEST_F(KatibDbManagerTest, BadReportsNameTheFieldAndKeepNothing) {
  const auto refused = [this](katib::ReportObservationLogRequest request, const std::string& why) {
    const grpc::Status status = Report(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(why));
  };
  katib::ReportObservationLogRequest request;
  refused(request, "trial_name is required");
  request.set_trial_name("exp-7");
  Add(request, "0.5", "");
  Add(request, "fast", "");
  refused(request, "metric_logs[1].metric.value of loss is \"fast\", which is not a number");
  request.mutable_observation_log()->mutable_metric_logs(1)->mutable_metric()->set_value("1");
  request.mutable_observation_log()->mutable_metric_logs(1)->set_time_stamp("noon");
  refused(request, "metric_logs[1].time_stamp \"noon\" is not a time");
  request.mutable_observation_log()->mutable_metric_logs(1)->clear_time_stamp();
  request.mutable_observation_log()->mutable_metric_logs(1)->set_step(-1);
  refused(request, "step is -1; it must be 0 or more");
  request.mutable_observation_log()->mutable_metric_logs(1)->mutable_metric()->clear_name();
  refused(request, "metric_logs[1].metric.name is required");
  EXPECT_TRUE(kept_.reports.empty());
}

TEST_F(KatibDbManagerTest, WhoMayNotIsRefused) {
  refused_ = true;
  katib::ReportObservationLogRequest request;
  request.set_trial_name("exp-7");
  Add(request, "0.5", "");
  EXPECT_EQ(Report(request).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(KatibDbManagerTest, ReadsInTheOrderOfTimeAndWithinATime) {
  const absl::Time start = absl::FromUnixSeconds(1'700'000'000);
  kept_.rows["exp-7"] = {{.metric = "loss", .value = 0.25, .time = start + absl::Seconds(2)},
                         {.metric = "acc", .value = 1, .time = start + absl::Seconds(1)},
                         {.metric = "loss", .value = 1e-5, .time = start}};
  katib::GetObservationLogRequest request;
  request.set_trial_name("exp-7");
  EXPECT_THAT(Get(request), ::testing::ElementsAre("2023-11-14T22:13:20Z loss=1e-05",
                                                   "2023-11-14T22:13:21Z acc=1",
                                                   "2023-11-14T22:13:22Z loss=0.25"));
  request.set_metric_name("loss");
  request.set_start_time("2023-11-14T22:13:21Z");
  EXPECT_EQ(Get(request).size(), 1u);
  request.set_end_time("2023-11-14T22:13:21Z");
  EXPECT_TRUE(Get(request).empty());
  request.set_end_time("tomorrow");
  Get(request);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_trial_name("exp-8");
  request.clear_end_time();
  Get(request);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(KatibDbManagerTest, Deletes) {
  grpc::ClientContext context;
  katib::DeleteObservationLogRequest request;
  katib::DeleteObservationLogReply reply;
  request.set_trial_name("exp-7");
  EXPECT_TRUE(stub_->DeleteObservationLog(&context, request, &reply).ok());
  EXPECT_EQ(kept_.deleted, (std::vector<std::string>{"exp-7"}));
}

// ---- early stopping ----------------------------------------------------------------------------

class KatibEarlyStoppingTest : public KatibTest {
 protected:
  katib::GetEarlyStoppingRulesRequest Request(const std::string& rule, const Settings& settings) {
    katib::GetEarlyStoppingRulesRequest request;
    *request.mutable_experiment() = Bare("random");
    auto& stopping = *request.mutable_experiment()->mutable_spec()->mutable_early_stopping();
    stopping.set_algorithm_name(rule);
    for (const auto& [name, value] : settings) {
      auto& setting = *stopping.add_algorithm_settings();
      setting.set_name(name);
      setting.set_value(value);
    }
    for (const auto& [name, rows] : kept_.rows) {
      katib::Trial& trial = *request.add_trials();
      trial.set_name(name);
      trial.mutable_status()->set_condition(katib::TrialStatus::SUCCEEDED);
    }
    return request;
  }
  // "loss GREATER 0.5 from 4", or why there is none.
  std::string Rules(const katib::GetEarlyStoppingRulesRequest& request) {
    grpc::ClientContext context;
    katib::GetEarlyStoppingRulesReply reply;
    status_ = stub_->GetEarlyStoppingRules(&context, request, &reply);
    std::string rules = status_.error_message();
    for (const auto& rule : reply.early_stopping_rules()) {
      rules += rule.name() + " " + katib::ComparisonType_Name(rule.comparison()) + " " +
               rule.value() + " from " + std::to_string(rule.start_step());
    }
    return rules;
  }
  grpc::Status Validate(const std::string& rule, const Settings& settings) {
    grpc::ClientContext context;
    katib::ValidateEarlyStoppingSettingsRequest request;
    katib::ValidateEarlyStoppingSettingsReply reply;
    *request.mutable_early_stopping() =
        Request(rule, settings).experiment().spec().early_stopping();
    return stub_->ValidateEarlyStoppingSettings(&context, request, &reply);
  }
  void ReportReply(const std::string& trial, const std::vector<double>& values) {
    for (const double value : values) {
      kept_.rows[trial].push_back({.metric = "loss", .value = value});
    }
  }

  InProcess server_{MakeKatibEarlyStopping(Access())};
  std::unique_ptr<katib::EarlyStopping::Stub> stub_ =
      katib::EarlyStopping::NewStub(server_.channel());
  grpc::Status status_;
};

// Katib's program answers with 34.3 here, the mean.
TEST_F(KatibEarlyStoppingTest, MedianstopIsTheMedian) {
  ReportReply("a", {1, 1, 99});
  ReportReply("b", {1, 3});
  EXPECT_EQ(Rules(Request("medianstop", {{"start_step", "2"}})), "");  // too few
  ReportReply("c", {100, 100, 0});
  const auto request = Request("medianstop", {{"start_step", "2"}});
  EXPECT_EQ(Rules(request), "loss GREATER 2 from 2");
  ReportReply("d", {std::nan(""), 0});  // the worst there is, not the end of the median
  EXPECT_EQ(Rules(Request("medianstop", {{"start_step", "2"}})), "loss GREATER 51 from 2");
}

TEST_F(KatibEarlyStoppingTest, MaximisedMetricsStopBelow) {
  for (const char* name : {"a", "b", "c"}) ReportReply(name, {0.5, 0.7});
  auto request = Request("medianstop", {{"start_step", "2"}});
  request.mutable_experiment()->mutable_spec()->mutable_objective()->set_type(katib::MAXIMIZE);
  EXPECT_EQ(Rules(request), "loss LESS 0.6 from 2");
}

TEST_F(KatibEarlyStoppingTest, OnlyTrialsThatSucceededAndReportedCount) {
  for (const char* name : {"a", "b", "c"}) ReportReply(name, {1});
  kept_.rows["silent"];
  auto request = Request("medianstop", {});
  request.mutable_trials(0)->mutable_status()->set_condition(katib::TrialStatus::RUNNING);
  request.add_trials()->set_name("vanished");
  EXPECT_EQ(Rules(request), "");
}

TEST_F(KatibEarlyStoppingTest, PercentileAndThreshold) {
  for (int i = 0; i < 5; ++i) ReportReply(std::string(1, static_cast<char>('a' + i)), {9, 1.0 * i});
  EXPECT_EQ(Rules(Request("percentile", {{"percentile", "50"}})), "loss GREATER 2 from 4");
  EXPECT_EQ(Rules(Request("threshold", {{"upper", "3"}})), "loss GREATER 3 from 1");
  EXPECT_EQ(Rules(Request("threshold", {{"upper", "3"}, {"lower", "0"}})), "loss GREATER 3 from 1");
  EXPECT_EQ(Rules(Request("threshold", {{"lower", "0.1"}})), "loss LESS 0.1 from 1");
}

TEST_F(KatibEarlyStoppingTest, WhatTheWireCannotSayIsSaid) {
  EXPECT_THAT(Rules(Request("patience", {})), HasSubstr("decides again at each report"));
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(KatibEarlyStoppingTest, SettingsOfEveryRuleAreValidated) {
  for (const char* rule :
       {"medianstop", "percentile", "threshold", "patience", "wilcoxon", "asha-stop"}) {
    EXPECT_TRUE(Validate(rule, {}).ok()) << Validate(rule, {}).error_message();
    EXPECT_EQ(Validate(rule, {{"no_such", "1"}}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_THAT(Validate("medianstop", {{"start_step", "0"}}).error_message(),
              HasSubstr("at least 1"));
  EXPECT_THAT(Validate("medianstop", {{"min_trials_required", "-1"}}).error_message(),
              HasSubstr("min_trials_required"));
  EXPECT_THAT(Validate("medianstopp", {}).error_message(), HasSubstr("did you mean"));
}

TEST_F(KatibEarlyStoppingTest, ReadsElsewhereOnlyWhereThatIsAllowed) {
  for (const char* name : {"a", "b", "c"}) ReportReply(name, {4});
  const auto db_service = MakeKatibDbManager(Access(), &clock_);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(db_service.get());
  const auto db = builder.BuildAndStart();
  auto request = Request("medianstop", {});
  request.set_db_manager_address("127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(Rules(request), "loss GREATER 4 from 4");
  request.set_db_manager_address("katib-db-manager.kubeflow:6789");
  EXPECT_THAT(Rules(request), HasSubstr("is not allowed here"));
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(KatibEarlyStoppingTest, ATrialCanBeSaidToHaveStopped) {
  grpc::ClientContext context;
  katib::SetTrialStatusRequest request;
  katib::SetTrialStatusReply reply;
  request.set_trial_name("exp-7");
  EXPECT_TRUE(stub_->SetTrialStatus(&context, request, &reply).ok());
  EXPECT_EQ(kept_.stopped, (std::vector<std::string>{"exp-7"}));
}

}  // namespace
}  // namespace shirabe::service
