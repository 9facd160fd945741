// Checkpoints, outputs and code between a pod without credentials and a real S3 server: by URLs
// that the server of Shirabe signs (trial/pod/store_grants.h).
#include "sidecar/store_access.h"

#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "artifacts/package/code_package.h"
#include "artifacts/s3_store.h"
#include "base/sha256.h"
#include "net/http_client.h"
#include "sidecar/pod_init.h"
#include "tests/artifacts/archives.h"
#include "tests/artifacts/objects.h"
#include "tests/kube/fake_api_server.h"
#include "tests/sidecar/store_harness.h"
#include "trial/checkpoint/checkpoint_copy.h"

namespace shirabe::sidecar {
namespace {

using artifacts::S3Server;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

// Answers each request with a status.
class RefusingLink : public ServerLink {
 public:
  explicit RefusingLink(absl::StatusCode code) : code_(code) {}
  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest&, absl::Duration) override { return Answer(); }
  StatusOr<v1::GrantReply> Grant(const v1::GrantRequest&, absl::Duration) override {
    return Answer();
  }

 private:
  Status Answer() const { return Status(code_, "said the server"); }
  const absl::StatusCode code_;
};

TEST(GrantedStore, WhatAServerSaysInPassingIsWorthAnotherTry) {
  using Code = absl::StatusCode;
  const auto heard = [](Code code) {
    const auto store =
        OpenGrantedStore(ConfigOf("127.0.0.1:1"), std::make_unique<RefusingLink>(code));
    return (*store)->Head("default/_/exp/1/1/7/manifest.json", {}).status();
  };
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded, Code::kResourceExhausted,
                          Code::kUnauthenticated, Code::kCancelled, Code::kUnknown, Code::kInternal,
                          Code::kAborted}) {
    const Status status = heard(code);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("said the server"));
  }
  for (const Code code : {Code::kPermissionDenied, Code::kInvalidArgument,
                          Code::kFailedPrecondition, Code::kUnimplemented, Code::kNotFound}) {
    EXPECT_EQ(heard(code).code(), code);
  }
}

// With a file that is put in parts, and one of no bytes.
TEST_F(StoreAccessTest, ACheckpointGoesThereAndComesBackElsewhere) {
  const Folder here, there;
  const trial::FileLayout from(here.path()), to(there.path());
  const std::string large = artifacts::ManyBytes((11 << 20) + 5);
  const std::string dir = from.Paths(kKey).checkpoint_dir;
  ASSERT_TRUE(MakeDirs(dir + "/7").ok());
  ASSERT_TRUE(WriteFileAtomic(dir + "/7/empty", "").ok());
  const v1::Checkpoint saved = Save(from, kKey, 7, large);
  const auto own = Part(kKey);
  ASSERT_EQ(trial::CopyOut(saved, dir, {own.get(), ""}), absl::OkStatus());
  ASSERT_EQ(trial::CopyOut(saved, dir, {own.get(), ""}), absl::OkStatus()) << "again";
  EXPECT_TRUE(fs::exists(Object("1/1/7/manifest.json")));
  for (const char* probe : {"shirabe-probe", "shirabe-probe-copy"}) {
    EXPECT_FALSE(fs::exists(absl::StrCat(s3_->bucket(), "/shirabe/default/", probe)));
  }
  const auto next = Part(Attempt(2));
  const std::string copy = to.Paths(Attempt(2)).checkpoint_dir;
  ASSERT_TRUE(MakeDirs(copy).ok());
  ASSERT_EQ(trial::CopyIn(saved, copy + "/7", {next.get(), ""}), absl::OkStatus());
  EXPECT_EQ(ReadFile(copy + "/7/model", 64 << 20).value_or(""), large);
  EXPECT_EQ(ReadFile(copy + "/7/empty").value_or("none"), "");
  ASSERT_EQ(trial::RemoveCopy(saved, {own.get(), ""}), absl::OkStatus());
  EXPECT_FALSE(fs::exists(Object("1/1/7/manifest.json")));
}

TEST_F(StoreAccessTest, OutputsGoThereFromTheirAttemptOnly) {
  const Folder here;
  const trial::FileLayout layout(here.path());
  const std::string dir = layout.Paths(kKey).output_dir;
  ASSERT_TRUE(MakeDirs(dir + "/sub").ok());
  ASSERT_TRUE(WriteFileAtomic(dir + "/sub/model", "m").ok());
  const auto own = Part(kKey);
  const auto outputs = trial::CopyOutputsOut(kKey, dir, {own.get(), ""});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_TRUE(fs::exists(Object("1/1/0/manifest.json")));
  const auto other = Part({{kKey.trial.experiment, 2}, 1});
  EXPECT_TRUE(absl::IsInvalidArgument(trial::CopyIn(*outputs, dir + "/in", {other.get(), ""})));
}

