#include "metrics/tf_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "metrics/describe_source.h"
#include "tests/metrics/collecting.h"
#include "tests/metrics/tf_records.h"
#include "tests/support/paths.h"

namespace shirabe::metrics {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kReal = SourceDir() + "/tests/testdata/events/";

class TfEventsTest : public CollectingTest {
 protected:
  TfEventsTest() {
    spec_.mutable_collector()->set_kind(v1::TENSOR_FLOW_EVENT);
    Root(dir_.File("events"));
  }

  void Root(const std::string& path) {
    spec_.mutable_source()->mutable_file_system_path()->set_path(path);
  }

  // events/<folder>/events.out.tfevents.<name>
  std::string File(const std::string& name, const std::string& folder = "") {
    const std::filesystem::path dir = dir_.File("events/" + folder);
    std::filesystem::create_directories(dir);
    return (dir / ("events.out.tfevents." + name)).lexically_normal().string();
  }
};

// ---- files of the real writers ------------------------------------------------------------------

TEST_F(TfEventsTest, ReadsWhatTensorboardXWrites) {
  Root(kReal + "tensorboardx");
  source_.metrics = {"loss", "valid/accuracy", "odd"};
  const std::string text = Collect(true);
  EXPECT_THAT(text, AllOf(HasSubstr("loss@0=1 valid/accuracy@0=0.9 loss@1=0.5 "),
                          HasSubstr(" loss@9=0.1 valid/accuracy@900=0.909 "),
                          HasSubstr(" odd@0=NaN odd@1=Infinity odd@2=-Infinity")));
  EXPECT_EQ(last_.observations.size(), 23u) << "and no loss_extra";
  EXPECT_EQ(last_.bad_lines, 0) << last_.bad_sample;
  EXPECT_EQ(last_.observations[3].time, absl::FromUnixMillis(1'795'249'801'500));
}

TEST_F(TfEventsTest, ReadsWhatTensorboardsOwnWriterWrites) {
  Root(kReal + "keras");
  source_.metrics = {"validation/epoch_loss", "train/epoch_loss", "train/lr"};
  EXPECT_THAT(Collect(true), AllOf(HasSubstr("train/epoch_loss@4=0.2 train/lr@4=0.02"),
                                   HasSubstr("validation/epoch_loss@0=1.5 ")));
  EXPECT_EQ(last_.observations.size(), 15u);
  EXPECT_EQ(last_.bad_lines, 0) << last_.bad_sample;
}

TEST_F(TfEventsTest, SaysWhichOfTwoFoldersItTook) {
  Root(kReal + "keras");
  source_.metrics = {"epoch_loss"};
  EXPECT_THAT(Collect(true), AllOf(HasSubstr("epoch_loss@0=1 "), HasSubstr("epoch_loss@4=0.2")));
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample,
              AllOf(HasSubstr("stands in the folder validation (tag epoch_loss) and in the folder "
                              "train (tag epoch_loss), which was seen first and counts"),
                    HasSubstr("as validation/epoch_loss")));
}

TEST_F(TfEventsTest, SaysThatAHistogramIsNoScalar) {
  Root(kReal + "keras");
  source_.metrics = {"train/kernel"};
  EXPECT_EQ(Collect(true), "");
  EXPECT_EQ(last_.bad_lines, 5);
  EXPECT_THAT(last_.bad_sample, HasSubstr("\"kernel\" is a tensor of more than one number"));
}

TEST_F(TfEventsTest, ReadsTheFoldersOfAddScalars) {
  Root(kReal + "tensorboardx");
  source_.metrics = {"valid/pair", "pair/train/pair"};
  EXPECT_EQ(Collect(true), "pair/train/pair@3=0.25 valid/pair@3=0.5");
}

TEST_F(TfEventsTest, TellsTheTagsToWhoeverMissesOne) {
  Root(kReal + "tensorboardx");
  source_.metrics = {"los"};
  EXPECT_EQ(Collect(true), "") << "a tag is no prefix";
  EXPECT_THAT(Describe(), HasSubstr("(3 files; they have the tags \"loss\", \"loss_extra\", "
                                    "\"valid/accuracy\", \"odd\", \"pair\")"));
  Root(dir_.File("nowhere"));
  EXPECT_THAT(Describe(), HasSubstr("nowhere (0 files)"));
}

// ---- a program that runs ------------------------------------------------------------------------

