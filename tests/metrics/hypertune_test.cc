#include "metrics/attempt_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/rng.h"
#include "metrics/describe_source.h"
#include "tests/metrics/collecting.h"

namespace shirabe::metrics {
namespace {

using testing::HasSubstr;

// What the library does: keeps the last 100 reports, and writes all of them with each new one.
class Writer {
 public:
  explicit Writer(std::string path) : path_(std::move(path)) {}

  void Report(const std::string& metric, double value, int64_t step) {
    lines_.push_back(absl::StrCat(
        "{\"checkpoint_path\": \"\", \"global_step\": \"", step, "\", \"", metric, "\": \"",
        FormatNumber(value), "\", \"timestamp\": ", 1000 + count_++, ".5, \"trial\": \"7\"}\n"));
    if (lines_.size() > 100) lines_.pop_front();
    Write(path_, contents());
  }

  std::string contents() const {
    std::string text;
    for (const std::string& line : lines_) text += line;
    return text;
  }

 private:
  const std::string path_;
  std::deque<std::string> lines_;
  int count_ = 0;
};

class HypertuneTest : public CollectingTest {
 protected:
  Writer writer_{source_.files.hypertune};
};

TEST_F(HypertuneTest, ReadsReportsWithStepsAndTimes) {
  writer_.Report("loss", 0.5, 10);
  writer_.Report("loss", 0.25, 20);
  EXPECT_EQ(Collect(), "loss@10=0.5 loss@20=0.25");
  EXPECT_EQ(last_.observations[1].time, absl::FromUnixMillis(1'001'500));
  EXPECT_EQ(last_.bad_lines, 0);
}

TEST_F(HypertuneTest, CountsEachReportOnce) {
  int64_t taken = 0;
  Rng rng(1);
  for (int64_t step = 1; step <= 1000; ++step) {
    writer_.Report("loss", 0.5, step);
    if (rng.Below(10) != 0) continue;
    Collect();
    for (const Observation& point : last_.observations) EXPECT_EQ(point.step, ++taken);
  }
  Collect(true);
  for (const Observation& point : last_.observations) EXPECT_EQ(point.step, ++taken);
  EXPECT_EQ(taken, 1000) << "it looked often enough";
  EXPECT_LT(cursor_.ByteSizeLong(), 1200u);
}

// A look while the writer is at work sees the file empty, or its beginning.
TEST_F(HypertuneTest, IsNotLedAstrayByAFileThatIsHalfWritten) {
  Rng rng(2);
  std::vector<bool> seen(301);
  for (int64_t step = 1; step <= 300; ++step) {
    writer_.Report("loss", 0.5, step);
    const std::string whole = writer_.contents();
    for (int look = 0; look < 3; ++look) {
      Write(source_.files.hypertune, whole.substr(0, rng.Below(whole.size() + 1)));
      if (rng.Below(4) == 0) Write(source_.files.hypertune, whole);
      Collect();
      EXPECT_EQ(last_.bad_lines, 0);
      for (const Observation& point : last_.observations) {
        EXPECT_FALSE(seen[point.step]) << point.step << " twice";
        seen[point.step] = true;
      }
    }
  }
  Write(source_.files.hypertune, writer_.contents());
  Collect(true);
  for (const Observation& point : last_.observations) seen[point.step] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 300);
}

TEST_F(HypertuneTest, GoesOnWithAWriterThatBeginsAgain) {
  writer_.Report("loss", 0.5, 1);
  writer_.Report("loss", 0.25, 2);
  EXPECT_EQ(Collect(), "loss@1=0.5 loss@2=0.25");
  Writer second(source_.files.hypertune);
  second.Report("acc", 0.75, 3);
  EXPECT_EQ(Collect(), "acc@3=0.75");
}

// A report without a step has the step 0 too.
TEST_F(HypertuneTest, CountsPointsWhoseStepIsZeroAgain) {
  writer_.Report("loss", 0.5, 0);
  writer_.Report("acc", 0.5, 0);
  EXPECT_EQ(Collect(), "loss@0=0.5 acc@0=0.5");
  writer_.Report("loss", 0.25, 0);
  writer_.Report("acc", 0.75, 1);
  EXPECT_EQ(Collect(), "loss@1*=0.25 acc@1=0.75");
  writer_.Report("loss", 0.125, 0);
  EXPECT_EQ(Collect(), "loss@2*=0.125");
}

TEST_F(HypertuneTest, GoesOnCountingFromAnEarlierAttempt) {
  (*cursor_.mutable_counts())["loss"] = 7;
  writer_.Report("loss", 0.5, 0);
  EXPECT_EQ(Collect(), "loss@8*=0.5");
}

TEST_F(HypertuneTest, ReportsWhatCannotBeReadOnce) {
  Write(source_.files.hypertune, "{\"loss\": \"0,5\", \"global_step\": \"1\"}\n\xff\n");
  EXPECT_EQ(Collect(), "");
  EXPECT_EQ(last_.bad_lines, 2);
  EXPECT_THAT(last_.bad_sample, HasSubstr("\"loss\" is 0,5"));
  Write(source_.files.hypertune, "{\"loss\": \"0,5\", \"global_step\": \"1\"}\n\xff\n{}\n");
  Collect();
  EXPECT_EQ(last_.bad_lines, 0);
}

TEST_F(HypertuneTest, TakesAMetricOfItFromNowhereElse) {
  writer_.Report("loss", 0.5, 1);
  Write(source_.files.log, "loss=0.5 acc=0.75\n");
  EXPECT_EQ(Collect(), "loss@1=0.5 acc@1*=0.75");
  writer_.Report("loss", 0.25, 2);
  Append(source_.files.log, "loss=0.25\n");
  EXPECT_EQ(Collect(), "loss@2=0.25") << "and goes on to take it from there";
}

TEST_F(HypertuneTest, IsNamedWhereItIsThere) {
  source_.metrics = {"loss"};
  EXPECT_THAT(Describe(), testing::Not(HasSubstr("hypertune")));
  writer_.Report("training/hptuning/metric", 0.5, 1);
  EXPECT_THAT(Describe(), HasSubstr("and in hypertune's file (1 line; it has values named "));
}

}  // namespace
}  // namespace shirabe::metrics
