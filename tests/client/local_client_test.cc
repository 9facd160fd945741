#include "client/local_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/process_id.h"
#include "tests/support/stored.h"

namespace shirabe::client {
namespace {

using ::testing::HasSubstr;

v1::Attempt MakeAttempt(int64_t trial) {
  v1::Attempt attempt;
  attempt.set_namespace_("default");
  attempt.set_experiment("digits");
  attempt.set_trial(trial);
  attempt.set_number(1);
  attempt.set_token("secret");
  return attempt;
}

void PutAttempt(Stored& stored, const v1::Attempt& attempt) {
  db::Batch batch;
  batch.experiment = stored.key();
  batch.attempts.push_back({attempt, 0});
  stored.Commit(batch);
}

v1::Lease TakeLease(Stored& stored, const std::string& holder) {
  return stored.store()
      .AcquireLease({.experiment = stored.key(),
                     .holder = holder,
                     .now = stored.clock.Now(),
                     .ttl = absl::Seconds(15)})
      .value();
}

TEST(LocalClientTest, ADatabaseThatNobodyNamedMayNotBeThereYet) {
  const StateLocation place{
      .home = "/nowhere", .db = "sqlite:/nowhere/shirabe.db", .ns = "default"};
  const auto client = LocalClient::Open({.place = place, .clock = RealClock()});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->ListExperiments("")->empty());
  StateLocation named = place;
  named.db_is_default = false;
  EXPECT_TRUE(absl::IsNotFound(LocalClient::Open({.place = named, .clock = RealClock()}).status()));
}

TEST(LocalClientTest, AnswersEveryMethodOfTheService) {
  Stored stored;
  const auto& service = *MethodOf("GetTrial").service();
  for (int i = 0; i < service.method_count(); ++i) {
    const Method& method = *service.method(i);
    const std::unique_ptr<google::protobuf::Message> request(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(method.input_type())
            ->New());
    const Status status =
        stored.client().Call(method, *request, [&](google::protobuf::Message& reply) {
          EXPECT_EQ(reply.GetDescriptor(), method.output_type());
          return absl::OkStatus();
        });
    EXPECT_FALSE(absl::IsUnimplemented(status)) << method.name() << " " << status;
  }
}

TEST(LocalClientTest, TokensStayInTheStore) {
  Stored stored;
  stored.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  PutAttempt(stored, MakeAttempt(1));
  const auto attempts = stored.client().ListAttempts({.experiment = stored.key()});
  ASSERT_TRUE(attempts.ok()) << attempts.status();
  ASSERT_EQ(attempts->size(), 1u);
  EXPECT_EQ(attempts->front().token(), "");
}

TEST(LocalClientTest, ReadsALogFromAnOffset) {
  Stored stored;
  const AttemptKey key{{stored.key(), 1}, 1};
  EXPECT_TRUE(absl::IsNotFound(stored.client().ReadLog(key, 0, 10).status()));
  const std::string path = stored.client().LogLocation(key);
  ASSERT_TRUE(MakeDirs(std::filesystem::path(path).parent_path()).ok());
  ASSERT_TRUE(WriteFileAtomic(path, "0123456789abc").ok());
  const auto first = stored.client().ReadLog(key, 0, 10);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->text(), "0123456789");
  EXPECT_FALSE(first->at_end());
  const auto rest = stored.client().ReadLog(key, first->next(), 10);
  EXPECT_EQ(rest->text(), "abc");
  EXPECT_TRUE(rest->at_end());
  EXPECT_EQ(rest->next(), 13);
  EXPECT_EQ(stored.client().ReadLog(key, 99, 10)->text(), "");
}

TEST(LocalClientTest, DoesNotMixTheFilesOfTwoDatabases) {
  Stored stored(/*read_only=*/false);
  ASSERT_TRUE(MakeDirs(stored.home() + "/trials/default/left/left-1").ok());
  const Status status = stored.client().Submit(MakeExperiment("left"), {}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("trials/default/left has the files"));
  EXPECT_TRUE(absl::IsNotFound(stored.client().GetExperiment({"default", "left"}).status()));
  // One that is in the database goes on beside its files.
  ASSERT_TRUE(MakeDirs(stored.home() + "/trials/default/digits/digits-1").ok());
  EXPECT_TRUE(stored.client().Submit(stored.experiment, {}).ok());
}

