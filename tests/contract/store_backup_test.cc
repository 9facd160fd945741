// What db/maintenance.h promises of every store: a snapshot of one moment, a load that happens or
// does not, rows removed. And that a backup of any store can be loaded into any other.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <thread>

#include "db/backup_records.h"
#include "db/bulk_leases.h"
#include "db/maintenance.h"
#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Mode = LoadOptions::Mode;
using Records = std::vector<v1::BackupRecord>;

const ExperimentKey kOther{"team", "other"};

Records DumpOf(Store& store) {
  Records records;
  const auto snapshot = Must(MaintenanceOf(store).TakeSnapshot());
  const Status status = DumpRecords(snapshot.get(), [&](const v1::BackupRecord& record) {
    records.push_back(record);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return records;
}

// The same whatever ids a store has given, and in whatever order it keeps metrics.
std::vector<std::string> Text(Records records) {
  std::vector<std::string> text;
  for (v1::BackupRecord& record : records) {
    if (record.has_name()) record.mutable_name()->clear_epoch();
    if (record.has_event()) record.mutable_event()->clear_id();
    if (record.has_intent()) record.mutable_intent()->clear_id();
    if (!record.has_observations()) text.push_back(record.SerializeAsString());
  }
  return text;
}

BackupSource Replay(const Records& records) {
  return [&records, next = size_t{0}](v1::BackupRecord* record) mutable -> StatusOr<bool> {
    CHECK(next <= records.size());  // nothing is asked for past the end
    if (next == records.size()) return next++, false;
    *record = records[next++];
    return true;
  };
}

class StoreBackupContract : public StoreContract {
 protected:
  StatusOr<int64_t> LoadInto(Store& store, const Records& records, Mode mode = Mode::kIntoEmpty) {
    return MaintenanceOf(store).Load({.mode = mode, .is_held = is_held_}, PartsOf(Replay(records)));
  }

  // Something of everything: two experiments, one that was deleted, leases, odd values.
  void Fill() {
    CreateWithTrial();
    Create(kOther);
    Create({"default", "deleted"});
    ASSERT_TRUE(store_
                    ->AcquireLease({.experiment = {"default", "deleted"},
                                    .holder = "gone",
                                    .now = kNow,
                                    .ttl = absl::Seconds(10),
                                    .dead_epoch = std::nullopt})
                    .ok());
    Batch deletion{.experiment = {"default", "deleted"}, .epoch = 1};
    deletion.delete_experiment = true;
    MustCommit(deletion);
    Batch batch = For();
    batch.trials = {{Trial(2, v1::TRIAL_SUCCEEDED), 0}, {Trial(3), 0}};
    batch.attempts = {{Attempt(1, 1, v1::ATTEMPT_CLOSED), 0}, {Attempt(1, 2), 0}};
    batch.attempts[1].record.set_token(std::string("\0secret\xff", 8));
    batch.checkpoints = {{Checkpoint(1, 1, 40), 0}, {Checkpoint(1, 1, 80), 0}};
    const double kValues[] = {1.5, -0.0, std::nan(""), HUGE_VAL, 5e-324};
    for (int64_t step = 0; step < 5; ++step) {
      batch.observations.push_back(Row(step, "loss", kValues[step]));
      batch.observations.push_back(Row(step - 2, "\xff odd\0", 1));
    }
    batch.observations[3].implicit_step = true;
    batch.observations[4].superseded = true;
    batch.observations.push_back({.trial = 2, .attempt = 7, .metric = "b", .step = INT64_MAX});
    batch.observations.push_back({.trial = 2, .attempt = 7, .metric = "a", .step = INT64_MIN});
    batch.events = {Event("First"), Event("Second")};
    batch.intents = {Intent(v1::Intent::PAUSE), Intent(v1::Intent::SCALE)};
    MustCommit(batch);
    ASSERT_TRUE(Acquire("owner").ok());
  }

  std::function<bool(const v1::Lease&)> is_held_ = [](const v1::Lease& lease) {
    return FromProto(lease.expiry()) > kNow;
  };
};

void ExpectSameRows(Store& a, Store& b, const TrialKey& trial) {
  const auto left = Must(a.ListObservations({.trial = trial, .include_superseded = true}));
  const auto right = Must(b.ListObservations({.trial = trial, .include_superseded = true}));
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(left[i].attempt, right[i].attempt);
    EXPECT_EQ(left[i].step, right[i].step);
    EXPECT_EQ(left[i].metric, right[i].metric);
    EXPECT_TRUE(SameBits(left[i].value, right[i].value)) << left[i].value << right[i].value;
    EXPECT_EQ(left[i].time, right[i].time);
    EXPECT_EQ(left[i].implicit_step, right[i].implicit_step);
    EXPECT_EQ(left[i].superseded, right[i].superseded);
  }
}

TEST_P(StoreBackupContract, WhatIsLoadedIntoAnyStoreIsWhatThereWas) {
  Fill();
  const Records records = DumpOf(*store_);
  for (const std::string& kind : Registry<StoreInfo>::Get().Names()) {
    if (kind == "postgres" && SharedPostgres() == nullptr) continue;
    const auto address = Registry<StoreInfo>::Get().Find(kind)->scratch(folder_ + "/" + kind);
    ASSERT_TRUE(address);
    const auto target = Must(Open(kind + ":" + *address));
    const StatusOr<int64_t> loaded = LoadInto(*target, records);
    ASSERT_TRUE(loaded.ok()) << kind << loaded.status();
    EXPECT_EQ(*loaded, Must(target->Revision()));
    EXPECT_EQ(Text(DumpOf(*target)), Text(records)) << kind;
    ExpectSameRows(*store_, *target, {kMnist, 1});
    ExpectSameRows(*store_, *target, {kMnist, 2});
    EXPECT_THAT(Must(target->ListExperiments("")), SizeIs(2));
    EXPECT_THAT(Must(target->ListIntents(kMnist)), SizeIs(2));
    // Lists are answered from indexes, which must know the rows, too.
    EXPECT_THAT(Must(target->ListTrials({.experiment = kMnist, .live_only = true})), SizeIs(2));
    EXPECT_THAT(Must(target->ListAttempts({.experiment = kMnist, .open_only = true})), SizeIs(1));
  }
}

TEST_P(StoreBackupContract, ASnapshotStaysAsItWas) {
  Fill();
  const Records before = DumpOf(*store_);
  const int64_t revision = Must(store_->Revision());
  const auto snapshot = Must(MaintenanceOf(*store_).TakeSnapshot());
  EXPECT_EQ(snapshot->revision(), revision);
  Batch batch{.experiment = kMnist, .epoch = 1};
  batch.trials = {{Trial(4), 0}};
  batch.observations = {Row(0, "loss", 99)};
  MustCommit(batch);
  Delete(kOther);
  Records seen;
  ASSERT_TRUE(DumpRecords(snapshot.get(), [&](const v1::BackupRecord& record) {
                seen.push_back(record);
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(Text(seen), Text(before));
}

// Writers add a trial, its attempt and its rows in one commit, and count it: no snapshot may part
// them.
TEST_P(StoreBackupContract, ASnapshotHasWholeCommitsWhileOthersWrite) {
  Create();
  std::thread writer([&] {
    int64_t revision = Must(store_->GetExperiment(kMnist)).revision;
    for (int64_t n = 1; n <= 200; ++n) {
      Batch batch = For();
      batch.put = {Experiment(kMnist), revision};
      batch.put->record.mutable_status()->set_trials(n);
      batch.trials = {{Trial(n), 0}};
      batch.attempts = {{Attempt(n, 1), 0}};
      for (int64_t step = 0; step < 10; ++step) {
        batch.observations.push_back(
            {.trial = n, .attempt = 1, .metric = "loss", .step = step, .time = kNow});
      }
      revision = MustCommit(batch);
    }
  });
  for (int64_t seen = 0; seen < 200;) {
    int64_t trials = 0, attempts = 0, rows = 0;
    for (const v1::BackupRecord& record : DumpOf(*store_)) {
      if (record.has_experiment()) seen = record.experiment().status().trials();
      trials += record.has_trial();
      attempts += record.has_attempt();
      rows += record.observations().value_size();
    }
    ASSERT_EQ(trials, seen);
    ASSERT_EQ(attempts, seen);
    ASSERT_EQ(rows, 10 * seen);
  }
  writer.join();
}

TEST_P(StoreBackupContract, ALoadThatFailsAnywhereChangesNothing) {
  Fill();
  const Records records = DumpOf(*store_);
  ASSERT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  Batch batch{.experiment = kMnist, .epoch = 1};
  batch.events = {Event("Later")};
  MustCommit(batch);
  const auto before = Text(DumpOf(*store_));
  const int64_t revision = Must(store_->Revision());
  const auto feed = Feed(0);
  for (size_t stop = 0; stop <= records.size(); ++stop) {
    const BackupSource replay = Replay(records);
    size_t given = 0;
    const auto cut = [&](v1::BackupRecord* record) -> StatusOr<bool> {
      if (given++ == stop) return absl::DataLossError("cut here");
      return replay(record);
    };
    const auto loaded =
        MaintenanceOf(*store_).Load({.mode = Mode::kReplace, .is_held = is_held_}, PartsOf(cut));
    ASSERT_TRUE(absl::IsDataLoss(loaded.status())) << loaded.status();
    ASSERT_EQ(Text(DumpOf(*store_)), before) << stop;
    ASSERT_EQ(Must(store_->Revision()), revision);
  }
  EXPECT_EQ(Feed(0), feed);
  EXPECT_EQ(Must(store_->GetLease(kMnist)).epoch(), 1);
  EXPECT_TRUE(store_->Commit(batch).ok()) << "the store does not go on";
}

// A process that loads is killed before each record, in the middle of all it has written, and once
// it has been told that all is there.
TEST_P(StoreBackupContract, KilledAnywhereALoadHasHappenedOrNot) {
  if (!CanShare()) GTEST_SKIP() << "what is in memory dies with its process";
  Fill();
  const Records records = DumpOf(*store_);
  ASSERT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  Delete(kOther);
  const auto before = Text(DumpOf(*store_));
  store_.reset();  // the children must inherit no thread and no connection
  for (size_t stop = 0; stop <= records.size() + 1; ++stop) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      auto store = Open(address_);
      const BackupSource replay = Replay(records);
      size_t given = 0;
      const auto deadly = [&](v1::BackupRecord* record) {
        if (given++ == stop) raise(SIGKILL);
        return replay(record);
      };
      const bool loaded =
          store.ok() && MaintenanceOf(**store)
                            .Load({.mode = Mode::kReplace, .is_held = is_held_}, PartsOf(deadly))
                            .ok();
      if (loaded) raise(SIGKILL);
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it failed by itself";
    const auto found = Text(DumpOf(*OpenAgain()));
    ASSERT_EQ(found, stop <= records.size() ? before : Text(records)) << "record " << stop;
  }
}

TEST_P(StoreBackupContract, LoadsIntoAnEmptyStoreOnlyUnlessTold) {
  Fill();
  const Records records = DumpOf(*store_);
  const auto before = Text(records);
  EXPECT_TRUE(absl::IsAlreadyExists(LoadInto(*store_, records).status()));
  const Status taken = LoadInto(*store_, records, Mode::kMerge).status();
  EXPECT_TRUE(absl::IsAborted(taken)) << taken;
  EXPECT_THAT(Message(taken), HasSubstr("mnist"));
  const Status held = LoadInto(*store_, records, Mode::kReplace).status();
  EXPECT_TRUE(absl::IsAlreadyExists(held)) << held;
  EXPECT_THAT(Message(held), HasSubstr("\"owner\""));
  EXPECT_EQ(Text(DumpOf(*store_)), before);
}

TEST_P(StoreBackupContract, MergesBesideWhatIsThere) {
  Fill();
  const Records records = DumpOf(*store_);
  ASSERT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  Batch deletion{.experiment = kMnist, .epoch = 1};
  deletion.delete_experiment = true;
  MustCommit(deletion);
  Delete(kOther);
  Create({"default", "newcomer"});
  Create({"default", "deleted"});  // a name that the backup knows without an experiment
  const int64_t epoch = Must(store_->GetLease({"default", "deleted"})).epoch();
  const auto loaded = LoadInto(*store_, records, Mode::kMerge);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(Must(store_->ListExperiments("")), SizeIs(4));
  EXPECT_THAT(Must(store_->ListTrials({.experiment = kMnist})), SizeIs(3));
  EXPECT_EQ(Must(store_->GetLease({"default", "deleted"})).epoch(), epoch) << "it has an owner";
}

TEST_P(StoreBackupContract, ThoseWhoFollowSeeThatAllWasReplaced) {
  Fill();
  const Records records = DumpOf(*store_);
  ASSERT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  Create({"default", "newcomer"});
  const int64_t before = Must(store_->Revision());
  const int64_t last_event = Must(store_->ListEvents({.experiment = kMnist})).back().id();
  const auto loaded = LoadInto(*store_, records, Mode::kReplace);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Text(DumpOf(*store_)).size(), Text(records).size() + 1) << "the newcomer's name stays";
  int experiments = 0, trials = 0, deleted = 0;
  for (const Change& change : Must(store_->Changes(before, -1))) {
    experiments += change.kind == Change::Kind::kExperiment;
    trials += change.kind == Change::Kind::kTrial;
    deleted += change.kind == Change::Kind::kDeleted && change.experiment.name == "newcomer";
  }
  EXPECT_EQ(experiments, 2);
  EXPECT_EQ(trials, 3);
  EXPECT_EQ(deleted, 1);
  EXPECT_GT(Must(store_->ListEvents({.experiment = kMnist})).front().id(), last_event);
  EXPECT_EQ(Must(store_->AwaitChange(before, absl::ZeroDuration())), *loaded);
}

TEST_P(StoreBackupContract, AFormerOwnerWritesNoMore) {
  Fill();
  const Records records = DumpOf(*store_);
  ASSERT_TRUE(Acquire("second", kNow + absl::Minutes(1)).ok());  // epoch 2
  is_held_ = [](const v1::Lease&) { return false; };             // it is dead
  ASSERT_TRUE(LoadInto(*store_, records, Mode::kReplace).ok());
  const v1::Lease lease = Must(store_->GetLease(kMnist));
  EXPECT_EQ(lease.holder(), "");
  EXPECT_GT(lease.epoch(), 2);
  Batch batch{.experiment = kMnist, .epoch = 2};
  batch.trials = {{Trial(9), 0}};
  EXPECT_TRUE(IsLeaseLost(store_->Commit(batch).status()));
  // Of the name that had no experiment, the next epoch is new as well.
  Create({"default", "deleted"});
  EXPECT_GT(Must(store_->GetLease({"default", "deleted"})).epoch(), 1);
  EXPECT_EQ(Must(store_->GetLease(kOther)).epoch(), 0) << "it never had an owner";
}

TEST_P(StoreBackupContract, RefusesRecordsThatCannotBe) {
  Fill();
  const Records good = DumpOf(*store_);
  const auto target = [&] {
    const auto address =
        Registry<StoreInfo>::Get().Find(GetParam())->scratch(folder_ + "/" + GetParam());
    return Must(Open(GetParam() + ":" + *address));
  }();
  const auto expect_refused = [&](const Records& bad, const std::string& why) {
    const Status status = LoadInto(*target, bad).status();
    EXPECT_FALSE(status.ok()) << why;
    EXPECT_THAT(Message(status), HasSubstr(why));
    EXPECT_THAT(Must(target->ListExperiments("")), IsEmpty()) << why;
    EXPECT_EQ(Must(target->Revision()), 0) << why;
  };
  const auto at = [](Records& records, auto has) {
    return std::find_if(records.begin(), records.end(), has);
  };
  const auto changed = [&](auto has, auto change) {
    Records bad = good;
    change(*at(bad, has));
    return bad;
  };
  using R = v1::BackupRecord;
  const auto name = [](const R& r) { return r.has_name(); };
  const auto experiment = [](const R& r) { return r.has_experiment(); };
  const auto trial = [](const R& r) { return r.has_trial(); };
  const auto rows = [](const R& r) { return r.has_observations(); };
  expect_refused(changed(name, [](R& r) { r.mutable_name()->set_name("../../etc"); }), "../../etc");
  expect_refused(changed(name, [](R& r) { r.mutable_name()->set_namespace_(""); }), "namespace");
  expect_refused(changed(trial, [](R& r) { r.mutable_trial()->set_experiment("other"); }),
                 "belongs to experiment");
  expect_refused(changed(trial, [](R& r) { r.mutable_trial()->set_number(0); }), "numbered from 1");
  expect_refused(changed(rows, [](R& r) { r.mutable_observations()->set_trial(77); }), "mnist-77");
  expect_refused(changed(rows, [](R& r) { r.mutable_observations()->add_step(1); }),
                 "differ in length");
  expect_refused(changed(rows, [](R& r) { r.mutable_observations()->set_metric(0, 9); }),
                 "without a metric");
  Records bad = good;
  bad.erase(at(bad, experiment));
  expect_refused(bad, "without their experiment");
  bad = good;
  bad.erase(at(bad, name));
  bad.erase(bad.begin(), at(bad, experiment));
  expect_refused(bad, "before the first name");
  bad = good;
  bad.insert(at(bad, trial), *at(bad, experiment));
  expect_refused(bad, "twice");
  bad = good;
  bad.insert(at(bad, trial), *at(bad, trial));
  expect_refused(bad, "twice");
}

TEST_P(StoreBackupContract, RemovesRowsOfATrialThatHasEnded) {
  Fill();
  Batch batch{.experiment = kMnist, .epoch = 1};
  for (int64_t step = 0; step < 4; ++step) {
    for (const char* metric : {"loss", "acc"}) {
      batch.observations.push_back({.trial = 2, .attempt = 1, .metric = metric, .step = step});
    }
  }
  MustCommit(batch);
  const auto ended = Must(store_->GetTrial({kMnist, 2}));
  const auto running = Must(store_->GetTrial({kMnist, 1}));
  const int64_t revision = Must(store_->Revision());
  Maintenance& maintenance = MaintenanceOf(*store_);
  const std::vector<ObservationKey> rows = {
      {1, 1, "loss"}, {1, 2, "loss"}, {1, 2, "acc"}, {1, 99, "loss"}, {1, 1, "unknown"}};
  EXPECT_TRUE(absl::IsFailedPrecondition(maintenance.RemoveObservations(
      {.trial = {kMnist, 1}, .revision = running.revision, .rows = {{1, 0, "loss"}}})));
  EXPECT_TRUE(absl::IsAborted(maintenance.RemoveObservations(
      {.trial = {kMnist, 2}, .revision = ended.revision + 1, .rows = rows})));
  EXPECT_TRUE(absl::IsNotFound(
      maintenance.RemoveObservations({.trial = {kMnist, 9}, .revision = 1, .rows = rows})));
  ASSERT_TRUE(
      maintenance
          .RemoveObservations({.trial = {kMnist, 2}, .revision = ended.revision, .rows = rows})
          .ok());
  std::vector<std::string> left;
  for (const auto& row : Must(store_->ListObservations({.trial = {kMnist, 2}}))) {
    if (row.attempt == 1) left.push_back(absl::StrCat(row.step, row.metric));
  }
  EXPECT_THAT(left, ElementsAre("0acc", "0loss", "1acc", "3acc", "3loss"));
  EXPECT_EQ(Must(store_->Revision()), revision);
}

TEST_P(StoreBackupContract, GivesSpaceBackInPieces) {
  CreateWithTrial();
  for (int i = 0; i < 50; ++i) {
    Batch batch = For();
    batch.events.resize(50, Event(std::string(2000, 'x')));
    MustCommit(batch);
  }
  Delete();
  int pieces = 0;
  for (bool more = true; more; ++pieces) {
    more = Must(MaintenanceOf(*store_).ReleaseSpace());
    ASSERT_LT(pieces, 1000) << "it never ends";
  }
  CreateWithTrial();
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreBackupContract,
                         ::testing::ValuesIn(Registry<StoreInfo>::Get().Names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace shirabe::db
