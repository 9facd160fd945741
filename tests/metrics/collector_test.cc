#include "metrics/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "metrics/describe_source.h"
#include "tests/metrics/testing.h"

namespace shirabe::metrics {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CollectorTest : public testing::Test {
 protected:
  CollectorTest() {
    source_.metrics = {"loss", "acc"};
    source_.log = dir_.File("log");
    source_.metrics_file = dir_.File("metrics.jsonl");
    source_.working_dir = dir_.path();
    source_.now = absl::FromUnixSeconds(1'000'000);
  }

  void UseFile(const std::string& path, v1::FileFormat format = v1::TEXT) {
    source_.spec.mutable_collector()->set_kind(v1::FILE_COLLECTOR);
    source_.spec.mutable_source()->mutable_file_system_path()->set_path(path);
    source_.spec.mutable_source()->mutable_file_system_path()->set_format(format);
  }

  // Reads on; "loss@1*=0.5" is an implicit step.
  std::string Collect() {
    const auto collector = CreateCollector(source_.spec);
    EXPECT_TRUE(collector.ok()) << collector.status();
    auto collected = (*collector)->Collect(source_, cursor_);
    EXPECT_TRUE(collected.ok()) << collected.status();
    last_ = *std::move(collected);
    cursor_ = last_.cursor;
    std::string text;
    for (const Observation& point : last_.observations) {
      absl::StrAppend(&text, text.empty() ? "" : " ", point.metric, "@", point.step,
                      point.implicit_step ? "*" : "", "=", FormatNumber(point.value));
    }
    return text;
  }

  const v1::CollectorCursor& Read() {
    Collect();
    return cursor_;
  }

