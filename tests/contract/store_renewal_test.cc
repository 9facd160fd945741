// What db/bulk_leases.h promises: all leases of a holder at once, counting experiments, removing
// rows.
#include <algorithm>

#include "db/bulk_leases.h"
#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StoreRenewalContract : public StoreContract {
 protected:
  StatusOr<v1::Lease> AcquireOf(const std::string& name, const std::string& holder,
                                absl::Time now = kNow) {
    return store_->AcquireLease({.experiment = {"default", name},
                                 .holder = holder,
                                 .now = now,
                                 .ttl = absl::Seconds(10),
                                 .dead_epoch = std::nullopt});
  }
  // "name@epoch", sorted.
  std::vector<std::string> Renew(const std::string& holder, absl::Time now) {
    std::vector<std::string> held;
    for (const LeaseClaim& claim : Must(BulkOf(*store_).RenewLeases(
             {.holder = holder, .now = now, .ttl = absl::Seconds(10)}))) {
      held.push_back(absl::StrCat(claim.experiment.name, "@", claim.epoch));
    }
    std::sort(held.begin(), held.end());
    return held;
  }
  absl::Time ExpiryOf(const std::string& name) {
    return FromProto(Must(store_->GetLease({"default", name})).expiry());
  }
};

TEST_P(StoreRenewalContract, RenewsAllLeasesOfAHolderAtOnce) {
  for (const char* name : {"one", "two", "theirs"}) Create({"default", name});
  ASSERT_TRUE(AcquireOf("one", "a").ok());
  ASSERT_TRUE(AcquireOf("two", "a").ok());
  ASSERT_TRUE(AcquireOf("theirs", "b").ok());
  const int64_t revision = *store_->Revision();

  const absl::Time later = kNow + absl::Seconds(9);
  EXPECT_THAT(Renew("a", later), ElementsAre("one@1", "two@1"));
  EXPECT_EQ(*store_->Revision(), revision) << "a renewal is no change that others follow";
  EXPECT_EQ(ExpiryOf("one"), later + absl::Seconds(10));
  EXPECT_EQ(ExpiryOf("two"), later + absl::Seconds(10));
  EXPECT_EQ(ExpiryOf("theirs"), kNow + absl::Seconds(10));

  const absl::Time then = kNow + absl::Seconds(12);
  EXPECT_TRUE(absl::IsAlreadyExists(AcquireOf("one", "c", then).status()));
  EXPECT_EQ(AcquireOf("theirs", "c", then)->epoch(), 2);
  EXPECT_EQ(AcquireOf("one", "c", later + absl::Seconds(10))->epoch(), 2) << "it has expired";
}

TEST_P(StoreRenewalContract, RenewsNoLeaseThatWasLost) {
  Create({"default", "lost"});
  Create({"default", "kept"});
  ASSERT_TRUE(AcquireOf("lost", "a").ok());
  ASSERT_TRUE(AcquireOf("kept", "a").ok());
  const absl::Time late = kNow + absl::Seconds(11);
  ASSERT_EQ(AcquireOf("lost", "b", late)->epoch(), 2);
  EXPECT_THAT(Renew("a", late), ElementsAre("kept@1")) << "expired, and nobody took it";
  EXPECT_EQ(ExpiryOf("lost"), late + absl::Seconds(10));
  EXPECT_EQ(store_->GetLease({"default", "lost"})->holder(), "b");
  EXPECT_TRUE(absl::IsAlreadyExists(AcquireOf("lost", "a", late).status()));
  EXPECT_THAT(Renew("nobody", late), IsEmpty());
}

TEST_P(StoreRenewalContract, ARenewalIsForgottenWithTheLease) {
  Create();
  ASSERT_TRUE(Acquire("a").ok());
  EXPECT_THAT(Renew("a", kNow), ElementsAre("mnist@1"));
  ASSERT_TRUE(store_->ReleaseLease({kMnist, 1}).ok());
  EXPECT_THAT(Renew("a", kNow), IsEmpty());
  EXPECT_EQ(Acquire("b")->epoch(), 2);
  EXPECT_EQ(ExpiryOf("mnist"), kNow + absl::Seconds(10));
}

TEST_P(StoreRenewalContract, AnotherStoreSeesTheRenewal) {
  if (!CanShare()) GTEST_SKIP() << "what is in memory is this store's alone";
  Create();
  ASSERT_TRUE(Acquire("a").ok());
  const auto other = OpenAgain();
  ASSERT_THAT(Renew("a", kNow + absl::Seconds(9)), ElementsAre("mnist@1"));
  LeaseRequest request{.experiment = kMnist,
                       .holder = "b",
                       .now = kNow + absl::Seconds(15),
                       .ttl = absl::Seconds(10)};
  EXPECT_TRUE(absl::IsAlreadyExists(other->AcquireLease(request).status()));
  request.dead_epoch = 1;
  EXPECT_EQ(other->AcquireLease(request)->epoch(), 2) << "its holder is known to be dead";
}

