// Katib's pushers against a real database: they know a trial by its name only, and what they report
// is durable and counted once.
#include <gmock/gmock.h>

#include <filesystem>

#include "client/local_client.h"
#include "experiment/spec/parse_spec.h"
#include "service/katib/katib_db_manager.h"
#include "service/katib/katib_early_stopping.h"
#include "tests/service/katib_testing.h"
#include "tests/support/eventually.h"

namespace shirabe::service {
namespace {

using ::testing::HasSubstr;

constexpr char kKatibPushesSpec[] = R"(apiVersion: kubeflow.org/v1beta1
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

class KatibPushes : public ::testing::Test {
 protected:
  KatibPushes() : home_(testing::TempDir() + "pushes-" + std::to_string(getpid())) {
    std::filesystem::remove_all(home_);
    std::filesystem::create_directories(home_);
    auto opened =
        client::LocalClient::Open({.place = {.home = home_, .db = "sqlite:" + home_ + "/db"},
                                   .read_only = false,
                                   .clock = RealClock()});
    EXPECT_TRUE(opened.ok()) << opened.status();
    client_ = std::move(*opened);
    token_ = Open("default");
    const auto access =
        [this](const grpc::ServerContext&,
               const std::string&) -> StatusOr<std::unique_ptr<KatibObservationStore>> {
      return MakeClientObservations(*client_, "");
    };
    server_ = std::make_unique<InProcess>(MakeKatibDbManager(access, RealClock()));
    stopping_ = std::make_unique<InProcess>(MakeKatibEarlyStopping(access));
    stub_ = katib::DBManager::NewStub(server_->channel());
  }
  ~KatibPushes() override {
    server_ = nullptr;
    stopping_ = nullptr;
    client_ = nullptr;
    EXPECT_TRUE(RemoveFolder(home_));
  }

  // The experiment in this namespace, its first trial running; the token of that.
  std::string Open(const std::string& ns) {
    v1::Experiment experiment = experiment::ParseExperiments(kKatibPushesSpec)[0].experiment;
    experiment.mutable_metadata()->set_namespace_(ns);
    EXPECT_TRUE(client_->Submit(experiment, {}).ok());
    const auto asked = client_->Ask({ns, "asked"}, "worker", absl::Seconds(20));
    EXPECT_TRUE(asked.ok() && asked->has_trial()) << asked.status();
    return asked->token();
  }

  struct Push {
    std::string trial = "asked-1";
    std::vector<std::string> values;
    std::string token = "";
    int first_step = -1;  // < 0: without steps
  };
  grpc::Status Report(const Push& push) {
    katib::ReportObservationLogRequest request;
    request.set_trial_name(push.trial);
    request.set_token(push.token);
    for (size_t i = 0; i < push.values.size(); ++i) {
      auto& log = *request.mutable_observation_log()->add_metric_logs();
      log.set_time_stamp("2026-11-21T08:30:0" + std::to_string(i) + "Z");
      log.mutable_metric()->set_name("loss");
      log.mutable_metric()->set_value(push.values[i]);
      if (push.first_step >= 0) log.set_step(push.first_step + static_cast<int64_t>(i));
    }
    grpc::ClientContext context;
    katib::ReportObservationLogReply reply;
    return stub_->ReportObservationLog(&context, request, &reply);
  }
  std::string Read(const std::string& trial) {
    grpc::ClientContext context;
    katib::GetObservationLogRequest request;
    katib::GetObservationLogReply reply;
    request.set_trial_name(trial);
    const grpc::Status status = stub_->GetObservationLog(&context, request, &reply);
    std::string rows = status.error_message();
    for (const auto& log : reply.observation_log().metric_logs()) {
      rows += std::to_string(log.step()) + ":" + log.metric().value() + " ";
    }
    return rows;
  }

  const std::string home_;
  std::unique_ptr<client::LocalClient> client_;
  std::unique_ptr<InProcess> server_, stopping_;
  std::unique_ptr<katib::DBManager::Stub> stub_;
  std::string token_;
};

TEST_F(KatibPushes, ValuesWithoutStepsGetTheirOrdinals) {
  ASSERT_TRUE(Report({.values = {"0.5", "0.25"}}).ok());
  EXPECT_EQ(Read("asked-1"), "1:0.5 2:0.25 ");
  EXPECT_EQ(Read("default/asked-1"), "1:0.5 2:0.25 ");
  // Katib's pushers send again what they had no answer for.
  ASSERT_TRUE(Report({.values = {"0.5", "0.25"}}).ok());
  EXPECT_EQ(Read("asked-1"), "1:0.5 2:0.25 ");
}

TEST_F(KatibPushes, OursSayStepAndToken) {
  ASSERT_TRUE(Report({.values = {"0.5", "nan"}, .token = token_, .first_step = 100}).ok());
  EXPECT_EQ(Read("asked-1"), "100:0.5 101:NaN ");
  const grpc::Status forged =
      Report({.values = {"0"}, .token = "somebody else's!", .first_step = 102});
  EXPECT_EQ(forged.error_code(), grpc::StatusCode::PERMISSION_DENIED) << forged.error_message();
  EXPECT_EQ(Read("asked-1"), "100:0.5 101:NaN ");
}

TEST_F(KatibPushes, ANameMustBeUnique) {
  Open("lab");
  const grpc::Status status = Report({.values = {"0.5"}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("in several namespaces, default, lab"));
  EXPECT_TRUE(Report({.trial = "lab/asked-1", .values = {"0.5"}}).ok());
  EXPECT_EQ(Read("default/asked-1"), "");
  EXPECT_EQ(Read("lab/asked-1"), "1:0.5 ");
}

TEST_F(KatibPushes, WhatIsNotThereIsSaid) {
  for (const char* name : {"asked-2", "other-1", "nonsense", "lab/asked-1"}) {
    EXPECT_EQ(Report({.trial = name, .values = {"0.5"}}).error_code(), grpc::StatusCode::NOT_FOUND)
        << name;
  }
  EXPECT_EQ(Report({.trial = "../../etc-1", .values = {"0.5"}}).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(KatibPushes, DeleteAndEarlyStopsAreShirabesOwn) {
  const auto remove = [this](const std::string& name) {
    grpc::ClientContext context;
    katib::DeleteObservationLogRequest request;
    katib::DeleteObservationLogReply reply;
    request.set_trial_name(name);
    return stub_->DeleteObservationLog(&context, request, &reply).error_code();
  };
  EXPECT_EQ(remove("asked-1"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(remove("gone-1"), grpc::StatusCode::OK);
  grpc::ClientContext context;
  katib::SetTrialStatusRequest request;
  katib::SetTrialStatusReply reply;
  request.set_trial_name("asked-1");
  const auto stub = katib::EarlyStopping::NewStub(stopping_->channel());
  EXPECT_EQ(stub->SetTrialStatus(&context, request, &reply).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace shirabe::service
