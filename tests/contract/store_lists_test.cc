// What db/store.h promises of lists, the feed of changes and deletion.
#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreContract, ListsExperimentsByNamespaceAndName) {
  for (const ExperimentKey& key :
       {ExperimentKey{"b", "a"}, ExperimentKey{"a", "z"}, ExperimentKey{"a", "b"}}) {
    Create(key);
  }
  const auto names = [&](const std::string& ns) {
    std::vector<std::string> list;
    for (const auto& row : Must(store_->ListExperiments(ns))) {
      list.push_back(row.record.metadata().namespace_() + "/" + row.record.metadata().name());
    }
    return list;
  };
  EXPECT_THAT(names(""), ElementsAre("a/b", "a/z", "b/a"));
  EXPECT_THAT(names("a"), ElementsAre("a/b", "a/z"));
  EXPECT_THAT(names("nowhere"), IsEmpty());
}

TEST_P(StoreContract, FiltersTrials) {
  Create();
  Batch batch = For();
  for (const int64_t number : {11, 2, 3, 1}) batch.trials.push_back({Trial(number), 0});
  batch.trials[1].record.set_phase(v1::TRIAL_RUNNING);
  batch.trials[2].record.set_phase(v1::TRIAL_FAILED);
  const int64_t revision = MustCommit(batch);
  const ExperimentKey& key = kMnist;
  EXPECT_THAT(Numbers({.experiment = key}), ElementsAre(1, 2, 3, 11));
  EXPECT_THAT(Numbers({.experiment = key, .live_only = true}), ElementsAre(1, 2, 11));
  EXPECT_THAT(Numbers({.experiment = key, .after_number = 2}), ElementsAre(3, 11));
  EXPECT_THAT(Numbers({.experiment = key, .limit = 2}), ElementsAre(1, 2));
  EXPECT_THAT(Numbers({.experiment = key, .limit = 0}), IsEmpty());
  EXPECT_THAT(Numbers({.experiment = key, .live_only = true, .after_number = 1, .limit = 1}),
              ElementsAre(2));
  EXPECT_THAT(Numbers({.experiment = {"default", "mnis"}}), IsEmpty());

  batch.trials = {{Trial(11, v1::TRIAL_KILLED), revision}, {Trial(2), revision}};
  MustCommit(batch);
  EXPECT_THAT(Numbers({.experiment = key, .changed_after = revision}), ElementsAre(2, 11));
  EXPECT_THAT(Numbers({.experiment = key, .live_only = true, .changed_after = revision}),
              ElementsAre(2));
  EXPECT_THAT(Numbers({.experiment = key, .live_only = true}), ElementsAre(1, 2));
  EXPECT_THAT(Numbers({.experiment = key, .changed_after = revision, .limit = 1}), ElementsAre(2));
}

TEST_P(StoreContract, FiltersAttempts) {
  Create();
  Batch batch = For();
  batch.trials = {{Trial(1), 0}, {Trial(2), 0}};
  batch.attempts = {{Attempt(2, 1, v1::ATTEMPT_RUNNING), 0},
                    {Attempt(1, 2), 0},
                    {Attempt(1, 1, v1::ATTEMPT_CLOSED), 0}};
  const int64_t revision = MustCommit(batch);
  const auto names = [&](const AttemptQuery& query) {
    std::vector<std::string> list;
    for (const auto& row : Must(store_->ListAttempts(query))) {
      list.push_back(absl::StrCat(row.record.trial(), "-a", row.record.number()));
    }
    return list;
  };
  EXPECT_THAT(names({.experiment = kMnist}), ElementsAre("1-a1", "1-a2", "2-a1"));
  EXPECT_THAT(names({.experiment = kMnist, .trial = 1}), ElementsAre("1-a1", "1-a2"));
  EXPECT_THAT(names({.experiment = kMnist, .open_only = true}), ElementsAre("1-a2", "2-a1"));
  EXPECT_THAT(names({.experiment = kMnist, .trial = 1, .open_only = true}), ElementsAre("1-a2"));
  EXPECT_THAT(names({.experiment = kMnist, .trial = 3}), IsEmpty());
  EXPECT_THAT(names({.experiment = kMnist, .limit = 2}), ElementsAre("1-a1", "1-a2"));
  EXPECT_THAT(names({.experiment = kMnist, .after_trial = 1, .after_number = 1}),
              ElementsAre("1-a2", "2-a1"));
  EXPECT_THAT(names({.experiment = kMnist, .after_trial = 1, .after_number = 2, .limit = 5}),
              ElementsAre("2-a1"));
  EXPECT_THAT(names({.experiment = kMnist, .trial = 1, .after_trial = 1, .after_number = 1}),
              ElementsAre("1-a2"));
  EXPECT_THAT(names({.experiment = kMnist, .open_only = true, .after_trial = 1, .limit = 1}),
              ElementsAre("1-a2"));

  batch = For();
  batch.attempts = {{Attempt(2, 1, v1::ATTEMPT_CLOSED), revision}};
  MustCommit(batch);
  EXPECT_THAT(names({.experiment = kMnist, .open_only = true}), ElementsAre("1-a2"));
  EXPECT_THAT(names({.experiment = kMnist, .changed_after = revision}), ElementsAre("2-a1"));
  EXPECT_THAT(names({.experiment = kMnist, .trial = 1, .changed_after = revision}), IsEmpty());
  EXPECT_THAT(names({.experiment = kMnist, .after_trial = 2, .after_number = 1}), IsEmpty());
}

