#include "metrics/trainer_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"

namespace shirabe::metrics {
namespace {

using testing::HasSubstr;

// {"a": "1"} as the list of the call.
std::string Call(const std::vector<std::pair<std::string, std::string>>& metrics,
                 int progress = 10) {
  std::string list;
  for (const auto& [name, value] : metrics) {
    absl::StrAppend(&list, list.empty() ? "" : ", ", "{\"name\": \"", name, "\", \"value\": \"",
                    value, "\"}");
  }
  return absl::StrCat("{\"trainerStatus\": {\"progressPercentage\": ", progress, ", \"metrics\": [",
                      list, "]}}");
}

class TrainerStatusTest : public testing::Test {
 protected:
  // "loss@3=0.5 lr@3=0.1"
  std::string Tell(const std::vector<std::pair<std::string, std::string>>& metrics) {
    const auto status = ParseTrainerStatus(Call(metrics, progress_));
    EXPECT_TRUE(status.ok()) << status.status();
    const auto points = NewObservations(*status, memory_);
    EXPECT_TRUE(points.ok()) << points.status();
    std::string text;
    for (const TrainerObservation& point : *points) {
      absl::StrAppend(&text, text.empty() ? "" : " ", point.metric, "@",
                      point.step ? absl::StrCat(*point.step) : "?", "=", FormatNumber(point.value));
    }
    return text;
  }

  TrainerState memory_;
  int progress_ = 10;
};

TEST_F(TrainerStatusTest, ReadsACall) {
  const auto status = ParseTrainerStatus(
      R"({"trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 61,
          "lastUpdatedTime": "2026-11-21T08:30:00.5+00:00", "metrics": [
          {"name": "loss", "value": "0.25"}, {"name": "current_step", "value": "20"},
          {"name": "note", "value": "warm"}, {"name": "lr", "value": 1e-05},
          {"name": "gap", "value": "nan"}]}})");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->progress_percent, 40);
  EXPECT_EQ(status->remaining_seconds, 61);
  EXPECT_EQ(status->time, absl::FromUnixMillis(1'795'249'800'500));
  EXPECT_EQ(status->step, 20);
  ASSERT_EQ(status->metrics.size(), 3u);
  EXPECT_EQ(status->metrics[1], (std::pair<std::string, double>("lr", 1e-5)));
}

TEST_F(TrainerStatusTest, NamesTheFieldThatIsWrong) {
  const auto error = [](std::string_view body) {
    return Message(ParseTrainerStatus(body).status());
  };
  EXPECT_THAT(error("nonsense"), HasSubstr("trainerStatus: is missing in nonsense"));
  EXPECT_THAT(error("{\"trainerStatus\": 1}"), HasSubstr("must be an object"));
  EXPECT_THAT(error("{\"trainerStatus\": {\"progressPercentage\": 101}}"),
              HasSubstr("trainerStatus.progressPercentage: must be a whole number from 0 to 100"));
  EXPECT_THAT(error("{\"trainerStatus\": {\"metrics\": {}}}"), HasSubstr(".metrics: must be"));
  EXPECT_THAT(error("{\"trainerStatus\": {\"metrics\": [{\"name\": 1}]}}"),
              HasSubstr(".metrics[0]: must be {name"));
  EXPECT_THAT(error(Call({{"current_step", "-1"}})), HasSubstr("must be a whole number from 0"));
  EXPECT_THAT(error(Call({{"step", "1.5"}})), HasSubstr("must be a whole number from 0"));
  EXPECT_THAT(error(Call({{"step", "inf"}})), HasSubstr("must be a whole number from 0"));
  EXPECT_THAT(error(Call({{std::string(kMaxTrainerMetricName + 1, 'n'), "1"}})),
              HasSubstr(".metrics[0]: its name has more than 256 bytes"));
  const std::vector<std::pair<std::string, std::string>> many(kMaxTrainerMetrics + 1, {"n", "1"});
  EXPECT_THAT(error(Call(many)), HasSubstr(".metrics: more than 1000 names"));
  EXPECT_THAT(error(std::string(kMaxTrainerStatusBytes + 1, ' ')), HasSubstr("larger than"));
  EXPECT_TRUE(ParseTrainerStatus("{\"trainerStatus\": {}}").ok());
}

