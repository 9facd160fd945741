// Where the collector of an attempt looks: at the program's own files, or at copies of what a
// program elsewhere names by its own paths.
#include "experiment/attempt_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/conditions.h"
#include "experiment/pass_steps.h"
#include "experiment/submission.h"
#include "tests/experiment/specs.h"
#include "trial/file_layout.h"
#include "trial/pod/pod_names.h"

namespace shirabe::experiment {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class RequestTest : public testing::Test {
 protected:
  // One open attempt of the experiment, whose collector is written so.
  void Open(const std::string& collector, const std::string& container = "") {
    std::string text = Replaced(kGood, "  maxTrialCount",
                                "  metricsCollectorSpec: " + collector + "\n  maxTrialCount");
    text = Replaced(text, "image: python:3.11", "image: python:3.11" + container);
    v1::Experiment experiment = ParseOnly(text);
    *experiment.mutable_status()->mutable_shirabe() = status_;
    db::Batch batch;
    batch.experiment = KeyOf(experiment);
    batch.put = {experiment, 0};
    ASSERT_TRUE(store_->Commit(batch).ok());
    const auto lease = store_->AcquireLease(
        {.experiment = KeyOf(experiment), .holder = "h", .now = kNow, .ttl = absl::Hours(1)});
    auto state = ExperimentState::Load(*store_, KeyOf(experiment), lease->epoch());
    ASSERT_TRUE(state.ok()) << state.status();
    state_ = *std::move(state);
    suggestion::Suggestion suggestion;
    suggestion.point = suggestion::Point(state_->space().size(), 0.5);
    const ReconcilerOptions options;
    const ReconcileMode mode;
    trial_ = NewTrial({*state_, options, mode, kNow, absl::ZeroDuration()}, suggestion, 1);
    trial_.set_attempts(1);
    attempt_.set_trial(1);
    attempt_.set_number(1);
  }

  AttemptKey Key() const { return shirabe::experiment::KeyOf(*state_, attempt_); }
  static trial::FileLayout Home() { return trial::FileLayout("/home/shirabe"); }

  // As the executor `process` has them, and as the one for clusters does: copies.
  metrics::Source Here(const std::string& working_dir = "/work") {
    return SourceFor(*state_, {trial_, attempt_}, Home().Paths(Key()), working_dir);
  }
  metrics::Source Copies() {
    trial::AttemptPaths paths = Home().Paths(Key());
    paths.root = paths.dir + "/files";
    return SourceFor(*state_, {trial_, attempt_}, paths, "/work");
  }
  std::string Root() const { return Home().Paths(Key()).dir + "/files"; }
  static std::string PathOf(const metrics::Source& source) { return source.files.path; }
  static std::string File(const std::string& path) {
    return R"({collector: {kind: File}, source: {fileSystemPath: {kind: File, path: ")" + path +
           R"("}}})";
  }

  std::unique_ptr<db::Store> store_ = *db::Open("memory:");
  std::unique_ptr<ExperimentState> state_;
  v1::ShirabeStatus status_;  // of the experiment, before it is opened
  v1::Trial trial_;
  v1::Attempt attempt_;
};

TEST_F(RequestTest, AnAbsolutePathIsItselfHereAndBelowTheRootOfCopies) {
  Open(File("/var/log/metrics.log"));
  EXPECT_EQ(PathOf(Here()), "/var/log/metrics.log");
  EXPECT_FALSE(Here().files.copies);
  EXPECT_EQ(PathOf(Copies()), Root() + "/var/log/metrics.log");
  EXPECT_TRUE(Copies().files.copies);
}

TEST_F(RequestTest, ARelativePathStartsWhereTheProgramDoes) {
  Open(File("metrics.log"), "\n                workingDir: /app");
  EXPECT_EQ(PathOf(Here()), "/app/metrics.log");
  EXPECT_EQ(PathOf(Copies()), Root() + "/app/metrics.log");
}

TEST_F(RequestTest, WithoutAWorkingDirOfItsOwnThatIsOurs) {
  Open(File("metrics.log"));
  EXPECT_EQ(PathOf(Here("/work")), "/work/metrics.log");
}

TEST_F(RequestTest, FoldersOfTheTrialAreThoseThatItsProgramSees) {
  Open(File("$(SHIRABE_OUTPUT_DIR)/loss.log"));
  EXPECT_EQ(PathOf(Here()), Home().Paths(Key()).output_dir + "/loss.log");
  const std::string theirs = trial::PodPaths(Key()).output_dir;
  EXPECT_THAT(theirs, StartsWith("/shirabe/home/"));
  EXPECT_EQ(PathOf(Copies()), Root() + theirs + "/loss.log");
}

TEST_F(RequestTest, CheckpointsLieInAFolderOfTheAttempt) {
  Open(File("$(SHIRABE_CHECKPOINT_DIR)/log"));
  EXPECT_EQ(PathOf(Here()), Home().Paths(Key()).checkpoint_dir + "/log");
  EXPECT_EQ(PathOf(Copies()), Root() + trial::PodPaths(Key()).checkpoint_dir + "/log");
}

// It has a copy of its own, which is not among those of what a program names by a path.
TEST_F(RequestTest, TheContractsOwnFileIsTheContractsOwnCopy) {
  Open(File("$(SHIRABE_METRICS_FILE)"));
  EXPECT_EQ(PathOf(Here()), Home().Paths(Key()).metrics_file);
  EXPECT_EQ(PathOf(Copies()), Home().Paths(Key()).metrics_file);
  EXPECT_THAT(PathOf(Copies()), EndsWith("/metrics.jsonl"));
}

TEST_F(RequestTest, HowOftenToSaveIsToldOnceMachinesWereTakenBack) {
  const auto told = [this] {
    Open("{collector: {kind: StdOut}}");
    return RequestFor(*state_, {trial_, attempt_}, "/work")
        ->environment["SHIRABE_CHECKPOINT_SECONDS"];
  };
  status_.set_seconds(3600);
  EXPECT_EQ(told(), "");
  status_.set_preemptions(2);
  store_ = *db::Open("memory:");
  EXPECT_EQ(told(), "180") << "a tenth of half an hour";
}

TEST_F(RequestTest, TheOutputNeedsNoPath) {
  Open("{collector: {kind: StdOut}}");
  EXPECT_EQ(PathOf(Copies()), "");
  EXPECT_EQ(Copies().files.log, Home().Paths(Key()).log);
}

}  // namespace
}  // namespace shirabe::experiment
