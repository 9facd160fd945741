// Code packages by the program itself, from a directory and from the bucket of a real S3 server:
// uploaded, named, fetched once and run, and what is said where they cannot be had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"
#include "tests/artifacts/s3_server.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {
namespace {

using artifacts::S3Server;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

class CodeTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "s3") {
      if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
      server_ = std::make_unique<S3Server>();
      objects_ = server_->bucket();
      WriteStores(absl::StrCat(
          "{name: team, type: s3, bucket: bucket, namespaces: [default], endpoint: \"",
          server_->endpoint(), "\", credentials: {file: ", server_->CredentialFile(), "}}"));
    } else {
      objects_ = cli_.Path("objects");
      fs::create_directory(objects_);
      WriteStores(absl::StrCat("{name: team, type: directory, root: ", objects_,
                               ", namespaces: [default]}"));
    }
    fs::create_directories(cli_.Path("code/model"));
    cli_.Write("code/train.sh",
               ". ./model/part.sh\necho \"$PWD $SHIRABE_CODE_DIR $PYTHONPATH\" >> $DIR/seen\n");
    cli_.Write("code/model/part.sh", "echo loss=$1\n");
  }
  void WriteStores(const std::string& entry) {
    stores_ = cli_.Write("stores.yaml", "stores: [" + entry + "]\n");
  }
  // Runs train.sh of the package.
  std::string Spec(const std::string& more, int trials = 2) {
    SmallSpec spec{.name = "small"};
    spec.parallel = spec.trials = trials;
    spec.container = "command: [sh, train.sh, \"${trialParameters.lr}\"]";
    spec.more = more;
    return cli_.Write("small.yaml", Yaml(spec));
  }
  std::string UploadIt() {
    const Outcome done = cli_.Run({"upload", cli_.Path("code"), "--stores", stores_, "-o", "name"});
    EXPECT_EQ(done.code, 0) << done.err;
    return std::string(absl::StripSuffix(done.out, "\n"));
  }
  std::string Object(const std::string& package) const {
    return absl::StrCat(objects_, "/default/code/", package.substr(7), ".tar.gz");
  }
  Outcome RunIt(const std::string& file) {
    return cli_.Run({"run", "-f", file, "--stores", stores_});
  }
  std::string Events() { return cli_.Run({"events", "small"}).out; }

  Cli cli_;
  std::unique_ptr<S3Server> server_;
  std::string objects_;
  std::string stores_;
};

TEST_P(CodeTest, TrialsRunWhatWasUploaded) {
  const std::string package = UploadIt();
  EXPECT_TRUE(absl::StartsWith(package, "sha256:"));
  EXPECT_TRUE(fs::exists(Object(package)));
  const Outcome run = RunIt(Spec("shirabe: {code: {store: team, package: \"" + package + "\"}}"));
  EXPECT_EQ(run.code, 0) << run.err << Events();
  const std::string folder = fs::canonical(cli_.state() + "/code/" + package.substr(7)).string();
  const std::string seen = ReadFile(cli_.Path("seen")).value_or("");
  EXPECT_THAT(seen, HasSubstr(absl::StrCat(folder, " ", folder, " ", folder)));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 2);
  const Outcome lineage = cli_.Run({"describe", "experiment/small", "--lineage"});
  EXPECT_THAT(lineage.out, HasSubstr(package));
  EXPECT_THAT(cli_.Run({"export", "small", "--lineage", "-o", "csv"}).out, HasSubstr(package));
}

TEST_P(CodeTest, RunUploadsByItself) {
  const std::vector<std::string> words = {"run",      "-f",   Spec(""), "--code", cli_.Path("code"),
                                          "--stores", stores_};
  const Outcome run = cli_.Run(words);
  EXPECT_EQ(run.code, 0) << run.err << Events();
  EXPECT_THAT(run.err, HasSubstr("put in store team"));
  const Outcome again = cli_.Run(words);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("already"));
  cli_.Write("code/train.sh", "echo loss=1\n");  // another program is another search
  const Outcome other = cli_.Run(words);
  EXPECT_NE(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("spec.shirabe.code"));
}

TEST_P(CodeTest, ApplyAndCreateUploadToo) {
  const std::string file =
      Spec("shirabe: {artifacts: {store: team, prefix: vision, outputs: true}}");
  const std::vector<std::string> more = {"-f",       file,   "--code", cli_.Path("code"),
                                         "--stores", stores_};
  for (const char* verb : {"create", "apply"}) {
    std::vector<std::string> words = {verb};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome done = cli_.Run(words);
    EXPECT_EQ(done.code, 0) << done.err;
  }
  const std::string stored = cli_.Run({"get", "experiment/small", "-o", "yaml"}).out;
  EXPECT_THAT(stored, AllOf(HasSubstr("package: sha256:"), HasSubstr("prefix: vision")));
  EXPECT_FALSE(fs::is_empty(objects_ + "/default/vision/code"));
  EXPECT_THAT(
      cli_.Run({"apply", "-f", file, "-f", file, "--code", cli_.Path("code"), "--stores", stores_})
          .err,
      HasSubstr("--code is of one experiment"));
  EXPECT_THAT(cli_.Run({"apply", "-f", file, "--stores", stores_}).err,
              HasSubstr("--stores goes with --code DIR"));
}