TEST_F(TfEventsTest, ReadsFilesThatAppearAndGrow) {
  EXPECT_EQ(Collect(), "");
  Append(File("1"), ScalarRecord("loss", 1, 0.5f));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  EXPECT_EQ(Collect(), "");
  Append(File("1"), ScalarRecord("loss", 2, 0.25f));
  Append(File("2"), ScalarRecord("acc", 2, 0.75f));
  EXPECT_EQ(Collect(), "loss@2=0.25 acc@2=0.75");
  Append(File("1"), ScalarRecord("loss", 3, 0.125f));
  EXPECT_EQ(Collect(), "loss@3=0.125");
}

TEST_F(TfEventsTest, HoldsAPartOfARecord) {
  const std::string record = ScalarRecord("loss", 1, 0.5f);
  for (size_t cut = 0; cut < record.size(); ++cut) {
    Write(File("1"), record.substr(0, cut));
    cursor_.Clear();
    EXPECT_EQ(Collect(), "") << cut;
    EXPECT_EQ(last_.bad_lines, 0) << cut;
    Append(File("1"), record.substr(cut));
    EXPECT_EQ(Collect(), "loss@1=0.5") << cut;
  }
}

TEST_F(TfEventsTest, SaysThatTheLastRecordIsCutOff) {
  Write(File("1"), ScalarRecord("loss", 1, 0.5f) + ScalarRecord("loss", 2, 0.25f).substr(0, 20));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  EXPECT_EQ(last_.bad_lines, 0) << "it may still be written";
  EXPECT_EQ(Collect(true), "");
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample, AllOf(HasSubstr("cut off: 20 of 42 bytes"), HasSubstr("events.1")));
  Collect(true);
  EXPECT_EQ(last_.bad_lines, 0) << "once";
}

TEST_F(TfEventsTest, SkipsADamagedEvent) {
  std::string damaged = ScalarRecord("loss", 2, 0.25f);
  damaged[20] = 'x';
  Write(File("1"), ScalarRecord("loss", 1, 0.5f) + damaged + ScalarRecord("loss", 3, 0.125f));
  EXPECT_EQ(Collect(), "loss@1=0.5 loss@3=0.125");
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample, HasSubstr("an event with a wrong checksum, at byte 42"));
}

TEST_F(TfEventsTest, FindsItsWayAfterADamagedLength) {
  const std::string junk(5000, 'x');
  Write(File("1"), ScalarRecord("loss", 1, 0.5f) + junk + ScalarRecord("loss", 3, 0.125f));
  EXPECT_EQ(Collect(), "loss@1=0.5 loss@3=0.125");
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample, HasSubstr("a length with a wrong checksum, at byte 42"));
}

TEST_F(TfEventsTest, FindsItsWayWhereverTheFileWasCut) {
  const std::string junk(100, '\1');
  const std::string contents =
      ScalarRecord("loss", 1, 0.5f) + junk + ScalarRecord("loss", 2, 0.25f);
  for (size_t cut = 0; cut <= contents.size(); ++cut) {
    Write(File("1"), contents.substr(0, cut));
    cursor_.Clear();
    std::string text = Collect();
    int64_t bad = last_.bad_lines;
    Append(File("1"), contents.substr(cut));
    const std::string rest = Collect(true);
    bad += last_.bad_lines;
    text += (text.empty() || rest.empty() ? "" : " ") + rest;
    EXPECT_EQ(text, "loss@1=0.5 loss@2=0.25") << cut;
    EXPECT_EQ(bad, 1) << cut;
  }
}

// A network file system may show a file's new length before its contents.
TEST_F(TfEventsTest, WaitsForZerosAtTheEndToBecomeSomething) {
  const std::string first = ScalarRecord("loss", 1, 0.5f);
  const std::string second = ScalarRecord("loss", 2, 0.25f);
  Write(File("1"), first + std::string(second.size(), '\0'));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  EXPECT_EQ(last_.bad_lines, 0);
  Write(File("1"), first + second);
  EXPECT_EQ(Collect(), "loss@2=0.25");
}

TEST_F(TfEventsTest, ReadsARecordThatIsLargerThanItsWindow) {
  const std::string image = BytesField(5, BytesField(1, BytesField(4, std::string(6 << 20, 'i'))));
  const std::string record = TfRecordOf(image);
  Write(File("1"), ScalarRecord("loss", 1, 0.5f) + record.substr(0, 5 << 20));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  Append(File("1"), record.substr(5 << 20) + ScalarRecord("loss", 2, 0.25f));
  std::string text = Collect();
  while (last_.more) text += Collect();
  EXPECT_EQ(text, "loss@2=0.25");
  EXPECT_EQ(last_.bad_lines, 0);
}

