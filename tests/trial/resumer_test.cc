// What trial/checkpoint/checkpoint_resumer.h promises: an answer is of the candidates that were
// asked about, and a failure is told once.
#include "trial/checkpoint/checkpoint_resumer.h"

#include <condition_variable>

#include "tests/trial/checkpoint_harness.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;

class ResumerTest : public testing::Test {
 protected:
  StatusOr<std::string> Prepare(std::vector<v1::Checkpoint> candidates) {
    AttemptRequest request;
    request.key = AttemptOf(1, 2);
    request.resume = std::move(candidates);
    return resumer_.Prepare(request);
  }
  // Until the answer of one that was handed over is there.
  void AwaitReady() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [this] { return ready_ > 0; }));
    --ready_;
  }

  CheckpointHome home_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int ready_ = 0;
  std::unique_ptr<TaskPool> task_pool_ = std::make_unique<TaskPool>(1);
  Resumer resumer_{{.layout = &home_.layout(),
                    .store = &home_.store(),
                    .copier = nullptr,
                    .background = task_pool_.get()},
                   [this](const AttemptKey&) {
                     std::lock_guard lock(mutex_);
                     ++ready_;
                     changed_.notify_all();
                   }};
  // Destroyed first, as the header asks.
  struct Over {
    std::unique_ptr<TaskPool>& background;
    ~Over() { background.reset(); }
  } over_{task_pool_};
};

TEST_F(ResumerTest, OtherCandidatesAreAnotherQuestion) {
  const v1::Checkpoint older = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  const v1::Checkpoint newer = home_.SaveAndCommit(AttemptOf(1), 20, {{"w", "20"}});
  ASSERT_TRUE(MakeDirs(home_.Dir(AttemptOf(1, 2))).ok());
  EXPECT_EQ(Prepare({newer, older}).value_or(""), home_.Path(AttemptOf(1, 2), 20));
  EXPECT_EQ(Prepare({older}).value_or(""), home_.Path(AttemptOf(1, 2), 10));
  EXPECT_EQ(ReadResume(home_.layout().Paths(AttemptOf(1, 2)).dir).from->step(), 10);
}

// A record may say that one is large: then it is copied by another thread.
TEST_F(ResumerTest, AFailureIsToldOnceAndThenTriedAgain) {
  v1::Checkpoint large = home_.SaveAndCommit(AttemptOf(1), 10, {{"w", "10"}});
  large.set_bytes(int64_t{1} << 30);
  const std::string dir = home_.layout().Paths(AttemptOf(1, 2)).dir;
  ASSERT_TRUE(MakeDirs(std::filesystem::path(dir).parent_path().string()).ok());
  ASSERT_TRUE(WriteFileAtomic(dir, "a file in its place").ok());
  EXPECT_THAT(Message(Prepare({large}).status()), HasSubstr("verifying the checkpoint at step 10"));
  AwaitReady();
  const Status failure = Prepare({large}).status();
  EXPECT_TRUE(absl::IsUnavailable(failure)) << failure;
  EXPECT_THAT(Message(failure), HasSubstr("cannot go on from the checkpoint at step 10"));
  std::filesystem::remove(dir);
  ASSERT_TRUE(MakeDirs(home_.Dir(AttemptOf(1, 2))).ok());
  EXPECT_THAT(Message(Prepare({large}).status()), HasSubstr("verifying the checkpoint at step 10"));
  AwaitReady();
  EXPECT_EQ(Prepare({large}).value_or(""), home_.Path(AttemptOf(1, 2), 10));
  EXPECT_EQ(Prepare({large}).value_or(""), home_.Path(AttemptOf(1, 2), 10)) << "costs nothing";
}

}  // namespace
}  // namespace shirabe::trial
