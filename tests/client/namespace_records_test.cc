// Records of a namespace whose name is another's by now: nobody sees them, and they go.
#include "client/records/namespace_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/stored.h"

namespace shirabe::client {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class NamespaceRecordsTest : public testing::Test {
 protected:
  NamespaceRecordsTest() {
    stored_.client().SetNamespaces([this](const std::string& ns) -> StatusOr<std::string> {
      if (away_) return absl::UnavailableError("away");
      const auto found = uids_.find(ns);
      if (found == uids_.end()) return absl::NotFoundError("no such namespace");
      return found->second;
    });
    stored_.experiment.mutable_status()->mutable_shirabe()->set_namespace_uid("old");
    stored_.PutExperiment();
    stored_.Put(MakeTrial(1, v1::TRIAL_SUCCEEDED));
  }
  bool IsSeen() {
    LocalClient& client = stored_.client();
    const ExperimentKey key = stored_.key();
    const bool seen = client.GetExperiment(key).ok();
    EXPECT_EQ(client.GetTrial({key, 1}).ok(), seen);
    EXPECT_EQ(client.ListTrials({.experiment = key}).ok(), seen);
    EXPECT_EQ(client.ListAttempts({.experiment = key}).ok(), seen);
    EXPECT_EQ(client.ListEvents({.experiment = key}).ok(), seen);
    EXPECT_EQ(client.ListCheckpoints({key, 1}).ok(), seen);
    EXPECT_EQ(client.ListObservations({.trial = {key, 1}}).ok(), seen);
    EXPECT_EQ(client.ListExperiments(key.ns)->size(), seen ? 1u : 0u);
    EXPECT_EQ(client.ListExperiments("")->size(), seen ? 1u : 0u);
    return seen;
  }

  Stored stored_{/*read_only=*/false};
  std::map<std::string, std::string> uids_ = {{"default", "old"}};
  bool away_ = false;
};

TEST_F(NamespaceRecordsTest, AreThoseOfTheNamespaceAsItIs) {
  EXPECT_TRUE(IsSeen());
  EXPECT_THAT(*stored_.store().ListIntents(stored_.key()), IsEmpty());
}

TEST_F(NamespaceRecordsTest, OfOneThatGaveItsNameAwayNobodySees) {
  uids_["default"] = "new";
  EXPECT_FALSE(IsSeen());
  const auto intents = *stored_.store().ListIntents(stored_.key());
  ASSERT_THAT(intents, SizeIs(1)) << "it is asked for once";
  EXPECT_EQ(intents[0].verb(), v1::Intent::DELETE);
  EXPECT_TRUE(absl::IsNotFound(stored_.client().ReadLog({{stored_.key(), 1}, 1}, 0, 1).status()));
  v1::Intent pause;
  pause.set_verb(v1::Intent::PAUSE);
  EXPECT_TRUE(absl::IsNotFound(stored_.client().Send(stored_.key(), pause)));
  EXPECT_TRUE(absl::IsAlreadyExists(stored_.client().Submit(stored_.experiment, {}).status()));
}

TEST_F(NamespaceRecordsTest, OfOneThatIsGoneNeither) {
  uids_.clear();
  EXPECT_FALSE(IsSeen());
}

TEST_F(NamespaceRecordsTest, WhereNobodyCanBeAskedNothingGoes) {
  away_ = true;
  EXPECT_TRUE(IsSeen());
  EXPECT_THAT(*stored_.store().ListIntents(stored_.key()), IsEmpty());
}

TEST_F(NamespaceRecordsTest, ThoseOfNoNamespacesUidAreOfTheName) {
  stored_.experiment.mutable_status()->mutable_shirabe()->clear_namespace_uid();
  stored_.PutExperiment();
  uids_["default"] = "new";
  EXPECT_TRUE(IsSeen());
}

TEST_F(NamespaceRecordsTest, ANewExperimentIsOfTheNamespaceAsItIs) {
  uids_["default"] = "new";
  v1::Experiment another = stored_.experiment;
  another.mutable_metadata()->set_name("another");
  another.mutable_status()->mutable_shirabe()->set_namespace_uid("made-up");
  const auto made = stored_.client().Submit(another, {});
  ASSERT_TRUE(made.ok()) << made.status();
  const auto record = stored_.store().GetExperiment({"default", "another"});
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->record.status().shirabe().namespace_uid(), "new");
}

}  // namespace
}  // namespace shirabe::client
