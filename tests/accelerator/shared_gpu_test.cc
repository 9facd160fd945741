#include "suggestion/accelerator/shared_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <limits>
#include <thread>

#include "base/cancellation.h"
#include "base/file_io.h"
#include "tests/accelerator/fake_gpu.h"
#include "tests/support/eventually.h"

namespace shirabe::suggestion::accelerator {
namespace {

using testing::HasSubstr;

// Points in two dimensions.
struct Cloud {
  std::vector<double> x, y;
  Accelerator::Data data() const {
    return {.n = static_cast<int64_t>(y.size()), .p = 2, .m = 1, .x = x.data(), .y = y.data()};
  }
};
Cloud MakeCloud(int n, double phase) {
  Cloud cloud;
  for (int i = 0; i < 2 * n; ++i) cloud.x.push_back(std::fmod(0.37 * i + phase, 1.0));
  for (int i = 0; i < n; ++i) cloud.y.push_back(std::sin(3 * cloud.x[i] + phase));
  return cloud;
}
const std::vector<double> kTheta = {-0.5, -0.3, 0.1, -4, 1};

Accelerator::Question Ask(const Accelerator::Handle& model) { return {model.get(), 0, kTheta}; }

// What makes a machine have no GPU, each with its words.
TEST(SharedGpu, SaysWhyThereIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"version=7", "interface 7, and this program needs 2"},
      {"open=2", "there is no GPU"},
      {"open=3", "there is no GPU"},
      {"ratio=32", "doubles take 32 times as long as floats"},
  };
  for (const auto& [fault, words] : cases) {
    const FakeGpu fake(fault);
    const auto gpu = fake.Open();
    ASSERT_FALSE(gpu.ok()) << fault;
    EXPECT_THAT(Message(gpu.status()), HasSubstr(words)) << fault;
  }
  const auto none = SharedGpu::Open({.folders = {"/nonexistent"}});
  EXPECT_TRUE(absl::IsNotFound(none.status())) << none.status();
  const FakeGpu damaged;
  std::ofstream(damaged.library(), std::ios::trunc) << "not a library";
  EXPECT_THAT(Message(damaged.Open().status()), HasSubstr("cannot be loaded"));
  std::filesystem::copy_file("/lib/x86_64-linux-gnu/libm.so.6", damaged.library(),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(Message(damaged.Open().status()), HasSubstr("shirabe_cuda_version"));
}

// attacks: what another user could have put in the place of the library
TEST(SharedGpu, OpensNothingThatOthersCanWrite) {
  const FakeGpu fake;
  ASSERT_EQ(chmod(fake.library().c_str(), 0775), 0);
  const Status file = fake.Open().status();
  EXPECT_TRUE(absl::IsPermissionDenied(file)) << file;
  EXPECT_THAT(Message(file), HasSubstr("chmod go-w"));
  ASSERT_EQ(chmod(fake.library().c_str(), 0755), 0);
  ASSERT_EQ(chmod(fake.folder().c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(fake.Open().status()));
  ASSERT_EQ(chmod(fake.folder().c_str(), 0755), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(fake.library().c_str(), 12345, 12345), 0);
    EXPECT_THAT(Message(fake.Open().status()), HasSubstr("belongs to another user"));
    ASSERT_EQ(chown(fake.library().c_str(), 0, 0), 0);
  }
  EXPECT_TRUE(fake.Open().ok());
  ASSERT_TRUE(std::filesystem::remove(fake.library()));
  ASSERT_TRUE(std::filesystem::create_directory(fake.library()));
  EXPECT_THAT(Message(fake.Open().status()), HasSubstr("is not a file"));
}

TEST(SharedGpu, AnswersManyThreadsWithTheSameBitsTogether) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  constexpr int kThreads = 8, kRounds = 40;
  std::vector<Accelerator::Handle> models;
  std::vector<double> alone;
  for (int i = 0; i < kThreads; ++i) {
    models.push_back(*(*gpu)->Upload(MakeCloud(30, 0.1 * i).data()));
    alone.push_back((*(*gpu)->Evaluate({Ask(models.back())}))[0].value);
  }
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < kRounds; ++round) {
          const auto answers = (*gpu)->Evaluate({Ask(models[i]), Ask(models[i])});
          if (!answers.ok() || (*answers)[1].value != alone[i]) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  const GpuCounts counts = (*gpu)->counts();
  EXPECT_EQ(counts.evaluations, kThreads + 2 * kThreads * kRounds);
  EXPECT_LE(counts.batches, kThreads + kThreads * kRounds);
  EXPECT_EQ(counts.waiting, 0);
  EXPECT_EQ(counts.failures, 0);
}

