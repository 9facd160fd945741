// What db/store.h promises of leases, and of threads that write together.
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_P(StoreContract, OneHolderAtATime) {
  EXPECT_TRUE(absl::IsNotFound(Acquire("a").status()));
  Create();
  EXPECT_EQ(store_->GetLease(kMnist)->epoch(), 0);
  const auto mine = Acquire("a");
  ASSERT_TRUE(mine.ok()) << mine.status();
  EXPECT_EQ(mine->epoch(), 1);
  EXPECT_EQ(mine->holder(), "a");
  EXPECT_EQ(ExperimentKeyOf(*mine), kMnist);
  EXPECT_EQ(FromProto(mine->expiry()), kNow + absl::Seconds(10));
  EXPECT_EQ(store_->GetLease(kMnist)->SerializeAsString(), mine->SerializeAsString());

  const auto theirs = Acquire("b", kNow + absl::Seconds(9));
  EXPECT_TRUE(absl::IsAlreadyExists(theirs.status())) << theirs.status();
  EXPECT_THAT(Message(theirs.status()), HasSubstr("\"a\""));
  const auto renewed = Acquire("a", kNow + absl::Seconds(9));
  EXPECT_EQ(renewed->epoch(), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(Acquire("b", kNow + absl::Seconds(18)).status()));
  EXPECT_EQ(Acquire("b", kNow + absl::Seconds(19))->epoch(), 2) << "it has expired";
  EXPECT_TRUE(absl::IsAlreadyExists(Acquire("a", kNow + absl::Seconds(20)).status()));
}

TEST_P(StoreContract, TakesOverFromTheDead) {
  Create();
  ASSERT_EQ(Acquire("a")->epoch(), 1);
  LeaseRequest request{
      .experiment = kMnist, .holder = "b", .now = kNow, .ttl = absl::Seconds(9), .dead_epoch = 0};
  EXPECT_TRUE(absl::IsAlreadyExists(store_->AcquireLease(request).status()));
  request.dead_epoch = 1;
  EXPECT_EQ(store_->AcquireLease(request)->epoch(), 2);
  // Two find the same holder dead: only the first takes over.
  request.holder = "c";
  EXPECT_TRUE(absl::IsAlreadyExists(store_->AcquireLease(request).status()));
}

TEST_P(StoreContract, OnlyTheHolderWrites) {
  const int64_t revision = CreateWithTrial();
  ASSERT_TRUE(Acquire("a").ok());
  ASSERT_EQ(Acquire("b", kNow + absl::Minutes(1))->epoch(), 2);
  Batch put = For(), trial = For(), attempt = For(), checkpoint = For(), row = For();
  Batch supersede = For(), done = For(), deletion = For();
  put.put = {Experiment(kMnist), revision};
  trial.trials = {{Trial(2), 0}};
  attempt.attempts = {{Attempt(1, 1), 0}};
  checkpoint.checkpoints = {{Checkpoint(1, 1, 1), 0}};
  row.observations = {Row(1, "loss", 1)};
  supersede.supersede = {{.trial = 1, .attempt = 1, .past_step = 0}};
  done.intents_done = {1};
  deletion.delete_experiment = true;
  for (Batch* batch : {&put, &trial, &attempt, &checkpoint, &row, &supersede, &done, &deletion}) {
    for (const std::optional<int64_t> epoch : {std::optional<int64_t>(), {1}, {3}}) {
      batch->epoch = epoch;
      const Status status = Refusal(*batch);
      EXPECT_TRUE(IsLeaseLost(status)) << status;
      EXPECT_THAT(Message(status), HasSubstr("\"b\""));
    }
    batch->epoch = 2;
    MustCommit(*batch);
  }
}

TEST_P(StoreContract, AnyoneMayAskAndReport) {
  Create();
  ASSERT_TRUE(Acquire("a").ok());
  Batch batch = For();
  batch.intents = {Intent(v1::Intent::STOP)};
  batch.events = {Event("StopRequested")};
  MustCommit(batch);
}

TEST_P(StoreContract, AnEpochThatNeverWasIsRefused) {
  Create();
  Batch batch = For();
  batch.epoch = 1;
  batch.trials = {{Trial(1), 0}};
  EXPECT_TRUE(IsLeaseLost(Refusal(batch)));
}