TEST(LocalClientTest, NamesWhoRunsAnExperiment) {
  Stored stored;
  EXPECT_EQ(stored.client().Holder(stored.key()).value(), "");
  TakeLease(stored, ToString(ThisProcess()));
  EXPECT_EQ(stored.client().Holder(stored.key()).value(),
            absl::StrCat("process ", getpid(), " on ", ThisProcess().host));
  stored.clock.Advance(absl::Seconds(16));  // the lease runs out
  EXPECT_EQ(stored.client().Holder(stored.key()).value(), "");
}

TEST(LocalClientTest, ADeadProcessRunsNothing) {
  Stored stored;
  ProcessId dead = ThisProcess();
  dead.start += 1;  // the same pid, another process
  TakeLease(stored, ToString(dead));
  EXPECT_EQ(stored.client().Holder(stored.key()).value(), "");
}

TEST(LocalClientTest, DeletesWhatNobodyRuns) {
  Stored stored(/*read_only=*/false);
  stored.Put(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5));
  const std::string log = stored.client().LogLocation({{stored.key(), 1}, 1});
  ASSERT_TRUE(MakeDirs(std::filesystem::path(log).parent_path()).ok());
  ASSERT_TRUE(WriteFileAtomic(log, "x").ok());
  const Status status = stored.client().Delete(stored.key(), absl::Seconds(30), [](absl::Duration) {
    poll(nullptr, 0, 10);
    return true;
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_TRUE(absl::IsNotFound(stored.client().GetExperiment(stored.key()).status()));
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_TRUE(absl::IsNotFound(
      stored.client().Delete(stored.key(), absl::Seconds(1), [](absl::Duration) { return true; })));
}

TEST(LocalClientTest, AsksTheHolderToDeleteAndGivesUpInTime) {
  Stored stored(/*read_only=*/false);
  TakeLease(stored, "other-host:1:2:boot");
  const Status status =
      stored.client().Delete(stored.key(), absl::Seconds(1), [&](absl::Duration time) {
        stored.clock.Advance(time);
        return true;
      });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("process 1 on other-host"));
  const auto intents = stored.store().ListIntents(stored.key());
  ASSERT_EQ(intents->size(), 1u);
  EXPECT_EQ(intents->front().verb(), v1::Intent::DELETE);
}

TEST(LocalClientTest, SuggestsWithoutStoringAnything) {
  Stored stored;
  const int64_t before = stored.client().Revision().value();
  const auto first = stored.client().Suggest(stored.experiment, 3);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->points_size(), 3);
  ASSERT_EQ(first->points(0).assignments_size(), 3);
  EXPECT_EQ(first->points(0).assignments(0).name(), "lr");
  EXPECT_EQ(stored.client().Revision().value(), before);
  // The same for an experiment that is not stored: its name decides the seed.
  const auto again = stored.client().Suggest(stored.experiment, 3);
  EXPECT_EQ(again->points(2).assignments(0).number(), first->points(2).assignments(0).number());
  v1::Experiment other = MakeExperiment("other");
  const auto fresh = stored.client().Suggest(other, 1);
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_NE(fresh->points(0).assignments(0).number(), first->points(0).assignments(0).number());
}

TEST(LocalClientTest, StartPointsAreSuggestedFirst) {
  Stored stored;
  v1::Experiment experiment = MakeExperiment("starts");
  auto& fields = *experiment.mutable_spec()->mutable_shirabe()->add_start()->mutable_fields();
  fields["lr"].set_string_value("0.01");
  fields["bs"].set_string_value("8");
  fields["opt"].set_string_value("sgd");
  const auto candidates = stored.client().Suggest(experiment, 2);
  ASSERT_TRUE(candidates.ok()) << candidates.status();
  ASSERT_EQ(candidates->points_size(), 2);
  EXPECT_EQ(candidates->points(0).assignments(0).number(), 0.01);
  EXPECT_EQ(candidates->points(0).assignments(1).integer(), 8);
}

}  // namespace
}  // namespace shirabe::client