  TempDir dir_;
  Source source_;
  v1::CollectorCursor cursor_;
  Collected last_;
};

TEST_F(CollectorTest, CountsStepsThatAreNotGiven) {
  Write(source_.log, "loss=1 acc=2\nloss=3\n");
  EXPECT_EQ(Collect(), "loss@1*=1 acc@1*=2 loss@2*=3");
  Append(source_.log, "loss=4\n");
  EXPECT_EQ(Collect(), "loss@3*=4");
}

TEST_F(CollectorTest, GoesOnCountingFromAnEarlierAttempt) {
  (*cursor_.mutable_counts())["loss"] = 7;
  Write(source_.log, "loss=1 acc=2\n");
  EXPECT_EQ(Collect(), "loss@8*=1 acc@1*=2");
}

TEST_F(CollectorTest, TakesAMetricOfTheMetricsFileFromNowhereElse) {
  Write(source_.log, "loss=1 acc=2\n");
  EXPECT_EQ(Collect(), "loss@1*=1 acc@1*=2");
  Append(source_.log, "loss=3 acc=4 loss=x\n");
  Write(source_.metrics_file, "{\"step\": 10, \"metrics\": {\"loss\": 0.5}}\n");
  EXPECT_EQ(Collect(), "loss@10=0.5 acc@2*=4");
  EXPECT_EQ(last_.bad_lines, 0) << "nobody reads loss there any more";
  EXPECT_THAT(cursor_.journalled(), testing::ElementsAre("loss"));
  Append(source_.log, "loss=5 acc=6\n");
  EXPECT_EQ(Collect(), "acc@3*=6");
}

TEST_F(CollectorTest, KeepsBothValuesOfAStepInOrder) {
  Write(
      source_.metrics_file,
      "{\"step\": 1, \"metrics\": {\"loss\": 0.5}}\n{\"step\": 1, \"metrics\": {\"loss\": NaN}}\n");
  EXPECT_EQ(Collect(), "loss@1=0.5 loss@1=NaN");
}

TEST_F(CollectorTest, StampsALineWithItsTimeOrNow) {
  Write(source_.log, "2026-11-21T08:30:00Z loss=1\nloss=2\n");
  Collect();
  EXPECT_EQ(last_.observations[0].time, absl::FromUnixSeconds(1'795'249'800));
  EXPECT_EQ(last_.observations[1].time, source_.now);
}

TEST_F(CollectorTest, CountsBadLinesAndShowsTheFirst) {
  Write(source_.log, "loss=1_000\nloss=0,5\nloss=2\n" + std::string(1'100'000, 'x') + "\n");
  EXPECT_EQ(Collect(), "loss@1*=2");
  EXPECT_EQ(last_.bad_lines, 3);
  EXPECT_THAT(last_.bad_sample, AllOf(HasSubstr("loss=1_000: digits"), HasSubstr(source_.log)));
}

TEST_F(CollectorTest, SaysALineIsTooLong) {
  Write(source_.log, std::string(1'100'000, 'x') + "\n");
  Collect();
  EXPECT_THAT(last_.bad_sample, HasSubstr("a line of more than 1048576 bytes"));
}

TEST_F(CollectorTest, WantsEachMetricOnce) {
  source_.metrics = {"loss", "loss", ""};
  Write(source_.log, "loss=1\n");
  EXPECT_EQ(Collect(), "loss@1*=1");
}

TEST_F(CollectorTest, StopsAtALimitOfPointsAndGoesOn) {
  std::string text;
  for (int i = 0; i < 120'000; ++i) text += "loss=1\n";
  Write(source_.log, text);
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
  Write(source_.metrics_file, text + "{\"step\": 2, \"metrics\": {\"loss\": 0.5}}\n");
  Write(source_.log, "loss=1\n");
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
  Write(source_.log, "loss=2\n");
  EXPECT_EQ(Collect(), "loss@1*=1");
}

TEST_F(CollectorTest, LeavesAnEarlierAttemptsLinesAlone) {
  UseFile(dir_.File("shared"));
  Write(dir_.File("shared"), "loss=1\n");
  cursor_ = StartCursor(source_);
  EXPECT_EQ(Collect(), "");
  Append(dir_.File("shared"), "loss=2\n");
  EXPECT_EQ(Collect(), "loss@1*=2");
}

TEST_F(CollectorTest, StartsWithNothingWhereNothingIsShared) {
  UseFile(dir_.File("shared"));
  EXPECT_EQ(StartCursor(source_).files_size(), 0);
  Write(source_.log, "loss=1\n");
  source_.spec.Clear();
  EXPECT_EQ(StartCursor(source_).files_size(), 0);
}

TEST_F(CollectorTest, ReadsAFileOnceThatIsTheMetricsFile) {
  UseFile(source_.metrics_file, v1::JSON);
  Write(source_.metrics_file, "{\"step\": 1, \"loss\": 0.5}\n");
  EXPECT_EQ(Collect(), "loss@1=0.5");
  EXPECT_EQ(cursor_.files_size(), 1);
}

TEST_F(CollectorTest, NamesTheFileThatItCannotRead) {
  UseFile(dir_.path());
  const auto collected = CreateCollector(source_.spec).value()->Collect(source_, cursor_);
  EXPECT_EQ(collected.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(collected.status()), HasSubstr(dir_.path()));
}

TEST_F(CollectorTest, RefusesASpecificationAndNamesTheField) {
  UseFile("");
  EXPECT_THAT(Message(CreateCollector(source_.spec).status()), HasSubstr("fileSystemPath.path"));
  UseFile("x", v1::JSON);
  source_.spec.mutable_source()->mutable_filter()->add_metrics_format("(a)(b)");
  EXPECT_THAT(Message(CreateCollector(source_.spec).status()), HasSubstr("filter.metricsFormat"));
  UseFile("x");
  source_.spec.mutable_source()->mutable_file_system_path()->set_kind(v1::DIRECTORY);
  EXPECT_THAT(Message(CreateCollector(source_.spec).status()), HasSubstr("fileSystemPath.kind"));
}

TEST_F(CollectorTest, NamesTheKindsAtHand) {
  source_.spec.mutable_collector()->set_kind(static_cast<v1::CollectorKind>(99));
  const Status status = CreateCollector(source_.spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("\"99\""), HasSubstr("File, None, Prometheus")));
}

TEST_F(CollectorTest, ReadsNothingElseOfWhatIsPushed) {
  Write(source_.log, "loss=1\n");
  Write(source_.metrics_file, "{\"step\": 2, \"metrics\": {\"loss\": 3}}\n");
  source_.spec.mutable_collector()->set_kind(v1::PUSH);
  EXPECT_EQ(Collect(), "loss@2=3");
  EXPECT_THAT(DescribeSource(source_), HasSubstr("among what was pushed (it was not there)"));
}

TEST_F(CollectorTest, WantsTheContainerThatCollects) {
  source_.spec.mutable_collector()->set_kind(v1::CUSTOM);
  EXPECT_THAT(Message(CreateCollector(source_.spec).status()),
              AllOf(HasSubstr("collector.customCollector"), HasSubstr("kind: Push")));
  auto& container = *source_.spec.mutable_collector()->mutable_custom_collector();
  (*container.mutable_fields())["name"].set_string_value("csv");
  Write(source_.metrics_file, "{\"step\": 2, \"metrics\": {\"loss\": 3}}\n");
  EXPECT_EQ(Collect(), "loss@2=3");
  EXPECT_THAT(DescribeSource(source_), HasSubstr("the container csv of customCollector pushed"));
}

TEST_F(CollectorTest, DescribesWhereItLooked) {
  source_.metrics = {"loss"};
  Write(source_.log, "a\nval_loss=3\n");
  EXPECT_EQ(
      DescribeSource(source_),
      "looked for metric \"loss\" in the output as `loss=<number>` or `loss: <number>` (log " +
          source_.log +
          ", 2 lines; it has values named \"val_loss\") and in the metrics file "
          "(absent)");
  source_.spec.mutable_source()->mutable_filter()->add_metrics_format("(a)=(b)");
  Write(source_.log, "");
  Write(source_.metrics_file, "{}\n");
  EXPECT_EQ(DescribeSource(source_),
            "looked for metric \"loss\" in the output with metricsFormat `(a)=(b)` (log " +
                source_.log + ", empty) and in the metrics file (1 line)");
  source_.spec.mutable_collector()->set_kind(v1::NONE);
  source_.metrics = {"loss", "acc"};
  EXPECT_EQ(DescribeSource(source_),
            "looked for metrics \"loss\" and \"acc\" in the metrics file (1 line)");
  UseFile("m.json", v1::JSON);
  EXPECT_THAT(DescribeSource(source_),
              HasSubstr("in the file " + dir_.File("m.json") + " as a key of JSON lines (absent)"));
}

TEST_F(CollectorTest, KnowsAFinishedProgram) {
  source_.metrics = {"loss"};
  Write(source_.metrics_file, "{\"step\": 1, \"metrics\": {\"loss\": 0.5}}\n");
  EXPECT_FALSE(Read().done());
  Write(source_.log, "{\"done\": true}\n");  // anybody may print that
  EXPECT_FALSE(Read().done());
  Append(source_.metrics_file, "{\"done\": true}");
  EXPECT_FALSE(Read().done()) << "the line may go on";
  Append(source_.metrics_file, "\n");
  EXPECT_TRUE(Read().done());
  EXPECT_TRUE(Read().done()) << "it stays so";
}

}  // namespace
}  // namespace shirabe::metrics