TEST_F(TfEventsTest, SaysThatALargeRecordIsCutOff) {
  const std::string record = TfRecordOf(std::string(6 << 20, 'i'));
  Write(File("1"), record.substr(0, 3 << 20));
  EXPECT_EQ(Collect(), "");
  EXPECT_EQ(last_.bad_lines, 0);
  Collect(true);
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample, HasSubstr("cut off: 3145728 of 6291472 bytes"));
  Collect(true);
  EXPECT_EQ(last_.bad_lines, 0);
}

TEST_F(TfEventsTest, StopsAtItsLimitsAndGoesOn) {
  std::string contents;
  for (uint64_t i = 0; i < 120'000; ++i) contents += ScalarRecord("loss", i, 0.5f);
  Write(File("1"), contents);
  Write(File("2"), ScalarRecord("acc", 1, 0.5f));
  size_t points = 0;
  int calls = 0;
  do {
    Collect();
    EXPECT_LE(last_.observations.size(), 50'000u);
    points += last_.observations.size();
  } while (last_.more && ++calls < 10);
  EXPECT_EQ(points, 120'001u);
}

TEST_F(TfEventsTest, ReadsAFileThatReplacesAnotherFromItsBeginning) {
  Write(File("1"), ScalarRecord("loss", 1, 0.5f));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  Write(File("1"), ScalarRecord("acc", 1, 0.5f) + ScalarRecord("loss", 2, 0.25f));
  EXPECT_EQ(Collect(), "acc@1=0.5 loss@2=0.25");
}

TEST_F(TfEventsTest, LeavesAnEarlierAttemptsEventsAlone) {
  Write(File("1"), ScalarRecord("loss", 1, 0.5f));
  Write(File("2", "sub"), ScalarRecord("loss", 2, 0.5f));
  cursor_ = Start();
  EXPECT_EQ(cursor_.files_size(), 2);
  EXPECT_EQ(Collect(), "");
  Append(File("1"), ScalarRecord("loss", 3, 0.25f));
  Write(File("3"), ScalarRecord("loss", 4, 0.125f));
  EXPECT_EQ(Collect(), "loss@3=0.25 loss@4=0.125");
}

TEST_F(TfEventsTest, KeepsAMetricToTheFolderThatHadItFirst) {
  Write(File("1", "b"), ScalarRecord("loss", 1, 0.5f));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  Write(File("1", "a"), ScalarRecord("loss", 1, 9.0f));
  Append(File("1", "b"), ScalarRecord("loss", 2, 0.25f));
  EXPECT_EQ(Collect(), "loss@2=0.25") << "also where the other one comes first by name";
  EXPECT_EQ(last_.bad_lines, 1);
}

TEST_F(TfEventsTest, TakesAMetricOfTheMetricsFileFromNowhereElse) {
  Write(File("1"), ScalarRecord("loss", 1, 0.5f) + ScalarRecord("acc", 1, 0.5f));
  Write(source_.files.metrics, "{\"step\": 1, \"metrics\": {\"loss\": 7}}\n");
  EXPECT_EQ(Collect(), "loss@1=7 acc@1=0.5");
}

TEST_F(TfEventsTest, RefusesAStepBelowZero) {
  Write(File("1"), ScalarRecord("loss", static_cast<uint64_t>(-3), 0.5f));
  EXPECT_EQ(Collect(), "");
  EXPECT_THAT(last_.bad_sample, HasSubstr("\"loss\" has the step -3"));
}

TEST_F(TfEventsTest, ReadsOneFileByItsOwnName) {
  Write(File("1"), ScalarRecord("loss", 1, 0.5f));
  Root(File("1"));
  EXPECT_EQ(Collect(), "loss@1=0.5");
}

TEST_F(TfEventsTest, ReadsOnlyEventFilesAndNoMoreThanItsCursorHolds) {
  Write(File("1"), ScalarRecord("loss", 1, 0.5f));
  Write(dir_.File("events/checkpoint.bin"), ScalarRecord("loss", 2, 0.5f));
  EXPECT_EQ(Collect(), "loss@1=0.5");
  for (int i = 0; i < 300; ++i) Write(File(absl::StrCat("x", i)), ScalarRecord("acc", i, 1.0f));
  Collect();
  EXPECT_EQ(cursor_.files_size(), 200);
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample, HasSubstr("more than 200 event files"));
  Collect();
  EXPECT_EQ(last_.bad_lines, 0) << "once";
}

}  // namespace
}  // namespace shirabe::metrics
