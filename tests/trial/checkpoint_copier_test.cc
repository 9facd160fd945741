// What trial/checkpoint/checkpoint_copier.h promises beside the copies themselves: what is told of
// them, when an attempt is done with, and what goes again; and the resumer, which brings them back.
#include "trial/checkpoint/checkpoint_copier.h"

#include <condition_variable>

#include "tests/trial/checkpoint_harness.h"
#include "trial/checkpoint/checkpoint_resumer.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class CheckpointCopierTest : public testing::Test {
 protected:
  CheckpointCopierTest() {
    CHECK(MakeDirs(root()).ok());
    v1::ArtifactStores stores;
    v1::ArtifactStore& store = *stores.add_stores();
    store.set_name("team");
    store.set_type("directory");
    store.set_root(root());
    store.add_namespaces("default");
    const artifacts::RetryPolicy quick{.attempts = 2,
                                       .backoff = {absl::Milliseconds(1), absl::Milliseconds(1)}};
    copier_ = std::make_unique<CheckpointCopier>(
        CopierOptions{.layout = &home_.layout(),
                      .stores = *artifacts::StoreTable::Create(stores),
                      .on_idle = [this](const AttemptKey&) { Count(); },
                      .on_removed = [this](const ExperimentKey&) { Count(); },
                      .retries = {.calls = quick, .checkpoints = quick}});
    policy_.set_store("team");
    policy_.set_checkpoints(true);
    copier_->SetPolicy({"default", "exp"}, policy_);
  }
  std::string root() const { return home_.home() + "/store"; }
  std::string Manifest(int64_t step) const {
    return absl::StrCat(root(), "/default/_/exp/1/1/", step, "/manifest.json");
  }
  void Count() {
    const std::lock_guard lock(mutex_);
    ++calls_;
    changed_.notify_all();
  }
  void AwaitCalls(int calls) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return calls_ >= calls; }));
  }
  // Until a call of ours has made it so.
  void Await(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < 6000 && !condition(); ++i) {
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(condition());
  }
  AttemptStatus Describe() const {
    AttemptStatus observed;
    observed.key = AttemptOf(1);
    copier_->Describe(observed);
    return observed;
  }

  CheckpointHome home_;
  v1::ArtifactPolicy policy_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
  std::unique_ptr<CheckpointCopier> copier_;
};

TEST_F(CheckpointCopierTest, CopiesOnceAndSaysSo) {
  const v1::Checkpoint saved = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  copier_->Copy(saved);
  AwaitCalls(1);
  copier_->Copy(saved);
  EXPECT_FALSE(copier_->Busy(AttemptOf(1)));
  EXPECT_TRUE(fs::exists(Manifest(10)));
  EXPECT_EQ(copier_->StateOf(saved), v1::COPY_MADE);
  EXPECT_EQ(Describe().copied, "1 checkpoint, the latest at step 10, to store team");
  EXPECT_EQ(Describe().uncopied, "");
}

TEST_F(CheckpointCopierTest, WithoutAPolicyNothingIsCopied) {
  copier_->SetPolicy({"default", "exp"}, {});
  const v1::Checkpoint saved = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  copier_->Copy(saved);
  EXPECT_FALSE(copier_->Busy(AttemptOf(1)));
  EXPECT_FALSE(copier_->MayHave(saved));
  EXPECT_TRUE(absl::IsNotFound(copier_->Fetch(saved, home_.Dir(AttemptOf(1, 2)))));
  EXPECT_TRUE(copier_->Check({"default", "exp"}).ok());
}

TEST_F(CheckpointCopierTest, AStoreOfOthersIsRefusedByName) {
  policy_.set_store("theirs");
  copier_->SetPolicy({"default", "exp"}, policy_);
  const Status refused = copier_->Check({"default", "exp"});
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(Message(refused), HasSubstr("spec.shirabe.artifacts.store: \"theirs\""));
  policy_.set_store("team");
  copier_->SetPolicy({"other", "exp"}, policy_);
  EXPECT_TRUE(absl::IsInvalidArgument(copier_->Check({"other", "exp"})));
}

TEST_F(CheckpointCopierTest, WhatCannotBeCopiedIsSaidWithTheReason) {
  const v1::Checkpoint saved = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  fs::rename(root(), root() + "-away");
  copier_->Copy(saved);
  AwaitCalls(1);
  EXPECT_EQ(copier_->StateOf(saved), v1::COPY_FAILED);
  EXPECT_EQ(Describe().copied, "");
  EXPECT_THAT(Describe().uncopied, HasSubstr("1 checkpoint, the latest at step 10, to store team: "
                                             "cannot open the store's folder"));
}

