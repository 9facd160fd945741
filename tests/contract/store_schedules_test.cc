// Schedules in every kind of store: reads, revisions, a start that is written with its mark or not
// at all, and their place in backup and restore. See db/schedules.h.
#include "db/schedules.h"

#include "db/backup_records.h"
#include "db/maintenance.h"
#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::ScheduledExperiment Schedule(const ExperimentKey& key, const std::string& cron = "@daily") {
  v1::ScheduledExperiment schedule;
  schedule.mutable_metadata()->set_namespace_(key.ns);
  schedule.mutable_metadata()->set_name(key.name);
  schedule.mutable_spec()->set_schedule(cron);
  return schedule;
}

class StoreSchedulesContract : public StoreContract {
 protected:
  static constexpr char kCron[] = "5 4 * * *";
  const ExperimentKey key_{"default", "nightly"};

  Schedules& schedules() { return SchedulesOf(*store_); }
  Status Put(const v1::ScheduledExperiment& schedule, int64_t expected) {
    const v1::ObjectMeta& metadata = schedule.metadata();
    return schedules().WriteSchedule(
        {.key = {metadata.namespace_(), metadata.name()}, .expected = expected, .put = schedule});
  }
  std::vector<std::string> Names(const std::string& ns) {
    std::vector<std::string> names;
    const auto rows = schedules().ListSchedules(ns).value();
    for (const auto& row : rows) {
      names.push_back(row.record.metadata().namespace_() + "/" + row.record.metadata().name());
    }
    return names;
  }
  static Batch Creation(const std::string& name) {
    Batch batch;
    batch.experiment = {"default", name};
    batch.put = {Experiment(batch.experiment), 0};
    return batch;
  }
};

TEST_P(StoreSchedulesContract, KeepsThemByNamespaceAndName) {
  EXPECT_TRUE(absl::IsNotFound(schedules().GetSchedule(key_).status()));
  for (const ExperimentKey& key :
       {ExperimentKey{"red", "b"}, ExperimentKey{"default", "z"}, key_}) {
    ASSERT_TRUE(Put(Schedule(key), 0).ok());
  }
  EXPECT_THAT(Names(""), ElementsAre("default/nightly", "default/z", "red/b"));
  EXPECT_THAT(Names("red"), ElementsAre("red/b"));
  EXPECT_THAT(Names("blue"), IsEmpty());
  const auto stored = schedules().GetSchedule(key_);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->record.spec().schedule(), "@daily");
  EXPECT_GT(stored->revision, 0);
}

TEST_P(StoreSchedulesContract, OfTwoWritersOneIsRefused) {
  ASSERT_TRUE(Put(Schedule(key_), 0).ok());
  EXPECT_TRUE(absl::IsAborted(Put(Schedule(key_), 0)));
  const int64_t read = schedules().GetSchedule(key_)->revision;
  ASSERT_TRUE(Put(Schedule(key_, kCron), read).ok());
  EXPECT_TRUE(absl::IsAborted(Put(Schedule(key_), read)));
  EXPECT_TRUE(absl::IsAborted(schedules().WriteSchedule({.key = key_, .expected = read})));
  const auto now = schedules().GetSchedule(key_);
  EXPECT_EQ(now->record.spec().schedule(), kCron);
  EXPECT_GT(now->revision, read);
}

TEST_P(StoreSchedulesContract, OneMadeAgainUnderItsNameIsAnother) {
  ASSERT_TRUE(Put(Schedule(key_), 0).ok());
  const int64_t read = schedules().GetSchedule(key_)->revision;
  ASSERT_TRUE(schedules().WriteSchedule({.key = key_, .expected = read}).ok());
  EXPECT_THAT(Names(""), IsEmpty());
  ASSERT_TRUE(Put(Schedule(key_), 0).ok());
  EXPECT_TRUE(absl::IsAborted(Put(Schedule(key_, kCron), read)));
}