TEST_P(StoreRenewalContract, ReleasesManyAtOnce) {
  for (const char* name : {"one", "two", "theirs"}) Create({"default", name});
  ASSERT_TRUE(AcquireOf("one", "a").ok());
  ASSERT_TRUE(AcquireOf("two", "a").ok());
  ASSERT_TRUE(AcquireOf("theirs", "b").ok());
  ASSERT_TRUE(
      BulkOf(*store_)
          .ReleaseLeases({{{"default", "one"}, 1}, {{"default", "theirs"}, 7}, {{"no", "such"}, 1}})
          .ok());
  EXPECT_THAT(Renew("a", kNow), ElementsAre("two@1"));
  EXPECT_EQ(store_->GetLease({"default", "theirs"})->holder(), "b");
  EXPECT_EQ(AcquireOf("one", "c")->epoch(), 2);
  EXPECT_TRUE(BulkOf(*store_).ReleaseLeases({}).ok());
}

TEST_P(StoreRenewalContract, HoldersAreNoExperiments) {
  Create();
  ASSERT_TRUE(Acquire("a").ok());
  Renew("a", kNow);
  EXPECT_THAT(Must(store_->ListExperiments("")), SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(store_->GetLease({"", "holder:a"}).status()));
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment({"", "holder:a"}).status()));
}

TEST_P(StoreRenewalContract, RemovesRowsInSteps) {
  CreateWithTrial();
  Batch batch = For();
  batch.trials = {{Trial(2), 0}, {Trial(3), 0}};
  for (int trial = 1; trial <= 3; ++trial) batch.attempts.push_back({Attempt(trial, 1), 0});
  batch.checkpoints = {{Checkpoint(1, 1, 1), 0}};
  for (int step = 0; step < 7; ++step) batch.observations.push_back(Row(step, "loss", step));
  batch.events = {Event("one"), Event("two")};
  MustCommit(batch);
  Create({"default", "other"});
  ASSERT_TRUE(Acquire("a").ok());
  const int64_t revision = *store_->Revision();
  const Status theirs = BulkOf(*store_).RemoveRows({kMnist, 2}, 4).status();
  if (CanShare()) {
    EXPECT_TRUE(absl::IsFailedPrecondition(theirs)) << theirs;
    EXPECT_TRUE(absl::IsNotFound(BulkOf(*store_).RemoveRows({{"no", "such"}, 1}, 4).status()));
  }

  int steps = 1;
  while (Must(BulkOf(*store_).RemoveRows({kMnist, 1}, 4)) && steps < 100) {
    ++steps;
    const std::vector<int64_t> numbers = Numbers({.experiment = kMnist});
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], static_cast<int64_t>(i) + 1) << "there are no gaps on the way";
    }
  }
  EXPECT_LT(steps, 100);
  if (CanShare()) {
    EXPECT_GT(steps, 1);
    EXPECT_THAT(Observations(), IsEmpty());
    EXPECT_THAT(Numbers({.experiment = kMnist}), IsEmpty());
    EXPECT_THAT(Must(store_->ListEvents({.experiment = kMnist})), IsEmpty());
  }
  EXPECT_EQ(*store_->Revision(), revision);
  EXPECT_TRUE(store_->GetExperiment(kMnist).ok()) << "it is there until it is deleted";
  batch = For();
  batch.epoch = 1;
  batch.delete_experiment = true;
  MustCommit(batch);
  EXPECT_TRUE(store_->GetExperiment({"default", "other"}).ok());
}

TEST_P(StoreRenewalContract, CountsExperiments) {
  EXPECT_EQ(Must(BulkOf(*store_).CountExperiments("")), 0);
  Create();
  Create({"default", "two"});
  Create({"other", "three"});
  EXPECT_EQ(Must(BulkOf(*store_).CountExperiments("default")), 2);
  EXPECT_EQ(Must(BulkOf(*store_).CountExperiments("other")), 1);
  EXPECT_EQ(Must(BulkOf(*store_).CountExperiments("none")), 0);
  EXPECT_EQ(Must(BulkOf(*store_).CountExperiments("")), 3);
  Delete();
  EXPECT_EQ(Must(BulkOf(*store_).CountExperiments("default")), 1);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreRenewalContract,
                         ::testing::ValuesIn(Registry<StoreInfo>::Get().Names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace shirabe::db
