// What db/store.h promises, asked of every registered store: records, revisions, addresses.
#include "tests/contract/store_contract.h"

#include <atomic>
#include <thread>

namespace shirabe::db {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreContract, IsEmptyAtFirst) {
  EXPECT_EQ(*store_->Revision(), 0);
  EXPECT_THAT(*store_->ListExperiments(""), IsEmpty());
  EXPECT_THAT(Feed(0), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(kMnist).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->GetTrial({kMnist, 1}).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->GetLease(kMnist).status()));
  EXPECT_THAT(*store_->ListTrials({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(*store_->ListAttempts({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(*store_->ListCheckpoints({kMnist, 1}), IsEmpty());
  EXPECT_THAT(Observations(), IsEmpty());
  EXPECT_THAT(*store_->ListEvents({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(*store_->ListIntents(kMnist), IsEmpty());
}

TEST_P(StoreContract, GivesBackWhatWasPut) {
  Batch batch = For();
  batch.put = {Experiment(kMnist), 0};
  batch.put->record.mutable_status()->set_trials(7);
  batch.put->record.mutable_status()->mutable_shirabe()->set_memo(std::string("\0\xff", 2));
  batch.trials = {{Trial(1), 0}};
  batch.trials[0].record.set_explanation(std::string(100'000, 'x'));
  batch.attempts = {{Attempt(1, 1), 0}};
  batch.checkpoints = {{Checkpoint(1, 1, 40), 0}};
  const int64_t revision = MustCommit(batch);

  EXPECT_GT(revision, 0);
  EXPECT_EQ(*store_->Revision(), revision);
  const auto experiment = *store_->GetExperiment(kMnist);
  EXPECT_EQ(experiment.revision, revision);
  EXPECT_EQ(experiment.record.SerializeAsString(), batch.put->record.SerializeAsString());
  const auto trial = *store_->GetTrial({kMnist, 1});
  EXPECT_EQ(trial.revision, revision);
  EXPECT_EQ(trial.record.SerializeAsString(), batch.trials[0].record.SerializeAsString());
  const auto attempts = *store_->ListAttempts({.experiment = kMnist});
  ASSERT_THAT(attempts, SizeIs(1));
  EXPECT_EQ(attempts[0].revision, revision);
  EXPECT_THAT(*store_->ListCheckpoints({kMnist, 1}), SizeIs(1));
}

TEST_P(StoreContract, EveryCommitHasAGreaterRevision) {
  int64_t last = Create();
  for (int i = 0; i < 3; ++i) {
    Batch batch = For();
    batch.events = {Event("Tick")};
    const int64_t revision = MustCommit(batch);
    EXPECT_GT(revision, last);
    last = revision;
  }
  EXPECT_EQ(*store_->Revision(), last);
}

TEST_P(StoreContract, RefusesAStaleRevisionAndNamesBoth) {
  const int64_t first = Create();
  Batch batch = For();
  batch.put = {Experiment(kMnist), first};
  batch.trials = {{Trial(1), 0}};
  const int64_t second = MustCommit(batch);

  const Status stale = Refusal({.experiment = kMnist, .put = {{Experiment(kMnist), first}}});
  EXPECT_TRUE(absl::IsAborted(stale)) << stale;
  EXPECT_THAT(Message(stale), HasSubstr("default/mnist"));
  EXPECT_THAT(Message(stale), HasSubstr(absl::StrCat("at revision ", second)));

  const Status again = Refusal({.experiment = kMnist, .put = {{Experiment(kMnist), 0}}});
  EXPECT_TRUE(absl::IsAborted(again)) << again;
  EXPECT_THAT(Message(again), HasSubstr(absl::StrCat("exists at revision ", second)));

  batch = For();
  batch.trials = {{Trial(1), 0}};
  EXPECT_THAT(Message(Refusal(batch)),
              HasSubstr(absl::StrCat("trial mnist-1 exists at revision ", second)));
  batch.trials = {{Trial(2), 3}};
  EXPECT_TRUE(absl::IsAborted(Refusal(batch)));
  EXPECT_THAT(Message(Refusal(batch)), HasSubstr("trial mnist-2 does not exist"));
}

// Two stores on one database stand for two servers.
TEST_P(StoreContract, TakesOneOfThoseWhoChangeWhatTheyHaveRead) {
  Batch create = For();
  create.put = {Experiment(kMnist), 0};
  create.put->record.mutable_metadata()->set_generation(3);
  MustCommit(create);
  const auto other = CanShare() ? OpenAgain() : nullptr;
  std::atomic<int> taken = 0;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 8; ++i) {
      writers.emplace_back([&, i] {
        Store& store = i % 2 == 0 || other == nullptr ? *store_ : *other;
        Batch batch = For();
        batch.intents = {Intent(v1::Intent::SCALE)};
        batch.intents[0].set_generation(3);
        const Status status = store.Commit(batch).status();
        EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
        taken += status.ok();
      });
    }
  }
  EXPECT_EQ(taken, 1);
  EXPECT_THAT(Must(store_->ListIntents(kMnist)), SizeIs(1));
}

TEST_P(StoreContract, RefusesAnIntentWhoseConditionDoesNotHold) {
  Create();  // of generation 0
  const auto conditional = [&](v1::Intent::Verb verb, int64_t generation) {
    Batch batch = For();
    batch.intents = {Intent(verb)};
    batch.intents[0].set_generation(generation);
    return batch;
  };
  const Status stale = Refusal(conditional(v1::Intent::STOP, 4));
  EXPECT_TRUE(absl::IsAborted(stale)) << stale;
  EXPECT_THAT(Message(stale), AllOf(HasSubstr("default/mnist"), HasSubstr("generation 0, not 4")));
  EXPECT_THAT(*store_->ListIntents(kMnist), IsEmpty());

  Batch raise = For();
  raise.put = {Experiment(kMnist), Must(store_->GetExperiment(kMnist)).revision};
  raise.put->record.mutable_metadata()->set_generation(4);
  MustCommit(raise);
  MustCommit(conditional(v1::Intent::STOP, 4));
  MustCommit(conditional(v1::Intent::SCALE, 4));
  for (const auto verb : {v1::Intent::SCALE, v1::Intent::STOP}) {
    EXPECT_THAT(Message(Refusal(conditional(verb, 4))), HasSubstr("is being changed"));
  }
  MustCommit(conditional(v1::Intent::SCALE, 0));  // whoever asks for nothing is not refused

  // The owner has made both changes.
  Batch done = For();
  done.put = {raise.put->record, Must(store_->GetExperiment(kMnist)).revision};
  done.put->record.mutable_metadata()->set_generation(6);
  for (const v1::Intent& intent : Must(store_->ListIntents(kMnist))) {
    done.intents_done.push_back(intent.id());
  }
  MustCommit(done);
  EXPECT_TRUE(absl::IsAborted(Refusal(conditional(v1::Intent::SCALE, 5))));
  MustCommit(conditional(v1::Intent::SCALE, 6));
  Delete();
  EXPECT_TRUE(absl::IsNotFound(Refusal(conditional(v1::Intent::SCALE, 6))));
}

TEST_P(StoreContract, RefusesAStaleAttemptAndCheckpoint) {
  CreateWithTrial();
  Batch batch = For();
  batch.attempts = {{Attempt(1, 1), 0}};
  batch.checkpoints = {{Checkpoint(1, 1, 10), 0}};
  const int64_t revision = MustCommit(batch);
  EXPECT_TRUE(absl::IsAborted(Refusal({.experiment = kMnist, .attempts = batch.attempts})));
  EXPECT_TRUE(absl::IsAborted(Refusal({.experiment = kMnist, .checkpoints = batch.checkpoints})));
  batch.attempts[0].expected = revision;
  batch.checkpoints[0].expected = revision;
  EXPECT_GT(MustCommit(batch), revision);
  EXPECT_TRUE(absl::IsAborted(Refusal(batch)));
}

TEST_P(StoreContract, WritesAllOrNothing) {
  const int64_t before = CreateWithTrial();
  Batch batch = For();
  batch.put = {Experiment(kMnist), before};
  batch.put->record.mutable_status()->set_trials(9);
  batch.trials = {{Trial(2), 0}, {Trial(1), before + 100}};  // the second is stale
  batch.attempts = {{Attempt(2, 1), 0}};
  batch.observations = {Row(1, "loss", 0.5)};
  batch.events = {Event("Tick")};
  batch.intents = {Intent(v1::Intent::PAUSE)};
  EXPECT_TRUE(absl::IsAborted(Refusal(batch)));

  EXPECT_EQ(*store_->Revision(), before);
  EXPECT_EQ(store_->GetExperiment(kMnist)->record.status().trials(), 0);
  EXPECT_THAT(Numbers({.experiment = kMnist}), ElementsAre(1));
  EXPECT_THAT(*store_->ListAttempts({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(Observations("", true), IsEmpty());
  EXPECT_THAT(*store_->ListEvents({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(*store_->ListIntents(kMnist), IsEmpty());
  EXPECT_THAT(Feed(before), IsEmpty());

  // A metric that the refused batch was the first to use is still usable.
  Observe({Row(1, "loss", 0.5)});
  EXPECT_THAT(Observations("loss"), SizeIs(1));
}

TEST_P(StoreContract, RefusesABatchThatContradictsItself) {
  Create();
  Batch twice = For();
  twice.trials = {{Trial(1), 0}, {Trial(1), 0}};
  Batch elsewhere = For({"default", "other"});
  elsewhere.trials = {{Trial(1), 0}};
  Batch unnumbered = For();
  unnumbered.trials = {{Trial(0), 0}};
  Batch nameless = For();
  nameless.observations = {Row(1, "", 0)};
  Batch both = For();
  both.delete_experiment = true;
  both.events = {Event("Tick")};
  for (const Batch& batch : {twice, elsewhere, unnumbered, nameless, both}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Refusal(batch))) << Refusal(batch);
  }
}

TEST_P(StoreContract, RefusesTextThatCouldNotBeReadBack) {
  Create();
  Batch batch = For();
  batch.trials = {{Trial(1), 0}};
  batch.trials[0].record.set_message("binary \xff\xfe output");
  const Status status = Refusal(batch);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("trial mnist-1"));
  EXPECT_THAT(Message(status), HasSubstr("message"));
}

TEST_P(StoreContract, NeedsTheExperimentAndTheTrial) {
  Batch batch = For();
  batch.trials = {{Trial(1), 0}};
  EXPECT_TRUE(absl::IsNotFound(Refusal(batch)));
  for (const Batch& orphan : {Batch{.experiment = kMnist, .events = {Event("Tick")}},
                              Batch{.experiment = kMnist, .intents = {Intent(v1::Intent::STOP)}},
                              Batch{.experiment = kMnist, .delete_experiment = true}}) {
    EXPECT_TRUE(absl::IsNotFound(Refusal(orphan))) << Refusal(orphan);
  }
  Create();
  for (const Batch& orphan :
       {Batch{.experiment = kMnist, .attempts = {{Attempt(1, 1), 0}}},
        Batch{.experiment = kMnist, .checkpoints = {{Checkpoint(1, 1, 1), 0}}},
        Batch{.experiment = kMnist, .observations = {Row(1, "loss", 1)}}}) {
    const Status status = Refusal(orphan);
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("mnist-1"));
  }
}

TEST_P(StoreContract, SnapshotsAreValues) {
  const int64_t revision = CreateWithTrial();
  auto before = *store_->GetTrial({kMnist, 1});
  before.record.set_reason("changed by the reader");
  EXPECT_EQ(store_->GetTrial({kMnist, 1})->record.reason(), "");
  Batch batch = For();
  batch.trials = {{Trial(1, v1::TRIAL_SUCCEEDED), revision}};
  const auto list = *store_->ListTrials({.experiment = kMnist});
  MustCommit(batch);
  EXPECT_EQ(list[0].record.phase(), v1::TRIAL_PENDING);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract,
                         ::testing::ValuesIn(Registry<StoreInfo>::Get().Names()),
                         [](const auto& test) { return test.param; });

TEST(OpenStore, NamesTheSchemes) {
  for (const char* address : {"", "shirabe.db", "mysql:x", "/data/shirabe.db"}) {
    const Status status = Open(address).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    for (const std::string& name : Registry<StoreInfo>::Get().Names()) {
      EXPECT_THAT(Message(status), HasSubstr(name + ":"));
    }
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Open("memory:/some/path").status()));
}

TEST(OpenStore, ReadOnlyMemoryRefusesWrites) {
  auto store = *Open("memory:", true);
  const Status status = store->Commit({.experiment = kMnist}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
}

}  // namespace
}  // namespace shirabe::db