TEST_P(StoreSchedulesContract, AStartIsWrittenWithItsMarkOrNotAtAll) {
  ASSERT_TRUE(Put(Schedule(key_), 0).ok());
  const int64_t read = schedules().GetSchedule(key_)->revision;
  const ScheduleWrite write{
      .key = key_, .expected = read, .put = Schedule(key_, kCron), .start = Creation("nightly-1")};
  ASSERT_TRUE(schedules().WriteSchedule(write).ok());
  EXPECT_TRUE(store_->GetExperiment({"default", "nightly-1"}).ok());
  // Another process that has read the same.
  ScheduleWrite late = write;
  late.start = Creation("nightly-2");
  EXPECT_TRUE(absl::IsAborted(schedules().WriteSchedule(late)));
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment({"default", "nightly-2"}).status()));
  // The experiment is there.
  ScheduleWrite taken = write;
  taken.expected = schedules().GetSchedule(key_)->revision;
  taken.put = Schedule(key_, "@yearly");
  EXPECT_TRUE(absl::IsAborted(schedules().WriteSchedule(taken)));
  EXPECT_EQ(schedules().GetSchedule(key_)->record.spec().schedule(), kCron);
}

TEST_P(StoreSchedulesContract, RefusesWhatContradictsItself) {
  const ScheduleWrite another{.key = {"default", "other"}, .put = Schedule(key_)};
  EXPECT_TRUE(absl::IsInvalidArgument(schedules().WriteSchedule(another)));
  EXPECT_TRUE(absl::IsInvalidArgument(Put(Schedule(key_, "\xff"), 0)));
  const ScheduleWrite unmarked{.key = key_, .start = Creation("nightly-1")};
  EXPECT_TRUE(absl::IsInvalidArgument(schedules().WriteSchedule(unmarked)));
  EXPECT_THAT(Names(""), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment({"default", "nightly-1"}).status()));
}

TEST_P(StoreSchedulesContract, AreInABackupAndComeBack) {
  ASSERT_TRUE(store_->Commit(Creation("first")).ok());
  ASSERT_TRUE(Put(Schedule(key_, kCron), 0).ok());
  ASSERT_TRUE(Put(Schedule({"red", "b"}), 0).ok());
  std::vector<v1::BackupRecord> records;
  auto snapshot = MaintenanceOf(*store_).TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_TRUE(DumpRecords(snapshot->get(), [&](const v1::BackupRecord& record) {
                records.push_back(record);
                return absl::OkStatus();
              }).ok());
  *snapshot = nullptr;
  const int64_t read = schedules().GetSchedule(key_)->revision;
  ASSERT_TRUE(Put(Schedule(key_), read).ok());
  ASSERT_TRUE(Put(Schedule({"red", "later"}), 0).ok());
  const auto load = [&](LoadOptions::Mode mode) {
    size_t next = 0;
    return MaintenanceOf(*store_)
        .Load({.mode = mode},
              PartsOf([&, next](v1::BackupRecord* record) mutable -> StatusOr<bool> {
                if (next == records.size()) return false;
                *record = records[next++];
                return true;
              }))
        .status();
  };
  EXPECT_TRUE(absl::IsAlreadyExists(load(LoadOptions::Mode::kIntoEmpty)));
  EXPECT_TRUE(absl::IsAborted(load(LoadOptions::Mode::kMerge)));
  ASSERT_TRUE(load(LoadOptions::Mode::kReplace).ok());
  EXPECT_THAT(Names(""), ElementsAre("default/nightly", "red/b"));
  EXPECT_EQ(schedules().GetSchedule(key_)->record.spec().schedule(), kCron);
  EXPECT_TRUE(absl::IsAborted(Put(Schedule(key_), read))) << "no revision comes again";
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreSchedulesContract,
                         ::testing::ValuesIn(Registry<StoreInfo>::Get().Names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace shirabe::db
