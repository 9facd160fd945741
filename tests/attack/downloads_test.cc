// Files of checkpoints and outputs, read through the server: by those who may not, by paths that
// lead elsewhere, and by what a program has put in the place of files. Nothing but a file of that
// trial is ever sent, and never as a page that a browser would run.
#include <sys/stat.h>

#include <fstream>

#include "tests/artifacts/s3_server.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr char kHidden[] = "no-one-outside-may-read-this";
constexpr char kTrial[] = "/api/v1/namespaces/red/experiments/left/trials/1";

class DownloadsAttack : public AttackTest {
 protected:
  // One trial, which has left a checkpoint at step 1 and an output, and what `more` does.
  void ServeOne(const std::string& more = "", const std::vector<std::string>& words = {},
                const std::string& artifacts = "") {
    Serve(words);
    std::ofstream(cli_.Path("secret")) << kHidden;
    SmallSpec spec{.name = "left", .ns = "red"};
    spec.parallel = spec.trials = 1;
    spec.container = ShellCommand(
        "echo model > $SHIRABE_OUTPUT_DIR/model.html; cd $SHIRABE_CHECKPOINT_DIR; mkdir 1.tmp; "
        "echo weights > 1.tmp/weights; mv 1.tmp 1; " +
        more + " echo loss=$1");
    if (!artifacts.empty()) spec.more = "shirabe: {artifacts: " + artifacts + "}";
    ASSERT_LT(Create("red", Yaml(spec), kAdminToken), 300);
    ASSERT_TRUE(Eventually([&] { return HasSucceeded("red", "left"); })) << server_->Err();
  }
  service::WireReply Get(const std::string& rest, const std::string& token = kRedToken) const {
    return Http(absl::StrCat("GET ", kTrial, rest), token);
  }
  static v1::FilesRequest Files(int32_t attempt = 0, int64_t step = 0) {
    v1::FilesRequest request;
    request.mutable_trial()->set_namespace_("red");
    request.mutable_trial()->set_experiment("left");
    request.mutable_trial()->set_number(1);
    request.set_attempt(attempt);
    request.set_step(step);
    return request;
  }
  grpc::StatusCode Read(const std::string& path, const v1::FilesRequest& files,
                        const std::string& token, v1::FileChunk* piece) const {
    v1::ReadFileRequest request;
    *request.mutable_files() = files;
    request.set_path(path);
    request.set_max_bytes(1 << 20);
    return Shirabe()->ReadFile(As(token).get(), request, piece).error_code();
  }
  std::string Folder() const { return cli_.state() + "/trials/red/left/left-1"; }
};

// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/outputs/files
// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/outputs/file
// attacks: gRPC shirabe.v1.Shirabe/ListFiles, gRPC shirabe.v1.Shirabe/ReadFile
TEST_F(DownloadsAttack, ThoseWithoutRightsGetNothing) {
  ServeOne("printf '%s' $SHIRABE_TRIAL > seen;");
  for (const std::string& token : {std::string(kBlueToken), std::string(), std::string("wrong")}) {
    for (const char* path :
         {"/outputs/files", "/outputs/file?path=model.html", "/checkpoints/1/files",
          "/checkpoints/1/file?attempt=1&path=weights"}) {
      const auto reply = Get(path, token);
      EXPECT_TRUE(reply.status == 401 || reply.status == 403 || reply.status == 404)
          << reply.status;
      EXPECT_THAT(reply.body, AllOf(Not(HasSubstr("model.html")), Not(HasSubstr("weights"))));
    }
    v1::FileChunk piece;
    EXPECT_NE(Read("model.html", Files(), token, &piece), grpc::StatusCode::OK);
    EXPECT_EQ(piece.data(), "");
    v1::FileInfo info;
    const auto context = As(token);
    EXPECT_FALSE(Shirabe()->ListFiles(context.get(), Files())->Read(&info));
  }
  EXPECT_EQ(Get("/outputs/file?path=model.html").body, "model\n");
  EXPECT_EQ(Get("/checkpoints/1/file?attempt=1&path=weights").body, "weights\n");
  ExpectAlive();
}

// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/checkpoints/{step}/file
// attacks: gRPC shirabe.v1.Shirabe/ReadFile
TEST_F(DownloadsAttack, PathsLeadNowhereElse) {
  ServeOne();
  std::ofstream(Folder() + "/left-1-a1/near") << kHidden;
  const std::vector<std::string> paths = {"../left-1-a1/near",
                                          "../../../../../../etc/passwd",
                                          "/etc/passwd",
                                          "a/../../left-1-a1/near",
                                          "./model.html",
                                          "",
                                          ".",
                                          "..",
                                          "model.html/",
                                          "//model.html",
                                          std::string(5000, 'a'),
                                          std::string("model.html\0x", 12),
                                          "\xff\xfe",
                                          "a\nb",
                                          ".shirabe-manifest.json"};
  for (const std::string& path : paths) {
    std::string escaped;
    for (const char c : path) {
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
    for (const char* folder : {"/outputs/file?path=", "/checkpoints/1/file?attempt=1&path="}) {
      const auto reply = Get(folder + escaped);
      EXPECT_GE(reply.status, 400) << path;
      EXPECT_LT(reply.status, 500) << path;
      EXPECT_THAT(reply.body, AllOf(Not(HasSubstr(kHidden)), Not(HasSubstr("root:"))));
    }
    v1::FileChunk piece;
    EXPECT_NE(Read(path, Files(), kRedToken, &piece), grpc::StatusCode::OK) << path;
    EXPECT_NE(Read(path, Files(1, 1), kRedToken, &piece), grpc::StatusCode::OK) << path;
    EXPECT_EQ(piece.data(), "") << path;
  }
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ListFiles, gRPC shirabe.v1.Shirabe/ReadFile
TEST_F(DownloadsAttack, KeysAndNumbersThatNothingHasAreRefused) {
  ServeOne();
  v1::FileChunk piece;
  for (const auto& [attempt, step] : std::vector<std::pair<int32_t, int64_t>>{
           {1, 0}, {-1, 1}, {1, -1}, {1, 2}, {2, 1}, {INT32_MAX, INT64_MAX}}) {
    EXPECT_NE(Read("weights", Files(attempt, step), kRedToken, &piece), grpc::StatusCode::OK)
        << attempt << " " << step;
  }
  v1::ReadFileRequest request;
  *request.mutable_files() = Files();
  request.set_path("model.html");
  request.set_offset(-1);
  EXPECT_FALSE(Shirabe()->ReadFile(As(kRedToken).get(), request, &piece).ok());
  request.set_offset(INT64_MAX);
  request.set_max_bytes(INT64_MAX);
  EXPECT_TRUE(Shirabe()->ReadFile(As(kRedToken).get(), request, &piece).ok());
  EXPECT_EQ(piece.data(), "");
  v1::FilesRequest elsewhere = Files();
  elsewhere.mutable_trial()->set_experiment("../left");
  EXPECT_EQ(Read("model.html", elsewhere, kRedToken, &piece), grpc::StatusCode::INVALID_ARGUMENT);
  for (const char* path : {"/checkpoints/1/files?attempt=0", "/checkpoints/0/files",
                           "/checkpoints/x/files", "/checkpoints/-1/files"}) {
    EXPECT_EQ(Get(path).status, 400) << path;
  }
  ExpectAlive();
}

// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/checkpoints/{step}/files
TEST_F(DownloadsAttack, WhatIsNoFileIsNotRead) {
  ServeOne();
  const std::string outputs = Folder() + "/output";
  fs::create_symlink(cli_.Path("secret"), outputs + "/link");
  ASSERT_EQ(mkfifo((outputs + "/pipe").c_str(), 0600), 0);
  for (const char* path :
       {"/outputs/file?path=link", "/outputs/file?path=pipe", "/outputs/files"}) {
    const auto reply = Get(path);
    EXPECT_EQ(reply.status / 100, 4) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr(kHidden)));
  }
  // The folder itself, and those above it, are links.
  fs::create_directory(cli_.Path("elsewhere"));
  std::ofstream(cli_.Path("elsewhere/model.html")) << kHidden;
  fs::rename(outputs, outputs + "-away");
  fs::create_directory_symlink(cli_.Path("elsewhere"), outputs);
  EXPECT_THAT(Get("/outputs/file?path=model.html").body, Not(HasSubstr(kHidden)));
  EXPECT_EQ(Get("/outputs/files").status / 100, 4);
  fs::create_directories(cli_.Path("whole/checkpoints/1"));
  std::ofstream(cli_.Path("whole/checkpoints/1/weights")) << kHidden;
  fs::rename(Folder() + "/left-1-a1", Folder() + "/away");
  fs::create_directory_symlink(cli_.Path("whole"), Folder() + "/left-1-a1");
  for (const char* path : {"/files", "/file?path=weights"}) {
    const auto reply = Get(std::string("/checkpoints/1") + path);
    EXPECT_GE(reply.status, 400);
    EXPECT_THAT(reply.body, Not(HasSubstr(kHidden)));
  }
  ExpectAlive();
}

// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/outputs/file
TEST_F(DownloadsAttack, NothingIsShownAsAPage) {
  ServeOne("echo x > $SHIRABE_OUTPUT_DIR/'a\\\"; b\u00e9.svg';");
  const auto page = Get("/outputs/file?path=model.html");
  EXPECT_THAT(page.head, AllOf(HasSubstr("Content-Type: application/octet-stream\r\n"),
                               HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                               HasSubstr("attachment; filename=\"model.html\""),
                               HasSubstr("Content-Security-Policy: sandbox;")));
  const auto quoted = Get("/outputs/file?path=a%22%3B%20b%C3%A9.svg");
  EXPECT_EQ(quoted.status, 200);
  EXPECT_THAT(quoted.head, HasSubstr("attachment; filename=\"a___b__.svg\"; "
                                     "filename*=UTF-8''a%22%3b%20b%c3%a9.svg\r\n"));
  ExpectAlive();
}

// Ranges that are none, or are many, are answered as the standard has it, and cost nothing.
// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/outputs/file
TEST_F(DownloadsAttack, RangesAreReadWithCare) {
  ServeOne();
  const auto range = [this](const std::string& value) {
    service::Wire wire(http_port_);
    wire.Send(absl::StrCat("GET ", kTrial, "/outputs/file?path=model.html HTTP/1.1\r\nHost: x\r\n",
                           "Authorization: Bearer ", kRedToken, "\r\nRange: ", value, "\r\n\r\n"));
    return wire.ReadReply();
  };
  EXPECT_EQ(range("bytes=1-2").body, "od");
  for (const char* all : {"bytes=", "bytes=-", "bytes=a-b", "bytes=2-1", "bytes=1-2,3-4",
                          "lines=1-2", "bytes=99999999999999999999-", "bytes=1--2", "bytes= 1-2"}) {
    const auto reply = range(all);
    EXPECT_EQ(reply.status, 200) << all;
    EXPECT_EQ(reply.body, "model\n") << all;
  }
  for (const char* none : {"bytes=6-", "bytes=9223372036854775807-", "bytes=-0"}) {
    const auto reply = range(none);
    EXPECT_EQ(reply.status, 416) << none;
    EXPECT_THAT(reply.head, HasSubstr("Content-Range: bytes */6\r\n")) << none;
  }
  EXPECT_EQ(range("bytes=0-9223372036854775807").body, "model\n");
  EXPECT_EQ(range("bytes=-9223372036854775807").body, "model\n");
  ExpectAlive();
}

// A store that hangs is waited for by who asked, and by no one else.
// attacks: gRPC shirabe.v1.Shirabe/ReadFile
TEST_F(DownloadsAttack, AStoreThatDoesNotAnswerHoldsNoOneElseUp) {
  if (!artifacts::S3Server::IsInstalled()) GTEST_SKIP() << artifacts::S3Server::kMissing;
  artifacts::S3Server store;
  const std::string stores = cli_.Write(
      "stores.yaml",
      absl::StrCat(
          "stores: [{name: reds, type: s3, namespaces: [red], bucket: bucket, endpoint: \"",
          store.endpoint(), "\", credentials: {file: ", store.CredentialFile(), "}}]\n"));
  ServeOne("", {"--stores", stores}, "{store: reds, outputs: true, checkpoints: true}");
  fs::remove_all(Folder());
  EXPECT_EQ(Get("/outputs/file?path=model.html").body, "model\n") << "from the store";
  EXPECT_EQ(Get("/checkpoints/1/file?attempt=1&path=weights").body, "weights\n");
  store.Pause();
  std::vector<std::unique_ptr<service::Wire>> waiting;
  for (int i = 0; i < 40; ++i) {
    waiting.push_back(std::make_unique<service::Wire>(http_port_));
    waiting.back()->Send(service::RequestText(
        absl::StrCat("GET ", kTrial, "/outputs/file?path=model.html"), kRedToken));
  }
  ExpectAlive();
  store.Resume();
  int served = 0;
  for (const auto& one : waiting) served += one->ReadReply().status == 200 ? 1 : 0;
  EXPECT_GE(served, 1);
}

}  // namespace
}  // namespace shirabe::attack
