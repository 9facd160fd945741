// How long copies stay in a store: which are due, that nothing goes that is needed, and that what
// was interrupted is done the next time.
#include "client/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "base/process_id.h"
#include "base/timestamp.h"
#include "db/store.h"

namespace shirabe::client {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

const ExperimentKey kCopied{"default", "copied"};

class CopyRetentionTest : public testing::Test {
 protected:
  CopyRetentionTest() {
    home_ = testing::TempDir() + "shirabe-copies-XXXXXX";
    CHECK(mkdtemp(home_.data()) != nullptr);
    CHECK(MakeDirs(home_ + "/store").ok());
    Open(/*keep_days=*/2);
  }
  ~CopyRetentionTest() override { RemoveAll(home_).IgnoreError(); }

  void Open(std::optional<double> keep_days) {
    v1::ArtifactStores stores;
    v1::ArtifactStore& store = *stores.add_stores();
    store.set_name("team");
    store.set_type("directory");
    store.set_root(home_ + "/store");
    store.add_namespaces("default");
    if (keep_days) store.set_keep_days(*keep_days);
    client_.reset();
    const StateLocation place{.home = home_, .db = "sqlite:" + home_ + "/shirabe.db"};
    client_ = *LocalClient::Open({.place = place,
                                  .read_only = false,
                                  .clock = &clock_,
                                  .stores = *artifacts::StoreTable::Create(stores)});
  }
  v1::Experiment EndedOne() const {
    v1::Experiment experiment;
    experiment.mutable_metadata()->set_namespace_(kCopied.ns);
    experiment.mutable_metadata()->set_name(kCopied.name);
    experiment.mutable_metadata()->set_uid("u");
    v1::ArtifactPolicy& policy = *experiment.mutable_spec()->mutable_shirabe()->mutable_artifacts();
    policy.set_store("team");
    policy.set_checkpoints(true);
    v1::Condition& ended = *experiment.mutable_status()->add_conditions();
    ended.set_type("Succeeded");
    ended.set_status("True");
    *experiment.mutable_status()->mutable_completion_time() = ToProto(ended_);
    return experiment;
  }
  void Put(const v1::Experiment& experiment) {
    db::Batch batch{.experiment = kCopied};
    batch.put = db::Write<v1::Experiment>{experiment, 0};
    ASSERT_TRUE(client_->store().Commit(batch).ok());
    AddCopies();
  }
  void AddCopies() {
    for (const char* object : {"/default/_/copied/1/1/4/manifest.json",
                               "/default/_/copied/1/1/4/files/00", "/default/_/other/1/1/4/x"}) {
      const std::string path = home_ + "/store" + object;
      ASSERT_TRUE(MakeDirs(fs::path(path).parent_path().string()).ok());
      ASSERT_TRUE(WriteFileAtomic(path, "x").ok());
    }
  }
  bool HasCopies() const { return fs::exists(home_ + "/store/default/_/copied"); }
  std::vector<RemovedCopies> Sweep(bool dry_run = false) {
    auto removed = RemoveOldCopies(*client_, {.ns = "", .clock = &clock_, .dry_run = dry_run});
    EXPECT_TRUE(removed.ok()) << removed.status();
    return removed.ok() ? *removed : std::vector<RemovedCopies>();
  }

  std::string home_;
  ManualClock clock_;
  const absl::Time ended_ = clock_.Now();
  std::unique_ptr<LocalClient> client_;
};

TEST_F(CopyRetentionTest, GoWhenTheirTimeIsOverOnce) {
  Put(EndedOne());
  clock_.Advance(absl::Hours(47));
  EXPECT_TRUE(Sweep().empty());
  EXPECT_TRUE(HasCopies());
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(Sweep(/*dry_run=*/true).size(), 1u);
  EXPECT_TRUE(HasCopies());
  const auto removed = Sweep();
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].store, "team");
  EXPECT_EQ(removed[0].error, "");
  EXPECT_FALSE(HasCopies());
  EXPECT_TRUE(fs::exists(home_ + "/store/default/_/other/1/1/4/x"));
  const auto stored = client_->store().GetExperiment(kCopied);
  EXPECT_EQ(FromProto(stored->record.status().shirabe().copies_removed()), clock_.Now());
  const auto events = client_->ListEvents({.experiment = kCopied});
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->at(0).reason(), "CopiesRemoved");
  EXPECT_THAT(events->at(0).message(), HasSubstr("store team"));
  EXPECT_TRUE(Sweep().empty()) << "once";
}

