// Files of trials from a server: by `shirabe cp --server`, which goes on where it broke off and
// compares what came with its SHA-256, and by HTTP, whole and in parts; from the server's own disk
// and from the bucket of a real S3 server.
#include <fstream>

#include "tests/artifacts/s3_server.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using artifacts::S3Server;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr size_t kLarge = 5'000'000;  // some pieces, the last of which is short
constexpr char kFiles[] = "/api/v1/namespaces/red/experiments/left/trials/1";

class DownloadTest : public AttackTest {
 protected:
  void ServeOne(bool with_store) {
    std::vector<std::string> words;
    SmallSpec spec{.name = "left", .ns = "red"};
    if (with_store) {
      store_ = std::make_unique<S3Server>();
      words = {"--stores",
               cli_.Write("stores.yaml",
                          absl::StrCat("stores: [{name: reds, type: s3, namespaces: [red], bucket: "
                                       "bucket, endpoint: \"",
                                       store_->endpoint(), "\", credentials: {file: ",
                                       store_->CredentialFile(), "}}]\n"))};
      spec.more = "shirabe: {artifacts: {store: reds, outputs: true, checkpoints: true}}";
    }
    Serve(words);
    for (size_t i = 0; large_.size() < kLarge; ++i) absl::StrAppend(&large_, i, "\n");
    large_.resize(kLarge);
    cli_.Write("large", large_);
    spec.parallel = spec.trials = 1;
    spec.container = ShellCommand(
        absl::StrCat("cd $SHIRABE_OUTPUT_DIR; mkdir deep; cp ", cli_.Path("large"),
                     " deep/model; : > empty; cd $SHIRABE_CHECKPOINT_DIR; mkdir 7.tmp; cp ",
                     cli_.Path("large"), " 7.tmp/weights; mv 7.tmp 7; echo loss=$1"));
    ASSERT_LT(Create("red", Yaml(spec), kAdminToken), 300);
    ASSERT_TRUE(Eventually([&] { return HasSucceeded("red", "left"); })) << server_->Err();
    fs::permissions(cli_.Write("token", kRedToken), fs::perms::owner_read);
  }
  cmd::Outcome Copy(const std::string& what, const std::string& to) {
    return cli_.Run({"cp", what, cli_.Path(to), "-n", "red", "--server", grpc_, "--token-file",
                     cli_.Path("token")});
  }
  std::string Read(const std::string& path) const {
    return ReadFile(cli_.Path(path)).value_or("none");
  }
  std::string Own() const { return cli_.state() + "/trials/red/left/left-1"; }
  std::string Weights() const { return Own() + "/left-1-a1/checkpoints/7/weights"; }
  static std::string Request(const std::string& line, const std::string& headers = "") {
    return absl::StrCat(line, " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ", kRedToken, "\r\n",
                        headers, "\r\n");
  }
  service::WireReply Ask(const std::string& line, const std::string& headers = "",
                         bool head = false) const {
    service::Wire wire(http_port_);
    wire.Send(Request(line, headers));
    return wire.ReadReply(head);
  }

  std::string large_;
  std::unique_ptr<S3Server> store_;
};

class DownloadFromTest : public DownloadTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (!GetParam()) return ServeOne(false);
    if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
    ServeOne(true);
    fs::remove_all(Own());  // all that is left is in the store
  }
};

TEST_P(DownloadFromTest, CpBringsAllFiles) {
  const cmd::Outcome outputs = Copy("left/1/output", "outputs");
  EXPECT_EQ(outputs.code, 0) << outputs.err;
  EXPECT_TRUE(Read("outputs/deep/model") == large_);
  EXPECT_EQ(Read("outputs/empty"), "");
  const cmd::Outcome checkpoint = Copy("left/1", "checkpoint");
  EXPECT_EQ(checkpoint.code, 0) << checkpoint.err;
  EXPECT_TRUE(Read("checkpoint/weights") == large_);
  EXPECT_FALSE(cli_.Exists("checkpoint.partial"));
  EXPECT_EQ(Copy("left/1", "checkpoint").code, 4) << "it replaces nothing";
  EXPECT_EQ(Copy("left/2", "new").code, 3);
  EXPECT_EQ(Copy("none/1", "new").code, 3);
  EXPECT_FALSE(cli_.Exists("new") || cli_.Exists("new.partial"));
}

