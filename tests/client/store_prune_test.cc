// Rows thinned out in a store, and files that belong to no trial.
#include "client/store_prune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "base/process_id.h"
#include "base/timestamp.h"
#include "db/store.h"

namespace shirabe::client {
namespace {

using ::testing::UnorderedElementsAre;

const ExperimentKey kPruned{"default", "digits"};
const absl::Time kPrunedAt = absl::FromUnixSeconds(1'700'000'000);

class StorePrune : public testing::Test {
 protected:
  StorePrune() {
    home_ = testing::TempDir() + "shirabe-prune-XXXXXX";
    CHECK(mkdtemp(home_.data()) != nullptr);
    const StateLocation place{.home = home_, .db = "sqlite:" + home_ + "/shirabe.db"};
    client_ = *LocalClient::Open({.place = place, .read_only = false, .clock = RealClock()});
  }
  ~StorePrune() override { RemoveAll(home_).IgnoreError(); }

  db::Store& store() { return client_->store(); }
  // With as many rows of "loss" as their number says, a hundred times; trial 3 still runs.
  void AddExperiment(const std::string& uid, const std::string& package = "") {
    db::Batch batch{.experiment = kPruned};
    batch.put.emplace();
    v1::Experiment& experiment = batch.put->record;
    experiment.mutable_metadata()->set_namespace_(kPruned.ns);
    experiment.mutable_metadata()->set_name(kPruned.name);
    experiment.mutable_metadata()->set_uid(uid);
    experiment.mutable_spec()->mutable_shirabe()->mutable_code()->set_package(package);
    for (int64_t n = 1; n <= 3; ++n) AddTrial(n, &batch);
    ASSERT_TRUE(store().Commit(batch).ok());
  }
  void AddTrial(int64_t n, db::Batch* batch) {
    v1::Trial trial;
    trial.set_namespace_(kPruned.ns);
    trial.set_experiment(kPruned.name);
    trial.set_number(n);
    trial.set_phase(n == 3 ? v1::TRIAL_RUNNING : v1::TRIAL_SUCCEEDED);
    *trial.mutable_completion_time() = ToProto(kPrunedAt + n * absl::Minutes(1));
    v1::Metric* metric = trial.mutable_observation()->add_metrics();
    metric->set_name("loss");
    metric->set_count(100 * n);
    batch->trials.push_back({trial, 0});
    for (int64_t step = 1; step <= 100 * n; ++step) {
      batch->observations.push_back(
          {.trial = n, .attempt = 1, .metric = "loss", .step = step, .value = 1.0 / step});
    }
  }
  Thinned Thin(ThinOptions options) {
    const auto thinned = ThinObservations(store(), options);
    EXPECT_TRUE(thinned.ok()) << thinned.status();
    return thinned.value_or(Thinned{});
  }
  int64_t RowsOf(int64_t trial) {
    return std::ssize(*store().ListObservations({.trial = {kPruned, trial}}));
  }

  std::string home_;
  std::unique_ptr<LocalClient> client_;
};

TEST_F(StorePrune, ThinsOutTrialsThatEndedLongEnoughAgo) {
  AddExperiment("first");
  const absl::Time limit = kPrunedAt + absl::Seconds(90);  // between the ends of 1 and 2
  const Thinned would = Thin({.keep = 10, .ended_before = limit, .dry_run = true});
  EXPECT_EQ(would.trials, 1);
  EXPECT_EQ(would.observations, 90);
  EXPECT_EQ(RowsOf(1), 100);
  EXPECT_EQ(Thin({.ns = "other", .keep = 10, .ended_before = limit}).trials, 0);
  EXPECT_EQ(Thin({.keep = 10, .ended_before = limit}).observations, 90);
  EXPECT_EQ(RowsOf(1), 10);
  EXPECT_EQ(RowsOf(2), 200);
  EXPECT_EQ(Thin({.keep = 10, .ended_before = absl::InfiniteFuture()}).observations, 190);
  EXPECT_EQ(RowsOf(2), 10);
  EXPECT_EQ(RowsOf(3), 300) << "a trial that runs was thinned out";
  EXPECT_EQ(Thin({.keep = 10, .ended_before = absl::InfiniteFuture()}).observations, 0);
}

TEST_F(StorePrune, WhoComesAgainGoesOnWhereItWas) {
  AddExperiment("first");
  std::map<ExperimentKey, ThinProgress> progress;
  const absl::Time limit = kPrunedAt + absl::Seconds(90);
  EXPECT_EQ(Thin({.keep = 10, .ended_before = limit, .progress = &progress}).trials, 1);
  EXPECT_EQ(progress[kPruned].after_number, 1);
  EXPECT_EQ(
      Thin({.keep = 10, .ended_before = absl::InfiniteFuture(), .progress = &progress}).trials, 1);
  EXPECT_EQ(progress[kPruned].after_number, 2) << "the third runs, and must be looked at again";
  // Another experiment of that name begins anew.
  db::Batch deletion{.experiment = kPruned};
  deletion.delete_experiment = true;
  ASSERT_TRUE(store().Commit(deletion).ok());
  AddExperiment("second");
  EXPECT_EQ(
      Thin({.keep = 10, .ended_before = absl::InfiniteFuture(), .progress = &progress}).trials, 2);
}

TEST_F(StorePrune, FilesOfWhatTheStoreDoesNotHaveAreOrphans) {
  AddExperiment("first");
  const std::string trials = home_ + "/trials/default/";
  const ProcessId self = ThisProcess();
  const std::string ours = absl::StrCat(home_, "/memory/", self.pid, "-", self.start);
  for (const std::string& folder :
       {trials + "digits/digits-1/digits-1-a1", trials + "digits/digits-9/output",
        trials + "gone/gone-1", trials + "not A name", trials + "digits/notes", ours,
        home_ + "/memory/1-1", home_ + "/memory/other"}) {
    ASSERT_TRUE(MakeDirs(folder).ok());
    ASSERT_TRUE(WriteFileAtomic(folder + "/file", std::string(5000, 'x')).ok());
  }
  const std::string precious = home_ + "/precious";
  ASSERT_TRUE(WriteFileAtomic(precious, "mine").ok());
  std::filesystem::create_directory_symlink(home_, trials + "linked");
  const auto paths = [&](bool dry_run) {
    std::vector<std::string> found;
    const auto orphans = RemoveOrphans(*client_, home_, dry_run);
    EXPECT_TRUE(orphans.ok()) << orphans.status();
    for (const OrphanedFiles& one : *orphans) {
      EXPECT_GE(one.bytes, 4096);
      found.push_back(one.path);
    }
    return found;
  };
  const auto expected =
      UnorderedElementsAre(trials + "digits/digits-9", trials + "gone", home_ + "/memory/1-1");
  EXPECT_THAT(paths(true), expected);
  EXPECT_TRUE(std::filesystem::exists(trials + "gone"));
  // What another process runs, on another machine here, is left alone.
  ProcessId other = self;
  other.host += "-2";
  ASSERT_TRUE(store()
                  .AcquireLease({.experiment = kPruned,
                                 .holder = ToString(other),
                                 .now = RealClock()->Now(),
                                 .ttl = absl::Minutes(1),
                                 .dead_epoch = std::nullopt})
                  .ok());
  EXPECT_THAT(paths(false), UnorderedElementsAre(trials + "gone", home_ + "/memory/1-1"));
  ASSERT_TRUE(store().ReleaseLease({kPruned, 1}).ok());
  EXPECT_THAT(paths(false), UnorderedElementsAre(trials + "digits/digits-9"));
  EXPECT_THAT(paths(false), testing::IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(trials + "digits/digits-1/digits-1-a1/file"));
  EXPECT_TRUE(std::filesystem::exists(trials + "digits/notes/file"));
  EXPECT_TRUE(std::filesystem::exists(trials + "not A name/file"));
  EXPECT_TRUE(std::filesystem::exists(ours));
  EXPECT_EQ(*ReadFile(precious), "mine");
}

TEST_F(StorePrune, CodePackagesThatNoExperimentNamesAreOrphans) {
  const std::string kept(64, 'a'), gone(64, 'b'), fetched(64, 'c');
  AddExperiment("first", "sha256:" + kept);
  for (const std::string& name : {kept, gone, fetched, std::string("other")}) {
    ASSERT_TRUE(MakeDirs(home_ + "/code/" + name).ok());
    ASSERT_TRUE(WriteFileAtomic(home_ + "/code/" + name + "/train.py", "x").ok());
  }
  std::filesystem::permissions(home_ + "/code/" + gone, std::filesystem::perms::owner_read);
  const Fd lock(open((home_ + "/code/" + fetched + ".lock").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  const auto orphans = RemoveOrphans(*client_, home_, /*dry_run=*/false);
  ASSERT_TRUE(orphans.ok()) << orphans.status();
  ASSERT_EQ(orphans->size(), 1u);
  EXPECT_EQ((*orphans)[0].path, home_ + "/code/" + gone);
  EXPECT_FALSE(std::filesystem::exists(home_ + "/code/" + gone));
  for (const std::string& name : {kept, fetched, std::string("other")}) {
    EXPECT_TRUE(std::filesystem::exists(home_ + "/code/" + name + "/train.py")) << name;
  }
}

}  // namespace
}  // namespace shirabe::client
