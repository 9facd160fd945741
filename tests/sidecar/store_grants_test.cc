// What trial/pod/store_grants.h lets a pod do, and what not. Nothing is asked of a store.
#include "trial/pod/store_grants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "artifacts/s3_request.h"
#include "base/file_io.h"
#include "tests/sidecar/pod_harness.h"

namespace shirabe::trial {
namespace {

using sidecar::Folder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const ExperimentKey kExperiment{"lab", "exp"};
const std::string kSha(64, 'a');

AttemptKey Key(int64_t trial, int32_t number) { return {{kExperiment, trial}, number}; }

class StoreGrantsTest : public testing::Test {
 protected:
  StoreGrantsTest() : layout_(folder_.path()) {
    const std::string credentials = folder_.path() + "/credentials";
    CHECK(WriteFileAtomic(credentials, "access\nsecret\n").ok());
    CHECK(chmod(credentials.c_str(), 0600) == 0);
    v1::ArtifactStores entries;
    v1::ArtifactStore& bucket = *entries.add_stores();
    bucket.set_name("team");
    bucket.set_type("s3");
    bucket.add_namespaces("lab");
    bucket.set_endpoint("http://127.0.0.1:1");
    bucket.set_bucket("bucket");
    bucket.mutable_credentials()->set_file(credentials);
    v1::ArtifactStore& directory = *entries.add_stores();
    directory.set_name("disk");
    directory.set_type("directory");
    directory.add_namespaces("lab");
    directory.set_root(folder_.path());
    grants_ = std::make_unique<StoreGrants>(&layout_, *artifacts::StoreTable::Create(entries));
    spec_.mutable_artifacts()->set_store("team");
    spec_.mutable_artifacts()->set_prefix("vision");
    spec_.mutable_artifacts()->set_checkpoints(true);
    spec_.mutable_code()->set_store("team");
    spec_.mutable_code()->set_package("sha256:" + kSha);
    grants_->SetPolicy(kExperiment, spec_);
  }

  static v1::GrantRequest Ask(v1::StoreAction action, int64_t trial, int32_t attempt,
                              const std::string& sha256 = "") {
    v1::GrantRequest request;
    request.set_action(action);
    request.mutable_copy()->set_trial(trial);
    request.mutable_copy()->set_attempt(attempt);
    request.mutable_copy()->set_step(10);
    request.mutable_copy()->set_sha256(sha256);
    return request;
  }
  absl::StatusCode CodeOf(const v1::GrantRequest& request, const AttemptKey& key) const {
    return grants_->Grant(key, request).status().code();
  }

  const Folder folder_;
  const FileLayout layout_;
  std::unique_ptr<StoreGrants> grants_;
  v1::ShirabeSpec spec_;
};

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

TEST_F(StoreGrantsTest, TheKeyFollowsFromTheAttempt) {
  const auto reply = grants_->Grant(Key(3, 2), Ask(v1::READ_OBJECT, 3, 2, kSha));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(reply->url(), AllOf(HasSubstr("/bucket/lab/vision/_/exp/3/2/10/files/" + kSha + "?"),
                                  HasSubstr("X-Amz-Expires=900"), Not(HasSubstr("secret"))));
  const auto manifest = grants_->Grant(Key(3, 2), Ask(v1::REMOVE_OBJECT, 3, 2));
  EXPECT_THAT(manifest->url(), HasSubstr("/exp/3/2/10/manifest.json?"));
  const auto list = grants_->Grant(Key(3, 2), Ask(v1::LIST_OBJECTS, 3, 2));
  EXPECT_EQ(list->key(), "lab/vision/_/exp/3/2/10/");
}

TEST_F(StoreGrantsTest, ARemovedExperimentIsGivenNothing) {
  grants_->Forget(kExperiment);
  EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, 3, 2, kSha), Key(3, 2)), absl::StatusCode::kUnavailable);
  grants_->SetPolicy(kExperiment, spec_);
  EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, 3, 2, kSha), Key(3, 2)), absl::StatusCode::kOk);
}