// What is put is what the bearer sends: a header that is not signed names no other object whose
// bytes would become the attempt's own.
TEST_F(StoreAccessTest, AUrlToPutWithCopiesNothingOfAnother) {
  const std::string theirs = absl::StrCat("/", S3Server::kBucket, "/theirs");
  ASSERT_TRUE(WriteFileAtomic(absl::StrCat(s3_->bucket(), "/theirs"), "of another").ok());
  const auto http = *net::HttpClient::Create();
  const std::string sha256 = HexSha256("mine!");
  for (const char* header : {"x-amz-copy-source", "X-Amz-Copy-Source"}) {
    for (const std::string& source : {theirs, theirs.substr(1)}) {
      for (const std::string body : {"", "mine!"}) {
        v1::GrantRequest request;
        request.set_action(v1::PUT_OBJECT);
        request.mutable_copy()->set_trial(kKey.trial.number);
        request.mutable_copy()->set_attempt(kKey.number);
        request.mutable_copy()->set_step(7);
        request.mutable_copy()->set_sha256(sha256);
        request.set_bytes(static_cast<int64_t>(body.size()));
        const auto granted = grants_->Grant(kKey, request);
        ASSERT_TRUE(granted.ok()) << granted.status();
        ASSERT_TRUE(absl::StartsWith(granted->url(), s3_->endpoint())) << granted->url();
        net::HttpCall call{.origin = s3_->endpoint()};
        call.request = {.method = "PUT",
                        .target = granted->url().substr(s3_->endpoint().size()),
                        .body = body,
                        .headers = {{"host", s3_->endpoint().substr(strlen("http://"))}}};
        const int plain = http->Do(call, nullptr, {}).answer.status;
        EXPECT_EQ(plain, 200) << "without the header it is good";
        call.request.headers.emplace_back(header, source);
        const net::HttpExchange copied = http->Do(call, nullptr, {});
        EXPECT_EQ(copied.answer.status, 403) << source;
        EXPECT_THAT(copied.answer.body, HasSubstr("not signed"));
        EXPECT_EQ(ReadFile(Object("1/1/7/files/" + sha256)).value_or("none"), body);
      }
    }
  }
}

// Where a server takes that header all the same, as MinIO does, pods of several namespaces get no
// URL to put with.
class UnsignedCopiesTest : public StoreAccessTest {
 protected:
  Status GrantToPut() const {
    v1::GrantRequest request;
    request.set_action(v1::PUT_OBJECT);
    request.mutable_copy()->set_trial(kKey.trial.number);
    request.mutable_copy()->set_attempt(kKey.number);
    request.mutable_copy()->set_step(7);
    request.mutable_copy()->set_sha256(std::string(64, 'a'));
    return grants_->Grant(kKey, request).status();
  }
  void Answer(kube::FakeExchange& exchange) {
    const auto& request = exchange.request();
    ++asked_;
    std::string& object = objects_[request.path];
    if (request.method == "DELETE") {
      objects_.erase(request.path);
      return exchange.Reply(204, "");
    }
    if (request.method == "GET") return exchange.Reply(200, object);
    const auto source = request.headers.find("x-amz-copy-source");
    if (source == request.headers.end()) {
      object = request.body;
    } else if (copied_ == 200) {
      object = copies_ ? objects_[source->second] : "";
    }
    exchange.Reply(source == request.headers.end() ? 200 : copied_, "");
  }

  std::map<std::string, std::string> objects_;
  int asked_ = 0;
  int copied_ = 200;    // the answer to a request for a copy
  bool copies_ = true;  // whether it is made; else the header is not looked at
  kube::FakeApiServer server_{[this](kube::FakeExchange& exchange) { Answer(exchange); }};
};

TEST_F(UnsignedCopiesTest, AServerThatMakesThemIsNotForPodsOfSeveralNamespaces) {
  OpenTable(server_.config().server);
  for (int i = 0; i < 2; ++i) {
    const Status status = GrantToPut();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("store \"team\""));
    EXPECT_THAT(Message(status), HasSubstr("bucket"));
  }
  EXPECT_EQ(asked_, 6) << "once";
  EXPECT_TRUE(objects_.empty());
  OpenTable(server_.config().server, "default");
  EXPECT_EQ(GrantToPut(), absl::OkStatus()) << "what is there is its own";
  EXPECT_EQ(asked_, 6);
}

TEST_F(UnsignedCopiesTest, AServerThatRefusesThemOrDoesNotLookIsAskedOnce) {
  copies_ = false;
  for (const int answer : {403, 400, 200}) {
    copied_ = answer;
    asked_ = 0;
    OpenTable(server_.config().server);
    EXPECT_EQ(GrantToPut(), absl::OkStatus()) << answer;
    EXPECT_EQ(GrantToPut(), absl::OkStatus());
    EXPECT_EQ(asked_, 6);
  }
}

TEST_F(UnsignedCopiesTest, AServerThatCannotTellIsAskedAgain) {
  OpenTable(server_.config().server);
  for (const int busy : {503, 429}) {
    copied_ = busy;
    EXPECT_TRUE(absl::IsUnavailable(GrantToPut())) << busy;
  }
  copied_ = 200;
  EXPECT_TRUE(absl::IsFailedPrecondition(GrantToPut()));
}