TEST_F(CopyRetentionTest, TheShorterTimeCounts) {
  v1::Experiment experiment = EndedOne();
  const auto days = [&](std::optional<double> of_store) -> std::optional<double> {
    const auto due = CopiesDue(experiment, of_store);
    if (!due) return std::nullopt;
    return absl::ToDoubleHours(*due - ended_) / 24;
  };
  EXPECT_EQ(days(std::nullopt), std::nullopt);
  EXPECT_EQ(days(2), 2);
  v1::ArtifactPolicy& policy = *experiment.mutable_spec()->mutable_shirabe()->mutable_artifacts();
  policy.set_keep_days(1);
  EXPECT_EQ(days(2), 1);
  EXPECT_EQ(days(0.5), 0.5);
  EXPECT_EQ(days(std::nullopt), 1);
  policy.set_keep_days(1e300);
  EXPECT_EQ(days(std::nullopt), std::nullopt);
  EXPECT_EQ(days(2), 2);
  policy.set_checkpoints(false);
  EXPECT_EQ(days(2), std::nullopt) << "nothing was copied";
  policy.set_outputs(true);
  EXPECT_EQ(days(2), 2);
}

TEST_F(CopyRetentionTest, WhatIsNeededStays) {
  clock_.Advance(absl::Hours(24) * 30);
  v1::Experiment runs = EndedOne();
  runs.mutable_status()->clear_conditions();
  EXPECT_EQ(CopiesDue(runs, 2), std::nullopt);
  v1::Experiment follow_up = EndedOne();
  follow_up.mutable_status()->mutable_shirabe()->mutable_on_success()->set_phase(
      v1::FOLLOW_UP_PENDING);
  EXPECT_EQ(CopiesDue(follow_up, 2), std::nullopt);
  Put(EndedOne());
  // Somebody runs it.
  const auto lease = client_->store().AcquireLease({.experiment = kCopied,
                                                    .holder = ToString(ThisProcess()),
                                                    .now = clock_.Now(),
                                                    .ttl = absl::Hours(1),
                                                    .dead_epoch = std::nullopt});
  ASSERT_TRUE(lease.ok());
  EXPECT_TRUE(Sweep().empty());
  EXPECT_TRUE(HasCopies());
  ASSERT_TRUE(client_->store().ReleaseLease({kCopied, lease->epoch()}).ok());
  // It is about to go on.
  v1::Intent more;
  more.set_verb(v1::Intent::SCALE);
  more.set_namespace_(kCopied.ns);
  more.set_experiment(kCopied.name);
  db::Batch batch{.experiment = kCopied};
  batch.intents.push_back(more);
  ASSERT_TRUE(client_->store().Commit(batch).ok());
  EXPECT_TRUE(Sweep().empty());
  EXPECT_TRUE(HasCopies());
}

TEST_F(CopyRetentionTest, AfterAFailureItIsDoneTheNextTime) {
  Put(EndedOne());
  clock_.Advance(absl::Hours(24) * 3);
  fs::rename(home_ + "/store", home_ + "/away");
  const auto failed = Sweep();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_THAT(failed[0].error, HasSubstr("store team"));
  EXPECT_FALSE(
      client_->store().GetExperiment(kCopied)->record.status().shirabe().has_copies_removed());
  fs::rename(home_ + "/away", home_ + "/store");
  EXPECT_EQ(Sweep().size(), 1u);
  EXPECT_FALSE(HasCopies());
}

// Killed after some objects have gone: the manifest goes with the rest, and nothing is marked.
TEST_F(CopyRetentionTest, InterruptedItIsBegunAgain) {
  Put(EndedOne());
  clock_.Advance(absl::Hours(24) * 3);
  fs::remove_all(home_ + "/store/default/_/copied/1/1/4/files");
  // One on another machine may still be at it: its lease has to run out.
  ProcessId other = ThisProcess();
  other.host += "-2";
  const auto hold = [&](const ProcessId& process) {
    return client_->store()
        .AcquireLease({.experiment = kCopied,
                       .holder = "copies of " + ToString(process),
                       .now = clock_.Now(),
                       .ttl = absl::Minutes(2),
                       .dead_epoch = std::nullopt})
        .status();
  };
  ASSERT_TRUE(hold(other).ok());
  EXPECT_TRUE(Sweep().empty());
  clock_.Advance(absl::Minutes(3));
  // That of one which was killed here is taken over at once.
  ProcessId killed = ThisProcess();
  killed.start += 1;
  ASSERT_TRUE(hold(killed).ok());
  EXPECT_EQ(Sweep().size(), 1u);
  EXPECT_FALSE(HasCopies());
}

TEST_F(CopyRetentionTest, WithoutATimeTheyStay) {
  Open(std::nullopt);
  Put(EndedOne());
  clock_.Advance(absl::Hours(24) * 1000);
  EXPECT_TRUE(Sweep().empty());
  EXPECT_TRUE(HasCopies());
}

// What it has had copied after that, when it had gone on, goes in its turn.
TEST_F(CopyRetentionTest, WhatIsCopiedLaterGoesInItsTurn) {
  Put(EndedOne());
  clock_.Advance(absl::Hours(24) * 3);
  EXPECT_EQ(Sweep().size(), 1u);
  v1::Experiment experiment = client_->store().GetExperiment(kCopied)->record;
  clock_.Advance(absl::Hours(1));
  *experiment.mutable_status()->mutable_completion_time() = ToProto(clock_.Now());
  EXPECT_EQ(CopiesDue(experiment, 2), clock_.Now() + absl::Hours(48));
}

}  // namespace
}  // namespace shirabe::client