TEST_F(StoreGrantsTest, WhatIsPutHasItsLengthAndDigestSigned) {
  v1::GrantRequest request = Ask(v1::PUT_OBJECT, 3, 2, kSha);
  request.set_bytes(11);
  request.set_md5("XrY7u+Ae7tCTyyK7j1rNww==");
  const auto reply = grants_->Grant(Key(3, 2), request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_THAT(reply->url(), HasSubstr("SignedHeaders=content-length%3Bcontent-md5%3Bhost"));
  EXPECT_EQ(reply->headers().at("content-length"), "11");
  request.set_bytes(kMaxGrantedBytes + 1);
  EXPECT_EQ(CodeOf(request, Key(3, 2)), kRefused);
  request.set_bytes(-1);
  EXPECT_EQ(CodeOf(request, Key(3, 2)), kRefused);
  request.set_bytes(11);
  request.set_md5("x\r\nx-amz-acl: public");
  EXPECT_EQ(CodeOf(request, Key(3, 2)), kRefused);
}

TEST_F(StoreGrantsTest, AnothersIsRefusedWhateverIsDoneWithIt) {
  for (int action = 0; action <= v1::StoreAction_MAX; ++action) {
    for (const AttemptKey& other : {Key(4, 1), Key(3, 3), Key(4, 2)}) {
      v1::GrantRequest request =
          Ask(static_cast<v1::StoreAction>(action), other.trial.number, other.number, kSha);
      request.set_upload("u");
      request.set_part(1);
      EXPECT_EQ(CodeOf(request, Key(3, 2)), kRefused) << action << " " << AttemptName(other);
    }
    if (action == v1::READ_OBJECT) continue;
    EXPECT_EQ(CodeOf(Ask(static_cast<v1::StoreAction>(action), 3, 1), Key(3, 2)), kRefused)
        << "of an earlier attempt: to read only";
  }
  EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, 3, 1), Key(3, 2)), absl::StatusCode::kOk);
}

TEST_F(StoreGrantsTest, NoNameIsAPath) {
  for (const std::string& name :
       {std::string("../../../4/1/10/manifest.json"), std::string("manifest.json"), kSha + "/x",
        std::string(64, 'A'), std::string(63, 'a'), std::string("%2e%2e"), std::string("a\0b", 3),
        std::string(5000, 'a')}) {
    EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, 3, 2, name), Key(3, 2)), kRefused) << name.substr(0, 80);
    v1::GrantRequest list = Ask(v1::LIST_OBJECTS, 3, 2);
    list.set_after(name);
    EXPECT_EQ(CodeOf(list, Key(3, 2)), kRefused) << name.substr(0, 80);
  }
  for (const int64_t number : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, number, 2), Key(3, 2)), kRefused);
    v1::GrantRequest request = Ask(v1::READ_OBJECT, 3, 2);
    request.mutable_copy()->set_step(number == 0 ? -1 : number);
    EXPECT_EQ(CodeOf(request, Key(3, 2)), kRefused);
  }
  EXPECT_EQ(CodeOf(v1::GrantRequest(), Key(3, 2)), kRefused) << "nothing";
  for (const std::string& upload : {std::string(), std::string("a b"), std::string(2000, 'u')}) {
    v1::GrantRequest part = Ask(v1::PUT_PART, 3, 2, kSha);
    part.set_upload(upload);
    part.set_part(1);
    EXPECT_EQ(CodeOf(part, Key(3, 2)), kRefused) << upload.substr(0, 20);
  }
}

TEST_F(StoreGrantsTest, OnlyWhatTheExperimentWants) {
  v1::GrantRequest outputs = Ask(v1::PUT_OBJECT, 3, 2, kSha);
  outputs.mutable_copy()->set_step(0);
  EXPECT_EQ(CodeOf(outputs, Key(3, 2)), absl::StatusCode::kFailedPrecondition);
  spec_.mutable_artifacts()->set_outputs(true);
  spec_.clear_code();
  grants_->SetPolicy(kExperiment, spec_);
  EXPECT_EQ(CodeOf(outputs, Key(3, 2)), absl::StatusCode::kOk);
  outputs.set_action(v1::READ_OBJECT);
  EXPECT_EQ(CodeOf(outputs, Key(3, 3)), kRefused) << "outputs are resumed from by nothing";
  v1::GrantRequest code;
  code.set_code(true);
  code.set_action(v1::READ_OBJECT);
  EXPECT_EQ(CodeOf(code, Key(3, 2)), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(outputs, {{{"lab", "other"}, 3}, 2}), absl::StatusCode::kUnavailable);
}

