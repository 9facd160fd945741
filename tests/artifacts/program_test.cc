// Copies of checkpoints by the program itself, in a directory and in the bucket of a real S3
// server: they are there when a trial has ended, and a trial goes on from there where the machine's
// own files are gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
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

// Saves at steps 1 to 4, each with a number of its own, and says where it began. Between 2 and 3 it
// waits for $DIR/go.
constexpr char kCopiedTrainer[] = R"(
step=0
[ -n "$SHIRABE_RESUME_FROM" ] && step=$(cat "$SHIRABE_RESUME_FROM/model/step")
echo "$SHIRABE_TRIAL-a$SHIRABE_ATTEMPT from $step" >> $DIR/starts
echo $$ > $DIR/pid
while [ $step -lt 4 ]; do
  until [ $step -ne 2 ] || [ -e $DIR/go ]; do sleep 0.05; done
  step=$((step + 1))
  mkdir -p $SHIRABE_CHECKPOINT_DIR/$step.tmp/model
  echo $step > $SHIRABE_CHECKPOINT_DIR/$step.tmp/model/step
  mv $SHIRABE_CHECKPOINT_DIR/$step.tmp $SHIRABE_CHECKPOINT_DIR/$step
  echo loss=$1
done
)";

class ArtifactsTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "s3") {
      if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
      server_ = std::make_unique<S3Server>();
      objects_ = server_->bucket();
      WriteStores(absl::StrCat(
          "{name: team, type: s3, bucket: bucket, namespaces: [default], "
          "endpoint: \"",
          server_->endpoint(), "\", credentials: {file: ", server_->CredentialFile(), "}}"));
    } else {
      objects_ = cli_.Path("objects");
      fs::create_directory(objects_);
      WriteStores(absl::StrCat("{name: team, type: directory, root: ", objects_,
                               ", namespaces: [default]}"));
    }
    SmallSpec spec{.name = "small"};
    spec.parallel = spec.trials = 1;
    spec.container = ScriptCommand(cli_.Write("trainer.sh", kCopiedTrainer));
    spec.more =
        "shirabe: {artifacts: {store: team, prefix: vision/small, checkpoints: true}, "
        "checkpoint: {keep: {best: 0, latest: 1}}}";
    file_ = cli_.Write("small.yaml", Yaml(spec));
  }
  void WriteStores(const std::string& entry) {
    stores_ = cli_.Write("stores.yaml", "stores: [" + entry + "]\n");
  }
  std::vector<std::string> RunWords() const { return {"run", "-f", file_, "--stores", stores_}; }
  std::string Copy(int64_t attempt, int64_t step) const {
    return absl::StrCat(objects_, "/default/vision/small/_/small/1/", attempt, "/", step);
  }
  bool IsCopied(int64_t attempt, int64_t step) const {
    return fs::exists(Copy(attempt, step) + "/manifest.json");
  }
  std::string Starts() const { return ReadFile(cli_.Path("starts")).value_or(""); }
  std::string Events() { return cli_.Run({"events", "small"}).out; }

  // The machine is gone: the program, ours, and the files; what is left is the database.
  void LoseMachine(Running& run) {
    const int pid = std::stoi(ReadFile(cli_.Path("pid")).value_or("0"));
    run.Signal(SIGKILL);
    run.Wait();
    kill(pid, SIGKILL);
    ASSERT_TRUE(Eventually([&] { return kill(pid, 0) != 0; }));
    // Its supervisor still writes down how it ended.
    ASSERT_TRUE(Eventually([&] {
      std::error_code error;
      fs::remove_all(cli_.state() + "/trials", error);
      return !fs::exists(cli_.state() + "/trials");
    }));
  }

  Cli cli_;
  std::unique_ptr<S3Server> server_;
  std::string objects_;
  std::string stores_;
  std::string file_;
};

TEST_P(ArtifactsTest, CheckpointsAreThereWhenATrialHasEnded) {
  cli_.Write("go", "");
  const Outcome run = cli_.Run(RunWords());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(IsCopied(1, 4));
  EXPECT_THAT(Events(), AllOf(HasSubstr("CheckpointsCopied"), HasSubstr("the latest at step 4"),
                              HasSubstr("to store team"), Not(HasSubstr("NotCopied"))));
}

TEST_P(ArtifactsTest, ATrialGoesOnFromThereWhereTheMachinesFilesAreGone) {
  const auto first = cli_.Start(RunWords());
  ASSERT_TRUE(Eventually([&] { return IsCopied(1, 2); })) << first->Err();
  LoseMachine(*first);
  cli_.Write("go", "");
  const Outcome second = cli_.Run(RunWords());
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(Starts(), "small-1-a1 from 0\nsmall-1-a2 from 2\n");
  EXPECT_THAT(Events(), HasSubstr("from step 2, saved by small-1-a1"));
  EXPECT_TRUE(IsCopied(2, 4));
}

