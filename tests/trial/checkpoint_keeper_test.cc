// What trial/checkpoint/checkpoint_committer.h promises of what a program has saved, whenever it
// ends.
#include "trial/checkpoint/checkpoint_committer.h"

#include <condition_variable>

#include "base/open_beneath.h"
#include "tests/trial/checkpoint_harness.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class KeeperTest : public testing::Test {
 protected:
  // The steps that it has committed, once it has told the end.
  std::vector<int64_t> StepsAtEnd(const AttemptKey& key) {
    AttemptStatus observed;
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      observed = AttemptStatus{.key = key, .state = AttemptStatus::State::kExited};
      committer_->Describe(observed);
      return observed.state == AttemptStatus::State::kExited;
    }));
    last_ = observed;
    std::vector<int64_t> steps;
    for (const v1::Checkpoint& checkpoint : observed.checkpoints) {
      steps.push_back(checkpoint.step());
    }
    return steps;
  }
  void Open(Clock* clock) {
    committer_ = std::make_unique<CheckpointCommitter>(&home_.layout(), clock, [this](const auto&) {
      if (on_change_) on_change_();
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }

  CheckpointHome home_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> on_change_;  // set before the keeper is told anything
  AttemptStatus last_;
  std::unique_ptr<CheckpointCommitter> committer_;
};

// Its program saves once more and ends while the first save is being committed.
TEST_F(KeeperTest, WhatIsSavedBeforeTheEndIsCommittedThoughALookIsUnderWay) {
  const AttemptKey key = AttemptOf(1);
  home_.Save(key, 10, {{"w", "10"}});
  bool once = false;
  on_change_ = [&] {
    if (std::exchange(once, true)) return;
    home_.Save(key, 20, {{"w", "20"}});
    committer_->End(key);
  };
  Open(RealClock());
  committer_->Watch(key);
  EXPECT_THAT(StepsAtEnd(key), ElementsAre(10, 20));
}

// The disk's clock may be ahead of ours.
TEST_F(KeeperTest, NoSaveIsOfTheFuture) {
  const AttemptKey key = AttemptOf(1);
  ManualClock clock;  // stands long before the disk's
  home_.Save(key, 10, {{"w", "10"}});
  Open(&clock);
  committer_->End(key);
  EXPECT_THAT(StepsAtEnd(key), ElementsAre(10));
  EXPECT_EQ(FromProto(last_.checkpoints.at(0).time()), clock.Now());
}

TEST_F(KeeperTest, WhatAnAttemptWasStartedFromIsNoSaveOfIts) {
  const v1::Checkpoint first = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  for (const bool anew : {false, true}) {
    const AttemptKey key = AttemptOf(1, anew ? 3 : 2);
    ASSERT_TRUE(MakeDirs(home_.Dir(key)).ok());
    Open(RealClock());
    AttemptRequest request;
    request.key = key;
    request.resume = {first};
    ASSERT_TRUE(committer_->Prepare(request).ok());
    if (anew) {  // its program makes that step again, and saves it
      ASSERT_TRUE(RemoveAll(home_.Path(key, 10)).ok());
      home_.Save(key, 10, {{"w", "another"}});
    }
    committer_->End(key);
    const auto steps = StepsAtEnd(key);
    if (anew) {
      EXPECT_THAT(steps, ElementsAre(10));
    } else {
      EXPECT_THAT(steps, IsEmpty());
    }
    EXPECT_THAT(last_.refused, IsEmpty());
    EXPECT_EQ(last_.resumed->step(), 10);
    committer_.reset();
  }
}

}  // namespace
}  // namespace shirabe::trial