TEST_F(StoreGrantsTest, CodeIsReadAndNothingElse) {
  v1::GrantRequest code;
  code.set_code(true);
  code.set_action(v1::READ_OBJECT);
  EXPECT_THAT(grants_->Grant(Key(1, 1), code)->url(), HasSubstr(kSha));
  for (const v1::StoreAction action : {v1::PUT_OBJECT, v1::REMOVE_OBJECT, v1::LIST_OBJECTS}) {
    code.set_action(action);
    EXPECT_EQ(CodeOf(code, Key(1, 1)), kRefused);
  }
}

// As population-based training and rungs have it; known again by the process that comes next.
TEST_F(StoreGrantsTest, AnotherTrialsCheckpointIsReadWhereItIsGoneOnFrom) {
  EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, 1, 5), Key(3, 2)), kRefused);
  AttemptRequest request;
  request.key = Key(3, 2);
  request.cluster.artifacts = spec_.artifacts();
  v1::Checkpoint parent;
  parent.set_namespace_("lab");
  parent.set_experiment("exp");
  parent.set_trial(1);
  parent.set_attempt(5);
  parent.set_step(10);
  request.resume = {parent};
  ASSERT_TRUE(MakeDirs(layout_.Paths(request.key).dir).ok());
  ASSERT_TRUE(grants_->Record(request).ok());
  EXPECT_EQ(CodeOf(Ask(v1::READ_OBJECT, 1, 5), Key(3, 2)), absl::StatusCode::kOk);
  v1::GrantRequest other = Ask(v1::READ_OBJECT, 1, 5);
  other.mutable_copy()->set_step(11);
  EXPECT_EQ(CodeOf(other, Key(3, 2)), kRefused);
  EXPECT_EQ(CodeOf(Ask(v1::REMOVE_OBJECT, 1, 5), Key(3, 2)), kRefused);
}

TEST_F(StoreGrantsTest, AStoreThatPodsCannotReachIsRefusedByItsField) {
  EXPECT_EQ(grants_->Check(kExperiment), absl::OkStatus());
  spec_.mutable_artifacts()->set_store("disk");
  grants_->SetPolicy(kExperiment, spec_);
  const Status status = grants_->Check(kExperiment);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status),
              AllOf(HasSubstr("spec.shirabe.artifacts.store: \"disk\""), HasSubstr("s3 or gcs")));
}

// Each request that a store of S3 makes is one that can be given away, and the same again.
TEST(PresignedRequests, AreReadBackFromWhatTheyBecome) {
  using artifacts::PresignedRequest;
  for (const PresignedRequest& one : std::vector<PresignedRequest>{
           {.action = v1::READ_OBJECT, .key = "a/b"},
           {.action = v1::REMOVE_OBJECT, .key = "a/b"},
           {.action = v1::PUT_OBJECT, .key = "a/b"},
           {.action = v1::LIST_OBJECTS, .key = "a/", .after = "a/b"},
           {.action = v1::BEGIN_PARTS, .key = "a/b"},
           {.action = v1::PUT_PART, .key = "a/b", .upload = "u&=?", .part = 7},
           {.action = v1::END_PARTS, .key = "a/b", .upload = "u"},
           {.action = v1::DROP_PARTS, .key = "a/b", .upload = "u"}}) {
    const auto request = artifacts::RequestOf(one);
    ASSERT_TRUE(request.ok()) << request.status();
    const auto back = artifacts::PermissionFor(*request);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->action, one.action);
    EXPECT_EQ(back->key, one.key);
    EXPECT_EQ(back->after, one.after);
    EXPECT_EQ(back->upload, one.upload);
    EXPECT_EQ(back->part, one.part);
  }
  EXPECT_FALSE(artifacts::RequestOf({.action = v1::STORE_ACTION_UNSPECIFIED, .key = "a"}).ok());
  EXPECT_FALSE(artifacts::RequestOf({.action = v1::READ_OBJECT, .key = "../a"}).ok());
}

}  // namespace
}  // namespace shirabe::trial