TEST_F(TrainerStatusTest, DoesNotTakeWhatIsSentAgainForNew) {
  EXPECT_EQ(Tell({{"loss", "1"}, {"lr", "0.1"}, {"current_step", "10"}}), "loss@10=1 lr@10=0.1");
  EXPECT_EQ(Tell({{"loss", "1"}, {"lr", "0.1"}, {"current_step", "15"}}), "");
  EXPECT_EQ(Tell({{"loss", "1"}, {"lr", "0.1"}, {"eval_loss", "2"}, {"current_step", "17"}}),
            "eval_loss@17=2");
  EXPECT_EQ(Tell({{"loss", "0.5"}, {"lr", "0.1"}, {"eval_loss", "2"}, {"current_step", "20"}}),
            "loss@20=0.5 lr@20=0.1");
}

// The same loss twice is two points if something else of the same log line has moved on.
TEST_F(TrainerStatusTest, TakesAnEqualValueThatIsLoggedAnew) {
  Tell({{"loss", "1"}, {"lr", "0.1"}, {"current_step", "10"}});
  EXPECT_EQ(Tell({{"loss", "1"}, {"lr", "0.05"}, {"current_step", "20"}}), "loss@20=1 lr@20=0.05");
  Tell({{"eval_loss", "3"}, {"eval_runtime", "1.1"}, {"current_step", "30"}});
  EXPECT_EQ(Tell({{"eval_loss", "3"}, {"eval_runtime", "1.2"}, {"current_step", "40"}}),
            "eval_loss@40=3 eval_runtime@40=1.2");
}

// The call of a step is made before what that step logs.
TEST_F(TrainerStatusTest, ACallWithoutAStepIsOfOneAfterTheLast) {
  Tell({{"loss", "1"}, {"current_step", "10"}});
  EXPECT_EQ(Tell({{"loss", "0.5"}, {"train_loss", "1.5"}}), "loss@11=0.5 train_loss@11=1.5");
  EXPECT_EQ(Tell({{"loss", "0.5"}, {"train_loss", "1.5"}}), "");
  EXPECT_EQ(Tell({{"loss", "0.25"}}), "loss@12=0.25");
}

TEST_F(TrainerStatusTest, TheLastCallIsOfTheEnd) {
  Tell({{"total_steps", "48"}});
  progress_ = 100;
  EXPECT_EQ(Tell({{"eval_loss", "1"}}), "eval_loss@48=1") << "of a training of a few seconds";
  EXPECT_EQ(Tell({{"eval_loss", "0.5"}}), "eval_loss@49=0.5") << "of another one after it";
}

TEST_F(TrainerStatusTest, NonsenseIsNoNumberOfSteps) {
  progress_ = 100;
  for (const char* total : {"nan", "-1", "1e300", "0"}) {
    memory_ = {};
    Tell({{"total_steps", total}});
    EXPECT_EQ(Tell({{"loss", "1"}}), "loss@?=1") << total;
  }
}

TEST_F(TrainerStatusTest, ProgressAloneIsNoNews) {
  EXPECT_EQ(Tell({{"total_steps", "100"}}), "");
  Tell({{"loss", "1"}, {"epoch", "0.1"}, {"current_step", "1"}});
  EXPECT_EQ(Tell({{"loss", "1"}, {"epoch", "0.2"}, {"current_epoch", "0.2"}, {"step", "2"}}), "");
}

TEST_F(TrainerStatusTest, RemembersNoMoreNamesThanTheLimit) {
  const auto names = [](size_t first, size_t count) {
    std::vector<std::pair<std::string, std::string>> metrics;
    for (size_t i = first; i < first + count; ++i) metrics.emplace_back(absl::StrCat("m", i), "1");
    return *ParseTrainerStatus(Call(metrics));
  };
  EXPECT_TRUE(NewObservations(names(0, kMaxTrainerMetrics - 1), memory_).ok());
  const Status status = NewObservations(names(kMaxTrainerMetrics, 2), memory_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(memory_.metrics.size(), kMaxTrainerMetrics - 1);
  EXPECT_TRUE(NewObservations(names(kMaxTrainerMetrics, 1), memory_).ok());
  EXPECT_EQ(NewObservations(names(0, kMaxTrainerMetrics), memory_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TrainerStatusTest, KnowsNoStepWhereNobodyNamedOne) {
  EXPECT_EQ(Tell({{"loss", "1"}}), "loss@?=1");
  EXPECT_EQ(Tell({{"loss", "nan"}}), "loss@?=NaN");
  EXPECT_EQ(Tell({{"loss", "nan"}}), "");
}

}  // namespace
}  // namespace shirabe::metrics