TEST_P(StoreContract, ListsCheckpointsByAttemptAndStep) {
  CreateWithTrial();
  Batch batch = For();
  batch.checkpoints = {
      {Checkpoint(1, 2, 5), 0}, {Checkpoint(1, 1, 10), 0}, {Checkpoint(1, 1, 9), 0}};
  MustCommit(batch);
  std::vector<std::pair<int, int>> found;
  for (const auto& [checkpoint, revision] : Must(store_->ListCheckpoints({kMnist, 1}))) {
    found.emplace_back(checkpoint.attempt(), checkpoint.step());
  }
  EXPECT_THAT(found, ElementsAre(std::pair(1, 9), std::pair(1, 10), std::pair(2, 5)));
  EXPECT_THAT(*store_->ListCheckpoints({kMnist, 2}), IsEmpty());
}

TEST_P(StoreContract, KeepsOddNamesApart) {
  const std::vector<ExperimentKey> keys = {{"default", "a'b"},
                                           {"default", "a\"b"},
                                           {"default", "A"},
                                           {"default", "a"},
                                           {"default", "a%"},
                                           {"default", "a_"},
                                           {"default", "雫-調べ"},
                                           {"default", " "},
                                           {"de/fault", "x"},
                                           {"de", "fault/x"},
                                           {"", "nameless"},
                                           {"default", std::string("nul\x01"
                                                                   "byte")}};
  for (const ExperimentKey& key : keys) Create(key);
  EXPECT_THAT(*store_->ListExperiments(""), SizeIs(keys.size()));
  for (const ExperimentKey& key : keys) {
    EXPECT_EQ(store_->GetExperiment(key)->record.metadata().name(), key.name);
  }
  Delete({"default", "a"});
  EXPECT_TRUE(store_->GetExperiment({"default", "A"}).ok());
  EXPECT_FALSE(store_->GetExperiment({"default", "a"}).ok());
}

TEST_P(StoreContract, FeedsEachRowOnceWithItsNewestRevision) {
  const int64_t first = CreateWithTrial();
  Batch batch = For();
  batch.trials = {{Trial(2), 0}};
  batch.attempts = {{Attempt(1, 1), 0}};
  batch.intents = {Intent(v1::Intent::PAUSE)};
  const int64_t second = MustCommit(batch);
  EXPECT_THAT(Feed(0),
              ElementsAre(absl::StrCat("experiment:0@", first), absl::StrCat("trial:1@", first),
                          absl::StrCat("trial:2@", second), absl::StrCat("attempt:1@", second),
                          absl::StrCat("intent:0@", second)));
  EXPECT_THAT(Feed(second), IsEmpty());

  batch = For();
  batch.trials = {{Trial(1), first}};
  batch.intents_done = {store_->ListIntents(kMnist)->at(0).id()};
  const int64_t third = MustCommit(batch);
  EXPECT_THAT(Feed(first),
              ElementsAre(absl::StrCat("trial:2@", second), absl::StrCat("attempt:1@", second),
                          absl::StrCat("trial:1@", third)));
  EXPECT_EQ(store_->Changes(0, 1)->at(0).experiment, kMnist);
}