TEST_P(CodeTest, WhatIsNotThereIsTheCauseOfTheAttempt) {
  const std::string package = "sha256:" + std::string(64, '0');
  const Outcome run =
      RunIt(Spec("shirabe: {code: {store: team, package: \"" + package + "\"}}", 1));
  EXPECT_NE(run.code, 0);
  EXPECT_THAT(Events(), AllOf(HasSubstr("of store team"), HasSubstr("shirabe upload")));
  const Outcome trial = cli_.Run({"describe", "trial/small-1"});
  EXPECT_THAT(trial.out, AllOf(HasSubstr("app-error"), HasSubstr("there is no code/")));
}

TEST_P(CodeTest, OtherBytesAreNeverRun) {
  const std::string package = UploadIt();
  fs::create_directory(cli_.Path("other"));
  cli_.Write("other/train.sh", "touch $DIR/owned; echo loss=1\n");
  ASSERT_EQ(
      system(absl::StrCat("tar czf ", Object(package), " -C ", cli_.Path("other"), " .").c_str()),
      0);
  const Outcome run =
      RunIt(Spec("shirabe: {code: {store: team, package: \"" + package + "\"}}", 1));
  EXPECT_NE(run.code, 0);
  EXPECT_FALSE(fs::exists(cli_.Path("owned")));
  EXPECT_THAT(Events(), HasSubstr("has another digest"));
  // To upload it again mends it, also where other bytes of the same length are there.
  EXPECT_EQ(UploadIt(), package);
  const std::string bytes = ReadFile(Object(package)).value_or("");
  ASSERT_TRUE(WriteFileAtomic(Object(package), std::string(bytes.size(), 'x')).ok());
  EXPECT_EQ(UploadIt(), package);
  EXPECT_EQ(HexSha256(ReadFile(Object(package)).value_or("")), package.substr(7));
}

TEST_P(CodeTest, AServerThatIsGoneIsWaitedFor) {
  if (server_ == nullptr) GTEST_SKIP() << "a directory is no server: see code_cache_test";
  const std::string package = UploadIt();
  server_->Stop();
  const auto run = cli_.Start(
      {"run", "-f", Spec("shirabe: {code: {store: team, package: \"" + package + "\"}}", 1),
       "--stores", stores_});
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Events(), "CodeNotFetched"); }))
      << run->Err();
  server_->Start();
  EXPECT_EQ(run->Wait().code, 0) << run->Err();
  EXPECT_TRUE(fs::exists(cli_.Path("seen")));
}

TEST_P(CodeTest, AServerThatRefusesIsSaidWithoutASecret) {
  if (server_ == nullptr) GTEST_SKIP() << "a directory asks for no secret";
  const std::string package = UploadIt();
  const std::string file = Spec("shirabe: {code: {store: team, package: \"" + package + "\"}}", 1);
  server_->CredentialFile("not-the-secret");
  const auto run = cli_.Start({"run", "-f", file, "--stores", stores_});
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(Events(), "CodeNotFetched"); }))
      << run->Err();
  EXPECT_THAT(Events(), AllOf(HasSubstr("403"), Not(HasSubstr("not-the-secret")),
                              Not(HasSubstr("Signature="))));
  EXPECT_FALSE(fs::exists(cli_.Path("seen")));
}

// Killed while it waits for the store: the same command goes on, and what is half there is none.
TEST_P(CodeTest, KilledWhileItFetchesTheSameCommandGoesOn) {
  if (server_ == nullptr) GTEST_SKIP() << "a directory does not make anyone wait";
  const std::string package = UploadIt();
  const std::vector<std::string> words = {
      "run", "-f", Spec("shirabe: {code: {store: team, package: \"" + package + "\"}}", 1),
      "--stores", stores_};
  server_->Pause();
  const auto first = cli_.Start(words);
  const std::string lock = cli_.state() + "/code/" + package.substr(7) + ".lock";
  EXPECT_TRUE(Eventually([&] { return fs::exists(lock); })) << first->Err();
  first->Signal(SIGKILL);
  first->Wait();
  fs::create_directories(cli_.state() + "/code/" + package.substr(7) + ".tmp/half");
  server_->Resume();
  const Outcome second = cli_.Run(words);
  EXPECT_EQ(second.code, 0) << second.err << Events();
  EXPECT_FALSE(fs::exists(cli_.state() + "/code/" + package.substr(7) + "/half"));
  EXPECT_EQ(ReadFile(cli_.Path("seen")).ok(), true);
}

TEST_P(CodeTest, WhatCannotBeUploadedIsSaidWithTheFix) {
  EXPECT_THAT(cli_.Run({"upload", cli_.Path("code")}).err,
              AllOf(HasSubstr("--stores FILE"), HasSubstr("A server takes no packages")));
  EXPECT_THAT(cli_.Run({"upload", cli_.Path("none"), "--stores", stores_}).err,
              HasSubstr("is no folder"));
  EXPECT_THAT(cli_.Run({"upload", cli_.Path("code"), "--stores", stores_, "--store", "theirs"}).err,
              HasSubstr("\"theirs\" is not a store that namespace default may use"));
  EXPECT_THAT(cli_.Run({"upload", cli_.Path("code"), "--stores", stores_, "--prefix", "../x"}).err,
              HasSubstr("--prefix"));
  EXPECT_THAT(cli_.Run({"upload", cli_.Path("code"), "--stores", stores_, "-n", "other"}).err,
              Not(HasSubstr(objects_)));
}

INSTANTIATE_TEST_SUITE_P(Stores, CodeTest, testing::Values("directory", "s3"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace shirabe::cmd
