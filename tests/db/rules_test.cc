// The rules that all stores share. What they mean for a store is asked in tests/contract.
#include "db/commit_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Batch Creation() {
  Batch batch{.experiment = {"default", "mnist"}};
  batch.put.emplace();
  batch.put->record.mutable_metadata()->set_namespace_("default");
  batch.put->record.mutable_metadata()->set_name("mnist");
  return batch;
}

std::string Complaint(const Batch& batch) { return Message(ValidateBatch(batch)); }

TEST(ValidateBatch, NamesTheTextThatIsNotUtf8) {
  Batch batch = Creation();
  EXPECT_EQ(Complaint(batch), "");
  (*batch.put->record.mutable_metadata()->mutable_labels())["team"] = "r\xe9seau";
  EXPECT_THAT(Complaint(batch), HasSubstr("metadata.labels.value"));

  batch = Creation();
  auto* parameter = batch.put->record.mutable_spec()->add_parameters();
  parameter->mutable_feasible_space()->add_list("fine, 調べ");
  EXPECT_EQ(Complaint(batch), "");
  parameter->mutable_feasible_space()->add_list("\xc0\xaf");  // '/' encoded too long
  EXPECT_THAT(Complaint(batch), HasSubstr("spec.parameters.feasible_space.list"));

  batch = Creation();
  batch.attempts.resize(1);
  batch.attempts[0].record.set_namespace_("default");
  batch.attempts[0].record.set_experiment("mnist");
  batch.attempts[0].record.set_trial(1);
  batch.attempts[0].record.set_number(1);
  batch.attempts[0].record.set_token("\xff\x00");  // bytes may be anything
  EXPECT_EQ(Complaint(batch), "");
  batch.attempts[0].record.set_log_tail("ELF\x80\x81");
  EXPECT_THAT(Complaint(batch), HasSubstr("attempt mnist-1-a1"));
  EXPECT_THAT(Complaint(batch), HasSubstr("log_tail"));
}

std::vector<int64_t> Taken(const std::vector<int64_t>& revisions, int64_t limit) {
  std::vector<Change> changes;
  for (const int64_t revision : revisions) {
    if (!AddChange({.revision = revision}, limit, &changes)) break;
  }
  std::vector<int64_t> taken;
  for (const Change& change : changes) taken.push_back(change.revision);
  return taken;
}

TEST(LeaseLost, IsATypeOfItsOwnAndNotACode) {
  EXPECT_TRUE(IsLeaseLost(LeaseLostError("it went")));
  EXPECT_TRUE(IsLeaseLost(Prefix("while committing", LeaseLostError("it went"))));
  EXPECT_EQ(Message(Prefix("while committing", LeaseLostError("it went"))),
            "while committing: it went");
  EXPECT_FALSE(IsLeaseLost(absl::FailedPreconditionError("lease lost")));
  EXPECT_FALSE(IsLeaseLost(absl::AbortedError("lease lost")));
  EXPECT_FALSE(IsLeaseLost(absl::OkStatus()));
}

TEST(AddChange, TakesWholeCommits) {
  EXPECT_THAT(Taken({1, 2, 2, 3}, -1), ElementsAre(1, 2, 2, 3));
  EXPECT_THAT(Taken({1, 2, 2, 3}, 0), ElementsAre());
  EXPECT_THAT(Taken({1, 2, 2, 3}, 1), ElementsAre(1));
  EXPECT_THAT(Taken({1, 2, 2, 3}, 2), ElementsAre(1));
  EXPECT_THAT(Taken({1, 2, 2, 3}, 3), ElementsAre(1, 2, 2));
  EXPECT_THAT(Taken({2, 2, 2, 3}, 1), ElementsAre(2, 2, 2));
  EXPECT_THAT(Taken({1, 2, 2, 2}, 3), ElementsAre(1));
}

}  // namespace
}  // namespace shirabe::db