TEST_P(StoreContract, FeedNeverPartsACommit) {
  const int64_t first = Create();
  Batch batch = For();
  for (int i = 1; i <= 3; ++i) batch.trials.push_back({Trial(i), 0});
  const int64_t second = MustCommit(batch);
  batch = For();
  batch.trials = {{Trial(4), 0}};
  const int64_t third = MustCommit(batch);
  EXPECT_THAT(Feed(0, 0), IsEmpty());
  EXPECT_THAT(Feed(0, 1), SizeIs(1));
  EXPECT_THAT(Feed(0, 3), ElementsAre(absl::StrCat("experiment:0@", first)));
  EXPECT_THAT(Feed(0, 4), SizeIs(4));
  EXPECT_THAT(Feed(0, 5), SizeIs(5));
  // A Commit larger than the limit comes whole, so that the reader gets on.
  EXPECT_THAT(Feed(first, 1),
              ElementsAre(absl::StrCat("trial:1@", second), absl::StrCat("trial:2@", second),
                          absl::StrCat("trial:3@", second)));
  EXPECT_THAT(Feed(second, 1), ElementsAre(absl::StrCat("trial:4@", third)));
}

TEST_P(StoreContract, DeletesWithAllThatBelongsToIt) {
  const ExperimentKey other{"default", "other"};
  Create(other);
  CreateWithTrial();
  Batch batch = For();
  batch.attempts = {{Attempt(1, 1), 0}};
  batch.checkpoints = {{Checkpoint(1, 1, 1), 0}};
  batch.observations = {Row(1, "loss", 1)};
  batch.events = {Event("Tick")};
  batch.intents = {Intent(v1::Intent::DELETE)};
  const int64_t before = MustCommit(batch);
  const int64_t last_event = store_->ListEvents({.experiment = kMnist})->at(0).id();
  Delete();

  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(kMnist).status()));
  EXPECT_THAT(*store_->ListTrials({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(Feed(before), ElementsAre(absl::StrCat("deleted:0@", before + 1)));
  EXPECT_THAT(Feed(0), SizeIs(2)) << "rows of the deleted experiment are still fed";
  EXPECT_TRUE(store_->GetExperiment(other).ok());

  CreateWithTrial();
  EXPECT_THAT(*store_->ListAttempts({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(*store_->ListCheckpoints({kMnist, 1}), IsEmpty());
  EXPECT_THAT(Observations("", true), IsEmpty());
  EXPECT_THAT(*store_->ListEvents({.experiment = kMnist}), IsEmpty());
  EXPECT_THAT(*store_->ListIntents(kMnist), IsEmpty());
  EXPECT_THAT(Feed(before), ElementsAre(absl::StrCat("deleted:0@", before + 1),
                                        absl::StrCat("experiment:0@", before + 2),
                                        absl::StrCat("trial:1@", before + 2)));
  batch = For();
  batch.events = {Event("Tick")};
  MustCommit(batch);
  EXPECT_GT(store_->ListEvents({.experiment = kMnist})->at(0).id(), last_event);

  Delete();
  EXPECT_THAT(Feed(0), ElementsAre("experiment:0@1", absl::StrCat("deleted:0@", before + 4)))
      << "a name deleted twice is fed once";
}

TEST_P(StoreContract, NumbersEvents) {
  Create();
  Batch batch = For();
  batch.events = {Event("One"), Event("Two")};
  MustCommit(batch);
  batch.events = {Event("Three")};
  MustCommit(batch);
  const auto events = *store_->ListEvents({.experiment = kMnist});
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[0].reason(), "One");
  EXPECT_EQ(events[2].reason(), "Three");
  EXPECT_LT(events[0].id(), events[1].id());
  EXPECT_LT(events[1].id(), events[2].id());
  EXPECT_THAT(*store_->ListEvents({.experiment = kMnist, .after_id = events[1].id()}), SizeIs(1));
  EXPECT_THAT(*store_->ListEvents({.experiment = kMnist, .limit = 2}), SizeIs(2));
}

TEST_P(StoreContract, KeepsIntentsUntilDone) {
  Create();
  Create({"default", "other"});
  Batch batch = For();
  batch.intents = {Intent(v1::Intent::PAUSE), Intent(v1::Intent::SCALE)};
  batch.intents[1].set_parallel_trial_count(8);
  MustCommit(batch);
  auto intents = *store_->ListIntents(kMnist);
  ASSERT_THAT(intents, SizeIs(2));
  EXPECT_EQ(intents[0].verb(), v1::Intent::PAUSE);
  EXPECT_EQ(intents[1].parallel_trial_count(), 8);

  batch = For({"default", "other"});
  batch.intents_done = {intents[0].id()};  // not its own: stays
  MustCommit(batch);
  EXPECT_THAT(*store_->ListIntents(kMnist), SizeIs(2));
  batch = For();
  batch.intents_done = {intents[0].id(), 999'999};  // one that is gone is fine
  MustCommit(batch);
  EXPECT_THAT(*store_->ListIntents(kMnist), SizeIs(1));
}

}  // namespace
}  // namespace shirabe::db
