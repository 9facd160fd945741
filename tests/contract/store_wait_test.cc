// What db/store.h promises to those who wait for a change, and to a second store of one database.
#include <atomic>
#include <thread>

#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::SizeIs;

constexpr absl::Duration kLong = absl::Seconds(30);

TEST_P(StoreContract, DoesNotWaitForWhatIsThere) {
  const int64_t revision = Create();
  EXPECT_EQ(*store_->AwaitChange(0, kLong), revision);
  EXPECT_EQ(*store_->AwaitChange(revision, absl::ZeroDuration()), revision);
  EXPECT_EQ(*store_->AwaitChange(revision, absl::Milliseconds(20)), revision);
  EXPECT_EQ(*store_->AwaitChange(revision + 5, absl::Milliseconds(20)), revision);
}

TEST_P(StoreContract, WakesAllWhoWait) {
  const int64_t before = Create();
  std::atomic<int> woken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto revision = store_->AwaitChange(before, kLong);
      woken += revision.ok() && *revision > before ? 1 : 0;
    });
  }
  Batch batch = For();
  batch.events = {Event("Tick")};
  const absl::Duration began = RealClock()->Monotonic();
  MustCommit(batch);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, 8);
  EXPECT_LT(RealClock()->Monotonic() - began, kLong / 2);
}

TEST_P(StoreContract, AProcessThatEndsIsNotHeldUpByThoseWhoWait) {
  const int64_t seen = Create();
  const absl::Duration began = RealClock()->Monotonic();
  std::thread waits([&] { EXPECT_EQ(*store_->AwaitChange(seen, kLong), seen); });
  Pause(absl::Milliseconds(20));  // it waits by now, or else what is below is all there is to see
  store_->EndWaits();
  waits.join();
  EXPECT_EQ(*store_->AwaitChange(seen, kLong), seen);
  EXPECT_LT(RealClock()->Monotonic() - began, kLong / 2);
}

TEST_P(StoreContract, WakesForWhatAnotherProcessCommits) {
  if (!CanShare()) GTEST_SKIP() << "memory: is of one process";
  const auto other = OpenAgain();
  int64_t seen = Create();
  EXPECT_EQ(*other->AwaitChange(-1, absl::ZeroDuration()), seen) << "of a process that begins";
  EXPECT_EQ(*other->AwaitChange(0, kLong), seen);
  std::thread writer([&] {
    for (int i = 0; i < 20; ++i) {
      Batch batch = For();
      batch.intents = {Intent(v1::Intent::PAUSE)};
      MustCommit(batch);
    }
  });
  const int64_t last = seen + 20;
  while (seen < last) {
    const auto revision = other->AwaitChange(seen, kLong);
    ASSERT_TRUE(revision.ok()) << revision.status();
    ASSERT_GT(*revision, seen);
    seen = *revision;
    EXPECT_FALSE(other->Changes(seen - 1, -1)->empty()) << "what woke us cannot be read yet";
  }
  writer.join();
}

TEST_P(StoreContract, TwoStoresOfOneDatabaseShareEverything) {
  if (!CanShare()) GTEST_SKIP() << "memory: is of one process";
  const auto other = OpenAgain();
  const int64_t created = CreateWithTrial();
  ASSERT_EQ(Acquire("a")->epoch(), 1);
  LeaseRequest request{.experiment = kMnist, .holder = "b", .now = kNow, .ttl = absl::Seconds(10)};
  EXPECT_TRUE(absl::IsAlreadyExists(other->AcquireLease(request).status()));
  request.now = kNow + absl::Seconds(10);
  EXPECT_EQ(other->AcquireLease(request)->epoch(), 2);

  // The former holder does not know yet, and is refused all the same (F4).
  Batch late = For();
  late.epoch = 1;
  late.trials = {{Trial(1, v1::TRIAL_FAILED), created}};
  late.observations = {Row(1, "loss", 7)};
  EXPECT_TRUE(IsLeaseLost(Refusal(late)));
  late.epoch = 2;
  EXPECT_EQ(*other->Commit(late), created + 1) << "revisions are the database's";
  EXPECT_TRUE(absl::IsAborted(Refusal(late))) << "it has moved on";
  EXPECT_THAT(Observations(), SizeIs(1));
  EXPECT_EQ(store_->GetTrial({kMnist, 1})->record.phase(), v1::TRIAL_FAILED);
}

TEST_P(StoreContract, ReadOnlyReadsAndRefusesWrites) {
  if (!CanShare()) GTEST_SKIP() << "memory: is of one process";
  Create();
  const auto reader = OpenAgain(true);
  EXPECT_TRUE(reader->GetExperiment(kMnist).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(reader->Commit({.experiment = kMnist}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(reader->ReleaseLease({kMnist, 1})));
  EXPECT_EQ(*reader->AwaitChange(0, kLong), 1);
}

// What waits together is written together; each gets its own answer all the same.
TEST_P(StoreContract, CommitsAtOnceSucceedOrFailAlone) {
  CreateWithTrial();
  std::atomic<int> created = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int64_t number = 2; number < 12; ++number) {
        Batch batch = For();
        batch.trials = {{Trial(number), 0}};
        batch.observations = {Row(number, absl::StrCat("metric", i), i), Row(number, "loss", i)};
        batch.observations[0].trial = number;
        const Status status = store_->Commit(batch).status();
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        status.ok() ? ++created : ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 10);
  EXPECT_EQ(refused, 70);
  EXPECT_THAT(Numbers({.experiment = kMnist}), SizeIs(11));
  EXPECT_THAT(Observations("loss"), SizeIs(10));
}

// One name goes through many lives, perhaps within one transaction of the store.
TEST_P(StoreContract, CreatesAndDeletesAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 10; ++round) {
        Batch batch = For();
        if (i % 2 == 0) {
          batch.put = {Experiment(kMnist), 0};
          batch.trials = {{Trial(1), 0}};
          batch.observations = {Row(round, "loss", 1)};
        } else {
          batch.delete_experiment = true;
        }
        const Status status = store_->Commit(batch).status();
        EXPECT_TRUE(status.ok() || absl::IsAborted(status) || absl::IsNotFound(status)) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool exists = store_->GetExperiment(kMnist).ok();
  EXPECT_EQ(Observations("", true).size(), exists ? 1 : 0);
  EXPECT_EQ(Numbers({.experiment = kMnist}).size(), exists ? 1 : 0);
}

}  // namespace
}  // namespace shirabe::db