// Holds up the device's thread while it exists.
class Hang {
 public:
  explicit Hang(const FakeGpu& fake, int limit = 3) : file_(fake.folder() + "/hang") {
    std::ofstream(file_) << "x";
    FakeGpu::SetFaults("hang=" + file_ + " limit=" + std::to_string(limit) + " calls=" + calls());
  }
  ~Hang() { End(); }
  void End() { std::filesystem::remove(file_); }
  std::string calls() const { return file_ + ".calls"; }

 private:
  std::string file_;
};

// Whether the first call is at work, and `waiting` others are not.
bool IsBusy(const SharedGpu& gpu, int64_t waiting) { return gpu.counts().waiting == waiting; }

// What waits together goes together, and what has no memory together goes alone.
TEST(SharedGpu, WhatWaitsGoesInOneCall) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  Hang hang(fake);
  std::atomic<int> answered{0};
  std::vector<std::jthread> threads;
  const auto ask = [&] {
    threads.emplace_back([&] {
      if ((*gpu)->Evaluate({Ask(model), Ask(model)}).ok()) ++answered;
    });
  };
  ask();
  ASSERT_TRUE(Eventually([&] { return (*gpu)->counts().busy; }));
  for (int i = 0; i < 3; ++i) ask();
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, 3); }));
  hang.End();
  threads.clear();
  EXPECT_EQ(answered, 4) << "six in one call have no memory, two have";
  EXPECT_GE((*gpu)->counts().largest, 4);
}

// A process on a cloud of its own.
Accelerator::Handle Conditioned(SharedGpu& gpu, double phase) {
  const Accelerator::Handle model = *gpu.Upload(MakeCloud(25, phase).data());
  auto conditioned = gpu.Condition(*model, {.theta = kTheta, .wants_inverse = false});
  CHECK(conditioned.ok());
  return std::move(conditioned->posterior);
}

// Some points with slopes.
StatusOr<Accelerator::Scores> Score(SharedGpu& gpu, const Accelerator::Handle& posterior,
                                    const std::vector<double>& x) {
  return gpu.Score(
      *posterior,
      {.count = static_cast<int64_t>(x.size()) / 2, .p = 2, .m = 1, .x = x.data(), .slopes = true});
}