// What the experiment does not keep is kept nowhere, and nothing is left of one that is deleted.
TEST_P(ArtifactsTest, WhatIsNotKeptGoesThereToo) {
  cli_.Write("go", "");
  EXPECT_EQ(cli_.Run(RunWords()).code, 0);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(Copy(1, 3)) && !fs::exists(Copy(1, 1)); }));
  EXPECT_TRUE(IsCopied(1, 4));
  // By a verb that has no --stores: it finds the file where a laptop has it.
  fs::copy(stores_, cli_.state() + "/stores.yaml");
  const Outcome gone = cli_.Run({"delete", "small"});
  EXPECT_EQ(gone.code, 0) << gone.err;
  EXPECT_TRUE(Eventually([&] { return !fs::exists(objects_ + "/default/vision/small/_"); }));
}

TEST_P(ArtifactsTest, AStoreThatIsGoneCostsNoTrialAndIsSaid) {
  if (server_ != nullptr) {
    server_->Stop();
  } else {
    fs::remove_all(objects_);
    // It is looked for at start; then it goes.
    fs::create_directory(objects_);
  }
  const auto run = cli_.Start(RunWords());
  ASSERT_TRUE(Eventually([&] { return fs::exists(cli_.Path("pid")); }));
  if (server_ == nullptr) fs::remove_all(objects_);
  cli_.Write("go", "");
  const Outcome outcome = run->Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(Events(), AllOf(HasSubstr("CheckpointsNotCopied"), HasSubstr("to store team")));
  if (server_ != nullptr) server_->Start();
}

TEST_P(ArtifactsTest, CopiesCheckpointsAndOutputsIntoAFolder) {
  cli_.Write("go", "");
  EXPECT_EQ(cli_.Run(RunWords()).code, 0);
  const std::string outputs = cli_.state() + "/trials/default/small/small-1/output";
  ASSERT_TRUE(MakeDirs(outputs + "/deep").ok());
  ASSERT_TRUE(WriteFileAtomic(outputs + "/deep/model.bin", "weights").ok());
  EXPECT_EQ(cli_.Run({"cp", "small/1/output", cli_.Path("outputs")}).code, 0);
  EXPECT_EQ(*ReadFile(cli_.Path("outputs/deep/model.bin")), "weights");
  EXPECT_EQ(cli_.Run({"cp", "small/1", cli_.Path("local")}).code, 0);
  EXPECT_EQ(*ReadFile(cli_.Path("local/model/step")), "4\n");
  EXPECT_EQ(cli_.Run({"cp", "small/1", cli_.Path("local")}).code, 4) << "it replaces nothing";
  EXPECT_EQ(cli_.Run({"cp", "small/1/checkpoint", cli_.Path("new"), "--step", "3"}).code, 3);
  EXPECT_EQ(cli_.Run({"cp", "small/2", cli_.Path("new")}).code, 3);
  EXPECT_EQ(cli_.Run({"cp", "nothing/1", cli_.Path("new")}).code, 3);
  // The machine's own is damaged, and then gone: it comes from the store.
  const std::string own = cli_.state() + "/trials/default/small/small-1/small-1-a1/checkpoints/4";
  ASSERT_TRUE(WriteFileAtomic(own + "/model/step", "5\n").ok());
  EXPECT_EQ(cli_.Run({"cp", "small/1", cli_.Path("second"), "--stores", stores_}).code, 0);
  EXPECT_EQ(*ReadFile(cli_.Path("second/model/step")), "4\n");
  fs::remove_all(cli_.state() + "/trials");
  const Outcome without = cli_.Run({"cp", "small/1", cli_.Path("third")});
  EXPECT_EQ(without.code, 3) << without.err;
  EXPECT_FALSE(cli_.Exists("third") || cli_.Exists("third.tmp"));
  EXPECT_EQ(cli_.Run({"cp", "small/1", cli_.Path("third"), "--stores", stores_}).code, 0);
  EXPECT_EQ(*ReadFile(cli_.Path("third/model/step")), "4\n");
}

// ---- outputs -----------------------------------------------------------------------------------