TEST_P(StoreContract, ReleasesAtOnceAndRemembersTheEpoch) {
  Create();
  ASSERT_EQ(Acquire("a")->epoch(), 1);
  EXPECT_TRUE(store_->ReleaseLease({kMnist, 7}).ok()) << "not ours: nothing to do";
  EXPECT_EQ(store_->GetLease(kMnist)->holder(), "a");
  EXPECT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  EXPECT_EQ(store_->GetLease(kMnist)->holder(), "");
  EXPECT_EQ(store_->GetLease(kMnist)->epoch(), 1);
  EXPECT_EQ(Acquire("b")->epoch(), 2);
  EXPECT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  EXPECT_EQ(store_->GetLease(kMnist)->holder(), "b");
  EXPECT_TRUE(store_->ReleaseLease({{"no", "such"}, 1}).ok());
}

TEST_P(StoreContract, DeletionFencesTheFormerHolder) {
  Create();
  ASSERT_EQ(Acquire("a")->epoch(), 1);
  Batch batch = For();
  batch.epoch = 1;
  batch.delete_experiment = true;
  MustCommit(batch);
  EXPECT_TRUE(absl::IsNotFound(store_->GetLease(kMnist).status()));

  CreateWithTrial();  // creating needs no lease, with trials or without
  batch = For();
  batch.epoch = 1;
  batch.trials = {{Trial(2), 0}};
  const Status late = Refusal(batch);
  EXPECT_TRUE(IsLeaseLost(late)) << late;
  EXPECT_THAT(Message(late), HasSubstr("nobody"));
  const auto lease = Acquire("b");
  EXPECT_GT(lease->epoch(), 1);
  batch.epoch = lease->epoch();
  MustCommit(batch);
}

TEST_P(StoreContract, ConcurrentCommitsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kIncrements = 25;
  CreateWithTrial();
  std::mutex mutex;
  std::map<int64_t, int> acknowledged;  // revision to thread
  const auto increment = [&](int thread) {
    for (int done = 0; done < kIncrements;) {
      const auto read = store_->GetTrial({kMnist, 1});
      ASSERT_TRUE(read.ok()) << read.status();
      Batch batch = For();
      batch.trials = {{read->record, read->revision}};
      batch.trials[0].record.set_last_step(read->record.last_step() + 1);
      batch.observations = {Row(read->record.last_step(), "loss", thread)};
      const auto revision = store_->Commit(batch);
      if (absl::IsAborted(revision.status())) continue;
      ASSERT_TRUE(revision.ok()) << revision.status();
      ++done;
      std::lock_guard lock(mutex);
      EXPECT_TRUE(acknowledged.emplace(*revision, thread).second) << "a revision given twice";
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(increment, i);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(store_->GetTrial({kMnist, 1})->record.last_step(), kThreads * kIncrements);
  EXPECT_THAT(acknowledged, SizeIs(kThreads * kIncrements));
  EXPECT_EQ(acknowledged.rbegin()->first, *store_->Revision());
  const auto rows = Observations();
  ASSERT_THAT(rows, SizeIs(kThreads * kIncrements));
  auto next = acknowledged.begin();
  for (const StoredObservation& row : rows) EXPECT_EQ(row.value, (next++)->second);
}

TEST_P(StoreContract, ReadersSeeWholeCommitsWhileOthersWrite) {
  const int64_t created = CreateWithTrial();
  std::thread writer([&, revision = created]() mutable {
    for (int i = 1; i <= 100; ++i) {
      Batch batch = For();
      batch.trials = {{Trial(1), revision}, {Trial(i + 1), 0}};
      batch.trials[0].record.set_last_step(i);
      revision = MustCommit(batch);
    }
  });
  int64_t after = 0;
  std::set<int64_t> trials;
  while (trials.size() < 101) {
    const auto list = *store_->ListTrials({.experiment = kMnist});
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(list[0].record.last_step() + 1, static_cast<int64_t>(list.size()));
    for (const Change& change : Must(store_->Changes(after, 10))) {
      EXPECT_GE(change.revision, after);
      after = change.revision;
      if (change.kind == Change::Kind::kTrial) trials.insert(change.trial);
    }
  }
  writer.join();
}

}  // namespace
}  // namespace shirabe::db