TEST_P(DownloadFromTest, HttpSendsFilesWholeAndInParts) {
  const std::string line = absl::StrCat("GET ", kFiles, "/outputs/file?path=deep/model");
  const auto whole = Ask(line);
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.body == large_);
  EXPECT_THAT(whole.head, HasSubstr(absl::StrCat("Content-Length: ", kLarge, "\r\n")));
  const size_t at = whole.head.find("ETag: ");
  ASSERT_NE(at, std::string::npos) << whole.head;
  const std::string etag = whole.head.substr(at + 6, whole.head.find("\r\n", at) - at - 6);
  const auto part = Ask(line, "Range: bytes=4999990-\r\nIf-Range: " + etag + "\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, large_.substr(4'999'990));
  EXPECT_THAT(part.head, HasSubstr("Content-Range: bytes 4999990-4999999/5000000\r\n"));
  const auto middle = Ask(line, "Range: bytes=1000000-3000000\r\n");
  EXPECT_TRUE(middle.body == large_.substr(1'000'000, 2'000'001));
  EXPECT_EQ(Ask(line, "Range: bytes=-3\r\n").body, large_.substr(kLarge - 3));
  const auto other = Ask(line, "Range: bytes=0-1\r\nIf-Range: \"another\"\r\n");
  EXPECT_EQ(other.status, 200);
  EXPECT_TRUE(other.body == large_);
  EXPECT_EQ(Ask(line, "If-None-Match: " + etag + "\r\n").status, 304);
  const auto head = Ask("HEAD" + line.substr(3), "", /*head=*/true);
  EXPECT_EQ(head.status, 200);
  EXPECT_THAT(head.head, AllOf(HasSubstr("Content-Length: 5000000\r\n"), HasSubstr(etag),
                               HasSubstr("Accept-Ranges: bytes\r\n")));
  EXPECT_EQ(Ask(absl::StrCat("GET ", kFiles, "/outputs/file?path=empty")).body, "");
  EXPECT_EQ(Ask(absl::StrCat("GET ", kFiles, "/outputs/file?path=none")).status, 404);
  // One after the other on the same connection.
  service::Wire wire(http_port_);
  wire.Send(Request(line) + Request(line, "Range: bytes=0-3\r\n"));
  EXPECT_TRUE(wire.ReadReply().body == large_);
  EXPECT_EQ(wire.ReadReply().body, large_.substr(0, 4));
}

TEST_P(DownloadFromTest, HttpListsFiles) {
  const auto list = Ask(absl::StrCat("GET ", kFiles, "/outputs/files"));
  EXPECT_THAT(list.body,
              AllOf(HasSubstr("\"deep/model\""), HasSubstr("5000000"), HasSubstr("\"empty\"")));
  const auto checkpoint = Ask(absl::StrCat("GET ", kFiles, "/checkpoints/7/files"));
  EXPECT_THAT(checkpoint.body, AllOf(HasSubstr("\"weights\""), HasSubstr("\"sha256\"")));
  EXPECT_EQ(Ask(absl::StrCat("GET ", kFiles, "/checkpoints/8/files")).status, 404);
}

INSTANTIATE_TEST_SUITE_P(All, DownloadFromTest, testing::Bool(),
                         [](const auto& one) { return one.param ? "s3" : "folder"; });

// What an earlier call has fetched is not fetched again: here it is damaged on the server by now.
TEST_F(DownloadTest, CpGoesOnWhereItBrokeOff) {
  ServeOne(false);
  ASSERT_TRUE(MakeDirs(cli_.Path("back.partial")).ok());
  cli_.Write("back.partial/weights", large_.substr(0, 2'500'000));
  cli_.Write("back.partial/of-another", "x");
  std::string damaged = large_;
  damaged[100] = '#';
  ASSERT_TRUE(WriteFileAtomic(Weights(), damaged).ok());
  const cmd::Outcome copied = Copy("left/1", "back");
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_TRUE(Read("back/weights") == large_);
  EXPECT_FALSE(cli_.Exists("back/of-another") || cli_.Exists("back.partial"));
}

TEST_F(DownloadTest, CpBeginsAgainWhereItsBeginningWasWrong) {
  ServeOne(false);
  ASSERT_TRUE(MakeDirs(cli_.Path("back.partial")).ok());
  for (const std::string& begun : {std::string("wrong"), large_ + "more", std::string()}) {
    ASSERT_TRUE(MakeDirs(cli_.Path("back.partial")).ok());
    cli_.Write("back.partial/weights", begun);
    EXPECT_EQ(Copy("left/1", "back").code, 0);
    EXPECT_TRUE(Read("back/weights") == large_);
    fs::remove_all(cli_.Path("back"));
  }
}

TEST_F(DownloadTest, CpRefusesWhatIsNotWhatWasSaved) {
  ServeOne(false);
  std::string damaged = large_;
  damaged[100] = '#';
  ASSERT_TRUE(WriteFileAtomic(Weights(), damaged).ok());
  const cmd::Outcome copied = Copy("left/1", "back");
  EXPECT_NE(copied.code, 0);
  EXPECT_THAT(copied.err,
              AllOf(HasSubstr("weights"), HasSubstr("SHA-256"), HasSubstr("back.partial")));
  EXPECT_FALSE(cli_.Exists("back"));
}

// Outputs that are not copied anywhere are read as they are; a part of one is not joined with a
// part of another.
TEST_F(DownloadTest, AFileThatChangesIsNotMixed) {
  ServeOne(false);
  v1::ReadFileRequest request;
  v1::TrialRef& trial = *request.mutable_files()->mutable_trial();
  trial.set_namespace_("red");
  trial.set_experiment("left");
  trial.set_number(1);
  request.set_path("deep/model");
  request.set_max_bytes(10);
  v1::FileChunk piece;
  ASSERT_TRUE(Shirabe()->ReadFile(As(kRedToken).get(), request, &piece).ok());
  EXPECT_EQ(piece.data(), large_.substr(0, 10));
  EXPECT_EQ(piece.size(), static_cast<int64_t>(kLarge));
  request.set_version(piece.version());
  request.set_offset(10);
  ASSERT_TRUE(Shirabe()->ReadFile(As(kRedToken).get(), request, &piece).ok());
  ASSERT_TRUE(WriteFileAtomic(Own() + "/output/deep/model", std::string(kLarge, 'y')).ok());
  EXPECT_EQ(Shirabe()->ReadFile(As(kRedToken).get(), request, &piece).error_code(),
            grpc::StatusCode::ABORTED);
}

}  // namespace
}  // namespace shirabe::attack