class OutputsTest : public ArtifactsTest {
 protected:
  void SetUp() override {
    ArtifactsTest::SetUp();
    if (IsSkipped()) return;
    Specify(
        "mkdir -p $SHIRABE_OUTPUT_DIR/deep\n"
        "echo weights of $1 > $SHIRABE_OUTPUT_DIR/deep/model\n"
        "until [ -e $DIR/go ]; do sleep 0.05; done\n"
        "echo loss=$1\n");
  }
  void Specify(const std::string& script) {
    SmallSpec spec{.name = "small"};
    spec.parallel = spec.trials = 1;
    spec.container = ScriptCommand(cli_.Write("trainer.sh", script));
    spec.more = absl::StrCat(
        "shirabe: {artifacts: {store: team, outputs: true}, onSuccess: {job: {apiVersion: batch/v1,"
        " kind: Job, spec: {template: {spec: {containers: [{name: deploy, command: [sh, -c, 'env | "
        "grep BEST_OUTPUT > ",
        cli_.Path("deployed"), "']}]}}}}}}");
    file_ = cli_.Write("small.yaml", Yaml(spec));
  }
  std::string OutputsCopy() const { return objects_ + "/default/_/small/1/1/0/manifest.json"; }
  void ExpectInStore() {
    fs::remove_all(cli_.state() + "/trials");
    const Outcome copied =
        cli_.Run({"cp", "small/1/output", cli_.Path("back"), "--stores", stores_});
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_THAT(ReadFile(cli_.Path("back/deep/model")).value_or(""), HasSubstr("weights of 0."));
    EXPECT_EQ(std::distance(fs::directory_iterator(cli_.Path("back")), fs::directory_iterator()),
              1);
  }
};

TEST_P(OutputsTest, AreInTheStoreAndToldWhenATrialHasSucceeded) {
  cli_.Write("go", "");
  const Outcome run = cli_.Run(RunWords());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(Events(), HasSubstr("OutputsCopied"));
  EXPECT_THAT(cli_.Run({"describe", "trial", "small/1"}).out,
              HasSubstr("in store team: _/small/1/1/0/"));
  EXPECT_THAT(cli_.Run({"get", "trials", "small", "-o", "json"}).out,
              AllOf(HasSubstr("\"outputs\""), HasSubstr("\"digest\"")));
  EXPECT_THAT(
      ReadFile(cli_.Path("deployed")).value_or(""),
      AllOf(HasSubstr("SHIRABE_BEST_OUTPUT_DIR="), HasSubstr("SHIRABE_BEST_OUTPUT_STORE=team\n"),
            HasSubstr("SHIRABE_BEST_OUTPUT_KEY=_/small/1/1/0/\n"),
            HasSubstr("SHIRABE_BEST_OUTPUT_DIGEST=")));
  ExpectInStore();
  // Deleted with the experiment.
  EXPECT_EQ(cli_.Run({"cp", "small/1/output", cli_.Path("none")}).code, 3) << "no stores named";
  fs::copy(stores_, cli_.state() + "/stores.yaml");
  EXPECT_EQ(cli_.Run({"delete", "small"}).code, 0);
  EXPECT_TRUE(Eventually([&] { return !fs::exists(objects_ + "/default/_"); }));
}

// Killed while the program runs: the one that takes over finds its end, and copies.
TEST_P(OutputsTest, AreCopiedByWhoTakesOver) {
  const auto first = cli_.Start(RunWords());
  ASSERT_TRUE(Eventually([&] {
    return fs::exists(cli_.state() + "/trials/default/small/small-1/" + "output/deep/model");
  }));
  first->Signal(SIGKILL);
  first->Wait();
  cli_.Write("go", "");
  ASSERT_TRUE(Eventually(
      [&] { return fs::exists(cli_.state() + "/trials/default/small/small-1/small-1-a1/exit"); }));
  EXPECT_FALSE(fs::exists(OutputsCopy()));
  const Outcome second = cli_.Run(RunWords());
  EXPECT_EQ(second.code, 0) << second.err;
  ExpectInStore();
}

TEST_P(OutputsTest, AFailedTrialsAreNotCopied) {
  Specify("echo x > $SHIRABE_OUTPUT_DIR/model; exit 3\n");
  cli_.Run(RunWords());
  EXPECT_FALSE(fs::exists(OutputsCopy()));
  EXPECT_THAT(Events(), Not(HasSubstr("Outputs")));
}

// What cannot be copied costs no trial, and is said.
TEST_P(OutputsTest, WithALinkAmongThemAreRefusedByName) {
  Specify("ln -s /etc/passwd $SHIRABE_OUTPUT_DIR/model; echo loss=$1\n");
  const Outcome run = cli_.Run(RunWords());
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(Events(),
              AllOf(HasSubstr("OutputsNotCopied"), HasSubstr("model is a symbolic link")));
  EXPECT_FALSE(fs::exists(OutputsCopy()));
}

INSTANTIATE_TEST_SUITE_P(All, OutputsTest, testing::Values("directory", "s3"),
                         [](const auto& one) { return one.param; });

// A run that has no stores, or not this one, says so before a trial starts.
TEST_P(ArtifactsTest, AStoreThatIsNotThereIsRefusedAtOnce) {
  const Outcome without = cli_.Run({"run", "-f", file_});
  EXPECT_EQ(without.code, 5) << without.err;
  EXPECT_THAT(without.err, AllOf(HasSubstr("spec.shirabe.artifacts.store"), HasSubstr("--stores")));
  EXPECT_EQ(Starts(), "");
}

INSTANTIATE_TEST_SUITE_P(All, ArtifactsTest, testing::Values("directory", "s3"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace shirabe::cmd