// Of a store that is gone, and of one that refuses: no error has a signature in it.
TEST_F(StoreAccessTest, ErrorsTellNoUrl) {
  const auto own = Part(kKey);
  const std::string key = "default/_/exp/1/1/7/manifest.json";
  const artifacts::SourceFile text("text");
  s3_->Stop();
  const Status gone = Open(Config(kKey), kKey).code->Put(key, text.source(), {});
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_THAT(Message(gone), Not(HasSubstr("X-Amz")));
  EXPECT_THAT(Message(gone), Not(HasSubstr(S3Server::kAccessKey)));
}

// What is read there by its names: the code package, once and checked.
class CodeAccessTest : public StoreAccessTest {
 protected:
  void SetUp() override {
    StoreAccessTest::SetUp();
    if (IsSkipped()) return;
    archive_ = artifacts::Gzipped(
        artifacts::RawTar({{.name = "train.sh", .bytes = "echo loss=1\n", .mode = 0755}}));
    digest_ = HexSha256(archive_);
    spec_.mutable_code()->set_store("team");
    spec_.mutable_code()->set_prefix("packages");
    spec_.mutable_code()->set_package("sha256:" + digest_);
    grants_->SetPolicy(kKey.trial.experiment, spec_);
    pod_ = PodAt(folder_, Config(kKey));
    pod_.config.set_code(digest_);
    options_.fetch.attempts = 2;
    options_.fetch.backoff = {.first = absl::Milliseconds(1), .max = absl::Milliseconds(1)};
    options_.stores = Open(pod_.config, kKey);
  }
  void Upload(const std::string& bytes) {
    const auto store = *stores_->Find("team", "default");
    ASSERT_TRUE(artifacts::PutText(*store, artifacts::PackageKey("packages", digest_), bytes).ok());
  }
  std::string Code(const std::string& name) const {
    return absl::StrCat(folder_.path(), "/code/", digest_, "/", name);
  }

  const Folder folder_;
  Pod pod_;
  InitOptions options_;
  std::string archive_, digest_;
};

TEST_F(CodeAccessTest, InitBringsTheCodeThatTheExperimentNames) {
  Upload(archive_);
  ASSERT_EQ(Init(pod_, options_), absl::OkStatus());
  EXPECT_EQ(ReadFile(Code("train.sh")).value_or(""), "echo loss=1\n");
  EXPECT_EQ(access(Code("train.sh").c_str(), X_OK), 0);
  EXPECT_THAT(ReadFile(pod_.run("env")).value_or(""),
              HasSubstr(absl::StrCat("PYTHONPATH+=", folder_.path(), "/code/", digest_, "\n")));
  ASSERT_EQ(Init(pod_, options_), absl::OkStatus()) << "again";
}

TEST_F(CodeAccessTest, AnotherPackageUnderThatNameIsNotUnpacked) {
  Upload(artifacts::Gzipped(artifacts::RawTar({{.name = "evil", .bytes = "x"}})));
  const Status status = Init(pod_, options_);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("another digest"));
  EXPECT_FALSE(fs::exists(Code("")));
}

TEST_F(CodeAccessTest, WhatIsNotThereIsSaidAndWhatIsAwayIsTriedAgain) {
  const Status missing = Init(pod_, options_);
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_THAT(Message(missing), HasSubstr("shirabe upload"));
  s3_->Stop();
  const Status away = Init(pod_, options_);
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  EXPECT_THAT(Message(away), Not(HasSubstr("X-Amz")));
}

// A checkpoint that the pod's own disk does not have comes from the store before the program
// starts.
TEST_F(StoreAccessTest, InitGoesOnFromTheCopy) {
  const Folder first, second;
  const trial::FileLayout from(first.path() + "/home");
  const v1::Checkpoint saved = Save(from, kKey, 4, "step 4");
  const auto own = Part(kKey);
  ASSERT_EQ(trial::CopyOut(saved, from.Paths(kKey).checkpoint_dir, {own.get(), ""}),
            absl::OkStatus());
  Pod pod = PodAt(second, Config(Attempt(2)));
  pod.key = Attempt(2);
  const trial::AttemptPaths paths = trial::FileLayout(pod.home()).Paths(pod.key);
  pod.paths.checkpoint_dir = paths.checkpoint_dir;
  *pod.config.add_resume() = saved;
  InitOptions options{.stores = Open(pod.config, pod.key)};
  ASSERT_EQ(Init(pod, options), absl::OkStatus());
  EXPECT_EQ(ReadFile(paths.checkpoint_dir + "/4/model").value_or(""), "step 4");
  v1::PodState begin;
  ASSERT_TRUE(ReadMessage(pod.run("begin"), begin).ok());
  EXPECT_EQ(begin.resumed().step(), 4);
}

}  // namespace
}  // namespace shirabe::sidecar