TEST_F(CheckpointCopierTest, WhatIsPrunedGoesThereToo) {
  const v1::Checkpoint saved = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  copier_->Copy(saved);
  AwaitCalls(1);
  copier_->Prune(saved);
  copier_->End();  // which waits for that
  EXPECT_FALSE(fs::exists(root() + "/default"));
}

TEST_F(CheckpointCopierTest, PrunedWhileItIsCopiedNothingIsLeftOfIt) {
  const std::string large(32 << 20, 'x');
  const v1::Checkpoint saved = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", large}});
  copier_->Copy(saved);
  copier_->Prune(saved);
  AwaitCalls(1);
  copier_->End();
  EXPECT_FALSE(fs::exists(root() + "/default"));
  EXPECT_EQ(Describe().uncopied, "");
}

TEST_F(CheckpointCopierTest, RemovesAllOfAnExperiment) {
  for (const int64_t step : {10, 20}) {
    copier_->Copy(home_.SaveAndCommit(AttemptOf(1), step, {{"w", "x"}}));
  }
  Await([&] { return !copier_->Busy(AttemptOf(1)); });
  copier_->RemoveAllOf({"default", "exp"}, policy_);
  Await([&] { return !copier_->IsRemoving({"default", "exp"}); });
  EXPECT_FALSE(fs::exists(root() + "/default"));
}

TEST_F(CheckpointCopierTest, CopiesOutputsOnceAndSaysSo) {
  const std::string dir = home_.layout().Paths(AttemptOf(1)).output_dir;
  ASSERT_TRUE(MakeDirs(dir).ok());
  ASSERT_TRUE(WriteFileAtomic(dir + "/model", "m").ok());
  copier_->CopyOutputs(AttemptOf(1));
  EXPECT_FALSE(copier_->Busy(AttemptOf(1))) << "only where the experiment wants that";
  policy_.set_outputs(true);
  copier_->SetPolicy({"default", "exp"}, policy_);
  copier_->CopyOutputs(AttemptOf(1));
  AwaitCalls(1);
  copier_->CopyOutputs(AttemptOf(1));
  EXPECT_FALSE(copier_->Busy(AttemptOf(1)));
  const AttemptStatus observed = Describe();
  ASSERT_TRUE(observed.outputs.has_value());
  EXPECT_EQ(observed.outputs->bytes(), 1);
  EXPECT_EQ(observed.outputs->location(), "store team: _/exp/1/1/0/");
  EXPECT_EQ(observed.outputs_uncopied, "");
  EXPECT_TRUE(fs::exists(Manifest(0)));
  copier_->Prune(*observed.outputs);
  copier_->End();
  EXPECT_FALSE(fs::exists(Manifest(0)));
}

TEST_F(CheckpointCopierTest, OutputsThatCannotBeCopiedAreSaidWithTheReason) {
  policy_.set_outputs(true);
  copier_->SetPolicy({"default", "exp"}, policy_);
  const std::string dir = home_.layout().Paths(AttemptOf(1)).output_dir;
  ASSERT_TRUE(MakeDirs(dir).ok());
  fs::create_symlink("/etc/passwd", dir + "/passwd");
  copier_->CopyOutputs(AttemptOf(1));
  AwaitCalls(1);
  EXPECT_FALSE(Describe().outputs.has_value());
  EXPECT_THAT(Describe().outputs_uncopied, HasSubstr("to store team: "));
  EXPECT_THAT(Describe().outputs_uncopied, HasSubstr("passwd"));
  EXPECT_EQ(Describe().uncopied, "");
}

TEST_F(CheckpointCopierTest, TheResumerBringsBackWhatIsGoneHere) {
  const v1::Checkpoint saved = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  copier_->Copy(saved);
  AwaitCalls(1);
  fs::remove_all(home_.Dir(AttemptOf(1)));
  ASSERT_TRUE(MakeDirs(home_.Dir(AttemptOf(1, 2))).ok());
  auto background = std::make_unique<TaskPool>(1);
  Resumer resumer({.layout = &home_.layout(),
                   .store = &home_.store(),
                   .copier = copier_.get(),
                   .background = background.get()},
                  [this](const AttemptKey&) { Count(); });
  AttemptRequest request;
  request.key = AttemptOf(1, 2);
  request.resume = {saved};
  EXPECT_TRUE(absl::IsUnavailable(resumer.Prepare(request).status())) << "it takes a while";
  AwaitCalls(2);
  EXPECT_EQ(resumer.Prepare(request).value_or(""), home_.Path(AttemptOf(1, 2), 10));
  EXPECT_EQ(CheckpointHome::Read(home_.Path(AttemptOf(1, 2), 10)), (Files{{"w", "10"}}));
  EXPECT_EQ(ReadResume(home_.layout().Paths(AttemptOf(1, 2)).dir).from->step(), 10);
  background.reset();
}

}  // namespace
}  // namespace shirabe::trial
