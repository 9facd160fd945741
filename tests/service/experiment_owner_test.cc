// What a server makes of experiments that it cannot take over.
#include "service/experiment_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/local_client.h"
#include "experiment/experiment_controller.h"
#include "experiment/spec/parse_spec.h"
#include "tests/service/http_fixture.h"
#include "tests/support/eventually.h"

namespace shirabe::service {
namespace {

using ::testing::HasSubstr;

// Answers as a test says, and owns nothing.
class RefusingController : public experiment::Controller {
 public:
  void Answer(const Status& status) {
    const MutexLock lock(mutex_);
    answer_ = status;
  }
  Status Own(const ExperimentKey&) override {
    const MutexLock lock(mutex_);
    ++calls_;
    return answer_;
  }
  int calls() {
    const MutexLock lock(mutex_);
    return calls_;
  }
  Status Await(const ExperimentKey&, absl::Duration) override { return absl::OkStatus(); }
  void Suspend(const ExperimentKey&, bool) override {}
  void NotifyIntent(const ExperimentKey&) override {}
  StatusOr<experiment::ReportReply> Tell(const experiment::Report&, absl::Duration) override {
    return absl::UnimplementedError("");
  }
  trial::Executor& executor() override { std::abort(); }
  void ReleaseOwnership(const ExperimentKey&) override {}
  bool Owns(const ExperimentKey&) override { return false; }
  std::vector<ExperimentKey> Finished() override { return {}; }
  std::string LastError(const ExperimentKey&) override { return ""; }
  std::string StoreError() override { return ""; }

 private:
  Mutex mutex_;
  Status answer_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ExperimentOwnerTest : public testing::Test {
 protected:
  ExperimentOwnerTest() {
    client_ = client::LocalClient::Open({.place = {.home = testing::TempDir(), .db = "memory:"},
                                         .read_only = false,
                                         .clock = RealClock()})
                  .value();
    const auto parsed = experiment::ParseExperiments(AskedSpec("one", 3));
    CHECK(client_->Submit(parsed[0].experiment, {}).ok());
  }

  std::unique_ptr<client::LocalClient> client_;
  RefusingController controller_;
};

// For an alert: it runs nothing, though it can read all there is.
TEST_F(ExperimentOwnerTest, WhereLeasesCannotBeWrittenItIsNotReady) {
  controller_.Answer(absl::PermissionDeniedError("database x: permission denied for table lease"));
  const ExperimentOwner owner(client_.get(), &controller_, RealClock());
  EXPECT_TRUE(Eventually([&] { return !owner.LastError().empty(); }));
  EXPECT_THAT(owner.LastError(), HasSubstr("permission denied for table lease"));
  controller_.Answer(absl::OkStatus());
  EXPECT_TRUE(Eventually([&] { return owner.LastError().empty(); }));
}

// Every lease looks expired then: who comes first would take trials away from machines that run
// them.
TEST_F(ExperimentOwnerTest, AfterAnOutageOfTheStoreOwnersMayRenewFirst) {
  controller_.Answer(absl::AlreadyExistsError("owned by another"));
  ManualClock clock;
  const ExperimentOwner owner(client_.get(), &controller_, &clock);
  ASSERT_TRUE(Eventually([&] { return controller_.calls() == 1; }));
  clock.Advance(absl::Seconds(3));
  ASSERT_TRUE(Eventually([&] { return controller_.calls() == 2; }));
  clock.Advance(absl::Seconds(30));  // in which nothing was heard
  Pause(absl::Milliseconds(600));    // some looks
  EXPECT_EQ(controller_.calls(), 2);
  EXPECT_TRUE(Eventually([&] {
    clock.Advance(absl::Seconds(1));
    Pause(absl::Milliseconds(300));
    return controller_.calls() > 2;
  }));
}

TEST_F(ExperimentOwnerTest, ThatAnotherOwnsItIsNoError) {
  controller_.Answer(absl::AlreadyExistsError("owned by another"));
  const ExperimentOwner owner(client_.get(), &controller_, RealClock());
  EXPECT_TRUE(Eventually([&] { return owner.Ready(); }));
  EXPECT_EQ(owner.LastError(), "");
}

}  // namespace
}  // namespace shirabe::service
