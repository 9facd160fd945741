#include "metrics/metrics_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/metrics/testing.h"

namespace shirabe::metrics {
namespace {

constexpr char kKatibsDefault[] = R"(([\w|-]+)\s*=\s*((-?\d+)(\.\d+)?))";

StatusOr<PatternsPtr> Compile(const std::vector<std::string>& formats) {
  v1::FilterSpec filter;
  for (const std::string& format : formats) filter.add_metrics_format(format);
  return CompilePatterns(filter);
}

std::string ReadPattern(const std::vector<std::string>& formats, std::string_view line) {
  const std::vector<std::string> metrics = {"loss", "acc"};
  return Show(*TextParserMaker(Compile(formats).value())(metrics), metrics, line);
}

TEST(PatternParser, TakesEveryMatchOfEveryExpression) {
  const std::string katib = R"({metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)})";
  EXPECT_EQ(
      ReadPattern({katib},
                  "{metricName: loss, metricValue: 0.25};{metricName: acc, metricValue: 0.5}"),
      "loss=0.25 acc=0.5");
  EXPECT_EQ(ReadPattern({katib}, "loss=0.25"), "");
  EXPECT_EQ(
      ReadPattern({katib, "(\\w+) is (\\S+)"}, "acc is 1 {metricName: loss, metricValue: 0.25}"),
      "acc=1 loss=0.25");
}

TEST(PatternParser, CountsAValueOnceThatTwoExpressionsFind) {
  EXPECT_EQ(ReadPattern({kKatibsDefault, "(loss)=(\\S+)"}, "loss=0.25"), "loss=0.25");
}

TEST(PatternParser, ReadsTheNumberToItsEnd) {
  EXPECT_EQ(ReadPattern({kKatibsDefault}, "loss=1e-05"), "loss=1e-05");
  EXPECT_EQ(ReadPattern({kKatibsDefault}, "loss=1.5e3, acc=2"), "loss=1500 acc=2");
  for (const char* line : {"loss=1_000", "loss=0.5.1", "loss=0,5", "loss=0x10"}) {
    EXPECT_EQ(ReadPattern({kKatibsDefault}, line), "!") << line;
  }
}

TEST(PatternParser, LeavesUnitsToTheExpression) {
  EXPECT_EQ(ReadPattern({kKatibsDefault}, "loss=12ms"), "loss=12");
  EXPECT_EQ(ReadPattern({"(loss)=(\\d+)_"}, "loss=12_5"), "loss=12");
}

TEST(PatternParser, WantsNumbersOfWantedMetricsOnly) {
  EXPECT_EQ(ReadPattern({"(\\w+)=(\\S*)"}, "other=x loss=abc acc=1"), "acc=1 !");
  EXPECT_EQ(ReadPattern({"(\\w+)=(\\S*)"}, "loss="), "!");
  EXPECT_EQ(ReadPattern({"(\\w+)(=.*)?"}, "loss"), "");
  EXPECT_EQ(ReadPattern({"()(x*)"}, "loss"), "");
  EXPECT_EQ(ReadPattern({"(\\w+) *: *(\\S+)"}, "\x1b[1mloss\x1b[0m: \x1b[31mnan\x1b[0m"),
            "loss=NaN");
  EXPECT_EQ(ReadPattern({"(\\w+)=(\\S+)"}, "\xff loss=1"), "loss=1");
}

TEST(PatternParser, IsTheDefaultFormatWithoutExpressions) {
  EXPECT_EQ(ReadPattern({}, "loss: 1"), "loss=1");
}

TEST(CompilePatterns, NamesTheFieldTheTextAndTheFix) {
  const Status broken = Compile({"(a)(b)", "(loss=("}).status();
  EXPECT_EQ(broken.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      Message(broken),
      testing::AllOf(testing::HasSubstr("spec.metricsCollectorSpec.source.filter.metricsFormat[1]"),
                     testing::HasSubstr("(loss=("), testing::HasSubstr("missing )")));
  const Status groups = Compile({"loss=(\\d+)"}).status();
  EXPECT_EQ(groups.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(groups), testing::HasSubstr("two groups"));
  EXPECT_FALSE(Compile({"(?=x)(a)(b)"}).ok()) << "look-ahead is not in RE2, nor in Go";
}

}  // namespace
}  // namespace shirabe::metrics
