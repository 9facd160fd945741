#include "metrics/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/metrics/collecting.h"

namespace shirabe::metrics {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CollectorTest : public CollectingTest {
 protected:
  CollectorTest() { source_.files.hypertune.clear(); }

  void UseFile(const std::string& path, v1::FileFormat format = v1::TEXT) {
    spec_.mutable_collector()->set_kind(v1::FILE_COLLECTOR);
    spec_.mutable_source()->mutable_file_system_path()->set_path(path);
    spec_.mutable_source()->mutable_file_system_path()->set_format(format);
  }

  const v1::CollectorCursor& Read() {
    Collect();
    return cursor_;
  }
};

TEST_F(CollectorTest, CountsStepsThatAreNotGiven) {
  Write(source_.files.log, "loss=1 acc=2\nloss=3\n");
  EXPECT_EQ(Collect(), "loss@1*=1 acc@1*=2 loss@2*=3");
  Append(source_.files.log, "loss=4\n");
  EXPECT_EQ(Collect(), "loss@3*=4");
}

TEST_F(CollectorTest, GoesOnCountingFromAnEarlierAttempt) {
  (*cursor_.mutable_counts())["loss"] = 7;
  Write(source_.files.log, "loss=1 acc=2\n");
  EXPECT_EQ(Collect(), "loss@8*=1 acc@1*=2");
}

TEST_F(CollectorTest, TakesAMetricOfTheMetricsFileFromNowhereElse) {
  Write(source_.files.log, "loss=1 acc=2\n");
  EXPECT_EQ(Collect(), "loss@1*=1 acc@1*=2");
  Append(source_.files.log, "loss=3 acc=4 loss=x\n");
  Write(source_.files.metrics, "{\"step\": 10, \"metrics\": {\"loss\": 0.5}}\n");
  EXPECT_EQ(Collect(), "loss@10=0.5 acc@2*=4");
  EXPECT_EQ(last_.bad_lines, 0) << "nobody reads loss there any more";
  EXPECT_THAT(cursor_.journalled(), testing::ElementsAre("loss"));
  Append(source_.files.log, "loss=5 acc=6\n");
  EXPECT_EQ(Collect(), "acc@3*=6");
}

TEST_F(CollectorTest, KeepsBothValuesOfAStepInOrder) {
  Write(
      source_.files.metrics,
      "{\"step\": 1, \"metrics\": {\"loss\": 0.5}}\n{\"step\": 1, \"metrics\": {\"loss\": NaN}}\n");
  EXPECT_EQ(Collect(), "loss@1=0.5 loss@1=NaN");
}

TEST_F(CollectorTest, StampsALineWithItsTimeOrNow) {
  Write(source_.files.log, "2026-11-21T08:30:00Z loss=1\nloss=2\n");
  Collect();
  EXPECT_EQ(last_.observations[0].time, absl::FromUnixSeconds(1'795'249'800));
  EXPECT_EQ(last_.observations[1].time, source_.now);
}

TEST_F(CollectorTest, CountsBadLinesAndShowsTheFirst) {
  Write(source_.files.log, "loss=1_000\nloss=0,5\nloss=2\n" + std::string(1'100'000, 'x') + "\n");
  EXPECT_EQ(Collect(), "loss@1*=2");
  EXPECT_EQ(last_.bad_lines, 3);
  EXPECT_THAT(last_.bad_sample,
              AllOf(HasSubstr("loss=1_000: digits"), HasSubstr(source_.files.log)));
}

TEST_F(CollectorTest, SaysALineIsTooLong) {
  Write(source_.files.log, std::string(1'100'000, 'x') + "\n");
  Collect();
  EXPECT_THAT(last_.bad_sample, HasSubstr("a line of more than 1048576 bytes"));
}

TEST_F(CollectorTest, WantsEachMetricOnce) {
  source_.metrics = {"loss", "loss", ""};
  Write(source_.files.log, "loss=1\n");
  EXPECT_EQ(Collect(), "loss@1*=1");
}

TEST_F(CollectorTest, StopsAtALimitOfPointsAndGoesOn) {
  std::string text;
  for (int i = 0; i < 120'000; ++i) text += "loss=1\n";
  Write(source_.files.log, text);
  size_t points = 0;
  int calls = 0;
  do {
    Collect();
    points += last_.observations.size();
    ++calls;
  } while (last_.more);
  EXPECT_EQ(points, 120'000u);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(cursor_.counts().at("loss"), 120'000);
}

TEST_F(CollectorTest, ReadsTheMetricsFileToItsEndBeforeTheLog) {
  std::string text;
  while (text.size() < 5'000'000) text += "{\"step\": 1, \"metrics\": {\"lr\": 0.5}}\n";
  Write(source_.files.metrics, text + "{\"step\": 2, \"metrics\": {\"loss\": 0.5}}\n");
  Write(source_.files.log, "loss=1\n");
  EXPECT_EQ(Collect(), "");
  EXPECT_TRUE(last_.more);
  EXPECT_EQ(Collect(), "loss@2=0.5");
  EXPECT_FALSE(last_.more);
}

TEST_F(CollectorTest, ReadsAFileRelativeToTheWorkingDirectory) {
  UseFile("out/metrics.log");
  EXPECT_EQ(Collect(), "");
  ASSERT_EQ(mkdir(dir_.File("out").c_str(), 0700), 0);
  Write(dir_.File("out/metrics.log"), "loss=1\n");
  Write(source_.files.log, "loss=2\n");
  EXPECT_EQ(Collect(), "loss@1*=1");
}

TEST_F(CollectorTest, LeavesAnEarlierAttemptsLinesAlone) {
  UseFile(dir_.File("shared"));
  Write(dir_.File("shared"), "loss=1\n");
  cursor_ = Start();
  EXPECT_EQ(Collect(), "");
  Append(dir_.File("shared"), "loss=2\n");
  EXPECT_EQ(Collect(), "loss@1*=2");
}

TEST_F(CollectorTest, StartsWithNothingWhereNothingIsShared) {
  UseFile(dir_.File("shared"));
  EXPECT_EQ(Start().files_size(), 0);
  Write(source_.files.log, "loss=1\n");
  spec_.Clear();
  EXPECT_EQ(Start().files_size(), 0);
}

TEST_F(CollectorTest, ReadsAFileOnceThatIsTheMetricsFile) {
  UseFile(source_.files.metrics, v1::JSON);
  Write(source_.files.metrics, "{\"step\": 1, \"loss\": 0.5}\n");
  EXPECT_EQ(Collect(), "loss@1=0.5");
  EXPECT_EQ(cursor_.files_size(), 1);
}

TEST_F(CollectorTest, NamesTheFileThatItCannotRead) {
  UseFile(dir_.path());
  const auto collected = Create()->Collect(source_, cursor_);
  EXPECT_EQ(collected.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(collected.status()), HasSubstr(dir_.path()));
}

TEST_F(CollectorTest, RefusesASpecificationAndNamesTheField) {
  UseFile("");
  EXPECT_THAT(Message(CreateCollector(spec_).status()), HasSubstr("fileSystemPath.path"));
  UseFile("x", v1::JSON);
  spec_.mutable_source()->mutable_filter()->add_metrics_format("(a)(b)");
  EXPECT_THAT(Message(CreateCollector(spec_).status()), HasSubstr("filter.metricsFormat"));
  UseFile("x");
  spec_.mutable_source()->mutable_file_system_path()->set_kind(v1::DIRECTORY);
  EXPECT_THAT(Message(CreateCollector(spec_).status()), HasSubstr("fileSystemPath.kind"));
}

TEST_F(CollectorTest, NamesTheKindsAtHand) {
  spec_.mutable_collector()->set_kind(static_cast<v1::CollectorKind>(99));
  const Status status = CreateCollector(spec_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("\"99\""), HasSubstr("File, None, Prometheus")));
}

TEST_F(CollectorTest, ReadsNothingElseOfWhatIsPushed) {
  Write(source_.files.log, "loss=1\n");
  Write(source_.files.metrics, "{\"step\": 2, \"metrics\": {\"loss\": 3}}\n");
  spec_.mutable_collector()->set_kind(v1::PUSH);
  EXPECT_EQ(Collect(), "loss@2=3");
  EXPECT_THAT(Describe(), HasSubstr("among what was pushed (it was not there)"));
}

TEST_F(CollectorTest, WantsTheContainerThatCollects) {
  spec_.mutable_collector()->set_kind(v1::CUSTOM);
  EXPECT_THAT(Message(CreateCollector(spec_).status()),
              AllOf(HasSubstr("collector.customCollector"), HasSubstr("kind: Push")));
  auto& container = *spec_.mutable_collector()->mutable_custom_collector();
  (*container.mutable_fields())["name"].set_string_value("csv");
  Write(source_.files.metrics, "{\"step\": 2, \"metrics\": {\"loss\": 3}}\n");
  EXPECT_EQ(Collect(), "loss@2=3");
  EXPECT_THAT(Describe(), HasSubstr("the container csv of customCollector reported"));
}

TEST_F(CollectorTest, DescribesWhereItLooked) {
  source_.metrics = {"loss"};
  Write(source_.files.log, "a\nval_loss=3\n");
  EXPECT_EQ(
      Describe(),
      "looked for metric \"loss\" in the output as `loss=<number>` or `loss: <number>` (log " +
          source_.files.log +
          ", 2 lines; it has values named \"val_loss\") and in the metrics file "
          "(absent)");
  spec_.mutable_source()->mutable_filter()->add_metrics_format("(a)=(b)");
  Write(source_.files.log, "");
  Write(source_.files.metrics, "{}\n");
  EXPECT_EQ(Describe(),
            "looked for metric \"loss\" in the output with metricsFormat `(a)=(b)` (log " +
                source_.files.log + ", empty) and in the metrics file (1 line)");
  spec_.mutable_collector()->set_kind(v1::NONE);
  source_.metrics = {"loss", "acc"};
  EXPECT_EQ(Describe(), "looked for metrics \"loss\" and \"acc\" in the metrics file (1 line)");
  spec_.Clear();
  UseFile("m.json", v1::JSON);
  EXPECT_THAT(Describe(),
              HasSubstr("in the file " + dir_.File("m.json") + " as a key of JSON lines (absent)"));
}

// Where the controller keeps copies of what a pod writes says nothing to its user.
TEST_F(CollectorTest, OfCopiesItNamesWhatTheProgramWrote) {
  source_.metrics = {"loss"};
  source_.files.copies = true;
  Write(source_.files.log, "a\n");
  EXPECT_THAT(Describe(), HasSubstr("`loss: <number>` (1 line) and"));
  UseFile("m.json", v1::JSON);
  spec_.mutable_source()->mutable_file_system_path()->set_path("/out/m.json");
  EXPECT_THAT(Describe(), HasSubstr("in the file /out/m.json as a key"));
  spec_.mutable_collector()->set_kind(v1::TENSOR_FLOW_EVENT);
  spec_.mutable_source()->mutable_file_system_path()->set_path("/out/runs");
  EXPECT_THAT(Describe(), HasSubstr("in the event files of /out/runs (0 files)"));
}

TEST_F(CollectorTest, KnowsAFinishedProgram) {
  source_.metrics = {"loss"};
  Write(source_.files.metrics, "{\"step\": 1, \"metrics\": {\"loss\": 0.5}}\n");
  EXPECT_FALSE(Read().done());
  Write(source_.files.log, "{\"done\": true}\n");  // anybody may print that
  EXPECT_FALSE(Read().done());
  Append(source_.files.metrics, "{\"done\": true}");
  EXPECT_FALSE(Read().done()) << "the line may go on";
  Append(source_.files.metrics, "\n");
  EXPECT_TRUE(Read().done());
  EXPECT_TRUE(Read().done()) << "it stays so";
}

}  // namespace
}  // namespace shirabe::metrics