// Of different processes, and as many points as each has: in one call, with the bits of each alone.
// An evaluation that waits among them neither joins nor is lost, nor is one mistake that of others.
TEST(SharedGpu, ScoringsThatWaitGoInOneCall) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  constexpr int kAskers = 4;
  std::vector<Accelerator::Handle> posteriors;
  std::vector<std::vector<double>> points;
  std::vector<Accelerator::Scores> alone;
  for (int i = 0; i < kAskers; ++i) {
    posteriors.push_back(Conditioned(**gpu, 0.1 * i));
    points.push_back(MakeCloud(3 + i, 0.05 * i).x);
    alone.push_back(*Score(**gpu, posteriors.back(), points.back()));
  }
  const int64_t before = (*gpu)->counts().scoring_batches;
  Hang hang(fake, /*limit=*/64);
  std::atomic<int> same{0}, evaluated{0}, refused{0};
  std::vector<std::jthread> threads;
  threads.emplace_back([&] { evaluated += (*gpu)->Evaluate({Ask(model)}).ok() ? 1 : 0; });
  ASSERT_TRUE(Eventually([&] { return (*gpu)->counts().busy; }));
  for (int i = 0; i < kAskers; ++i) {
    threads.emplace_back([&, i] {
      const auto scores = Score(**gpu, posteriors[i], points[i]);
      if (scores.ok() && scores->mean == alone[i].mean && scores->variance == alone[i].variance &&
          scores->mean_slopes == alone[i].mean_slopes &&
          scores->variance_slope == alone[i].variance_slope) {
        ++same;
      }
    });
  }
  threads.emplace_back([&] { evaluated += (*gpu)->Evaluate({Ask(model)}).ok() ? 1 : 0; });
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, kAskers + 1); }));
  hang.End();
  threads.clear();
  EXPECT_EQ(same, kAskers);
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ((*gpu)->counts().scoring_batches, before + 1);
  EXPECT_EQ((*gpu)->counts().largest_scoring, kAskers);
  const std::vector<double> wrong = {0.5, std::numeric_limits<double>::quiet_NaN()};
  Hang again(fake, /*limit=*/64);
  threads.emplace_back([&] { evaluated += (*gpu)->Evaluate({Ask(model)}).ok() ? 1 : 0; });
  ASSERT_TRUE(Eventually([&] { return (*gpu)->counts().busy; }));
  for (int i = 0; i < kAskers; ++i) {
    threads.emplace_back([&, i] {
      const auto scores = Score(**gpu, posteriors[i], i == 2 ? wrong : points[i]);
      if (scores.ok()) ++same;
      if (absl::IsInvalidArgument(scores.status())) ++refused;
    });
  }
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, kAskers); }));
  again.End();
  threads.clear();
  EXPECT_EQ(same, 2 * kAskers - 1);
  EXPECT_EQ(refused, 1);
  EXPECT_FALSE((*gpu)->lost());
}

// An experiment that never stops asking, and another that asks once: it is next but one.
TEST(SharedGpu, ManyCallsOfOneDoNotHoldUpAnother) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  const Accelerator::Handle other = Conditioned(**gpu, 0.1);
  constexpr int kThreads = 8, kRounds = 200;
  Hang hang(fake, /*limit=*/64);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kRounds; ++k) EXPECT_TRUE((*gpu)->Evaluate({Ask(model)}).ok());
    });
    ASSERT_TRUE(Eventually([&] { return (*gpu)->counts().busy; }));  // with the first alone
  }
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, kThreads - 1); }));
  threads.emplace_back([&] { EXPECT_TRUE(Score(**gpu, other, {0.2, 0.3}).ok()); });
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, kThreads); }));
  hang.End();
  threads.clear();
  EXPECT_GE((*gpu)->counts().batches, kRounds);
  const std::string calls = ReadFile(hang.calls()).value_or("");
  EXPECT_EQ(calls.find('s'), 2u) << "after the one at work, and what had waited longer: " << calls;
}

TEST(SharedGpu, AScoringWhoseCallerHasGoneLeavesTheOthers) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  Accelerator::Handle left = Conditioned(**gpu, 0.1);
  const Accelerator::Handle stays = Conditioned(**gpu, 0.2);
  const std::vector<double> x = MakeCloud(4, 0.3).x;
  const Accelerator::Scores alone = *Score(**gpu, stays, x);
  Hang hang(fake, /*limit=*/64);
  std::atomic<bool> gone = false, answered = false;
  std::jthread holds([&] { (void)Score(**gpu, stays, x); });
  ASSERT_TRUE(Eventually([&] { return (*gpu)->counts().busy; }));
  std::jthread waits([&] {
    const auto scores = Score(**gpu, stays, x);
    answered = scores.ok() && scores->mean == alone.mean;
  });
  std::jthread leaves([&] {
    const CancelScope scope([&] { return gone.load(); });
    EXPECT_TRUE(absl::IsCancelled(Score(**gpu, left, x).status()));
    left.reset();
  });
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, 2); }));
  gone = true;
  ASSERT_TRUE(Eventually([&] { return IsBusy(**gpu, 1); }));
  hang.End();
  holds.join();
  waits.join();
  EXPECT_TRUE(answered);
}

