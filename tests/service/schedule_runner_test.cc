// The thread that starts what schedules have due, by a clock set by hand: new schedules and changed
// ones are seen, and of two servers on one store one makes each start.
#include "service/periodic_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "db/store.h"
#include "schedule/parse_schedule.h"
#include "tests/support/small_schedule.h"

namespace shirabe::service {
namespace {

class ScheduleRunnerTest : public testing::Test {
 protected:
  void Put(const SmallSchedule& wanted) {
    v1::SubmitScheduleRequest request;
    *request.mutable_schedule() = schedule::ParseSchedules(ScheduleYaml(wanted)).at(0).schedule;
    ASSERT_TRUE(records_.Submit(request).ok());
  }
  size_t Started() { return store_->ListExperiments("").value().size(); }
  bool AwaitStarted(size_t count) {
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
    while (Started() < count && RealClock()->Monotonic() < deadline) Pause(absl::Milliseconds(20));
    return Started() == count;
  }

  ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  std::unique_ptr<db::Store> store_ = db::Open("memory:").value();
  schedule::ScheduleRecords records_{{.store = store_.get(), .clock = &clock_}};
};

TEST_F(ScheduleRunnerTest, TwoServersStartEachOnce) {
  const ScheduleRunner one(&records_, &clock_);
  const ScheduleRunner other(&records_, &clock_);
  Put({.name = "hourly", .schedule = "0 * * * *"});
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(AwaitStarted(1));
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(AwaitStarted(2));
  Put({.name = "hourly", .schedule = "30 * * * *"});
  clock_.Advance(absl::Minutes(59));
  ASSERT_TRUE(AwaitStarted(3));
  const auto hourly = records_.Get({"default", "hourly"});
  ASSERT_TRUE(hourly.ok()) << hourly.status();
  EXPECT_EQ(hourly->status().starts(), 3);
}

}  // namespace
}  // namespace shirabe::service