TEST(SharedGpu, OneMistakeIsNotThatOfTheOthers) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  Accelerator::Question bad = Ask(model);
  bad.theta[0] = std::numeric_limits<double>::quiet_NaN();
  std::atomic<int> good{0}, refused{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const auto answers = (*gpu)->Evaluate({i % 2 == 0 ? bad : Ask(model)});
        if (answers.ok()) ++good;
        if (absl::IsInvalidArgument(answers.status())) ++refused;
      });
    }
  }
  EXPECT_EQ(good, 4);
  EXPECT_EQ(refused, 4);
  EXPECT_FALSE((*gpu)->lost());
}

TEST(SharedGpu, NoMemoryIsNotTheEnd) {
  const FakeGpu fake("upload=2:3");
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const auto first = (*gpu)->Upload(MakeCloud(20, 0).data());
  ASSERT_TRUE(first.ok()) << first.status();
  const Status second = (*gpu)->Upload(MakeCloud(20, 0).data()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(second)) << second;
  EXPECT_TRUE((*gpu)->Evaluate({Ask(*first)}).ok());
  EXPECT_EQ((*gpu)->counts().failures, 1);
}

TEST(SharedGpu, ADeviceThatIsLostIsNotAskedAgain) {
  const FakeGpu fake("evaluate=2:4");
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  EXPECT_TRUE((*gpu)->Evaluate({Ask(model)}).ok());
  EXPECT_TRUE(absl::IsUnavailable((*gpu)->Evaluate({Ask(model)}).status()));
  EXPECT_TRUE((*gpu)->lost());
  EXPECT_EQ((*gpu)->reason(), "device lost");
  FakeGpu::SetFaults("");
  EXPECT_TRUE(absl::IsUnavailable((*gpu)->Evaluate({Ask(model)}).status()));
  EXPECT_TRUE(absl::IsUnavailable((*gpu)->Upload(MakeCloud(20, 0).data()).status()));
}

TEST(SharedGpu, ACancelledCallerLeavesADriverThatHangs) {
  const FakeGpu fake;
  const auto gpu = fake.Open();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  Hang hang(fake);
  for (int i = 0; i < 3; ++i) {
    const CancelScope scope([] { return true; });
    EXPECT_TRUE(absl::IsCancelled((*gpu)->Evaluate({Ask(model)}).status()));
  }
  model.reset();  // while it may be in use
  hang.End();
  const auto again = (*gpu)->Upload(MakeCloud(20, 0).data());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE((*gpu)->Evaluate({Ask(*again)}).ok());
}

TEST(SharedGpu, CallersOutwaitADriverThatHangs) {
  const FakeGpu fake;
  ManualClock clock;
  const auto gpu = fake.Open({.patience = absl::Seconds(30), .clock = &clock});
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  Hang hang(fake);
  std::atomic<int> gone{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      if (absl::IsUnavailable((*gpu)->Evaluate({Ask(model)}).status())) ++gone;
    });
  }
  ASSERT_TRUE(Eventually([&] {
    clock.Advance(absl::Seconds(31));
    return (*gpu)->lost();
  }));
  threads.clear();
  EXPECT_EQ(gone, 3);
  EXPECT_THAT((*gpu)->reason(), HasSubstr("does not answer"));
}

TEST(SharedGpu, TheQueueIsBounded) {
  const FakeGpu fake;
  const auto gpu = fake.Open({.most_waiting = 2});
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Accelerator::Handle model = *(*gpu)->Upload(MakeCloud(20, 0).data());
  Hang hang(fake);
  std::atomic<int> answered{0};
  std::vector<std::jthread> threads;
  int64_t most = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if ((*gpu)->Evaluate({Ask(model)}).ok()) ++answered;
    });
  }
  ASSERT_TRUE(Eventually([&] {
    most = std::max(most, (*gpu)->counts().waiting);
    return most == 2;
  }));
  hang.End();
  while (answered < 8) most = std::max(most, (*gpu)->counts().waiting);
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace shirabe::suggestion::accelerator
