#include "metrics/prometheus_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"

namespace shirabe::metrics {
namespace {

using testing::HasSubstr;

// "name{a="1"}=0.5@1000 …": each sample, with its time in milliseconds where it has one.
std::string ShowExposition(std::string_view text, bool open_metrics = false) {
  const Exposition page = ParseExposition(text, open_metrics);
  std::string shown;
  for (const Sample& sample : page.samples) {
    absl::StrAppend(&shown, shown.empty() ? "" : " ", ToString(sample.series), "=",
                    FormatNumber(sample.value),
                    sample.time ? absl::StrCat("@", absl::ToUnixMillis(*sample.time)) : "");
  }
  if (page.bad_lines > 0) absl::StrAppend(&shown, " bad ", page.bad_lines, " ", page.bad_sample);
  return shown;
}

TEST(Exposition, ReadsSamplesAndStepsOverComments) {
  EXPECT_EQ(
      ShowExposition("# HELP loss what is lost\n# TYPE loss gauge\nloss 0.25\n\nacc  1e-3 \r\n"
                     "a:b_1 5"),
      "loss=0.25 acc=0.001 a:b_1=5");
}

TEST(Exposition, ReadsLabelsWithEverythingInThem) {
  EXPECT_EQ(
      ShowExposition("loss{split=\"valid\",fold=\"1\"} 0.5\nloss{} 1\nloss { a = \"b\" , } 2"),
      "loss{fold=\"1\",split=\"valid\"}=0.5 loss=1 loss{a=\"b\"}=2");
  EXPECT_EQ(ShowExposition(R"(loss{a="x\"y\\z\n} # {",b="ü"} 3)"),
            R"(loss{a="x\"y\\z\n} # {",b="ü"}=3)");
  EXPECT_EQ(ShowExposition(R"({"my metric", a="1"} 4)"), R"(my metric{a="1"}=4)");
}

TEST(Exposition, ReadsNumbersThatAreNone) {
  EXPECT_EQ(ShowExposition("a NaN\nb +Inf\nc -Inf\nd -0.5"), "a=NaN b=Infinity c=-Infinity d=-0.5");
}

TEST(Exposition, ReadsTimesInTheirUnit) {
  EXPECT_EQ(ShowExposition("a 1 1795249800500"), "a=1@1795249800500");
  EXPECT_EQ(ShowExposition("a 1 1795249800.5\n# EOF", true), "a=1@1795249800500");
  EXPECT_EQ(ShowExposition("a 1 -5"), "a=1") << "no time that can be meant";
}

TEST(Exposition, StepsOverExemplars) {
  EXPECT_EQ(ShowExposition("a_bucket{le=\"1\"} 17 # {trace_id=\"KOO5S4\"} 0.67 1520879607.789\n"
                           "b_total 5 1520879607.789 # {t=\"x\"} 0.1",
                           true),
            "a_bucket{le=\"1\"}=17 b_total=5@1520879607789");
}

TEST(Exposition, CountsLinesThatAreNoSamples) {
  EXPECT_EQ(ShowExposition(
                "loss\nloss x\n1 2\nloss{a=} 1\nloss{a=\"b} 1\nloss{a=\"b\" c=\"d\"} 1\nloss 1_0\n"
                "loss 1 2 3\nloss 1 x\nok 1"),
            "ok=1 bad 9 loss");
}

TEST(Exposition, TakesTheNameOfASeries) {
  EXPECT_EQ(ParseSeries("loss"), (Series{"loss", {}}));
  EXPECT_EQ(ParseSeries("loss{split=\"valid\"}"), (Series{"loss", {{"split", "valid"}}}));
  EXPECT_EQ(ParseSeries("val-accuracy"), std::nullopt);
  EXPECT_EQ(ParseSeries("a b"), std::nullopt);
}

class FindSampleTest : public testing::Test {
 protected:
  std::string Find(const Series& wanted) {
    std::string why;
    const Sample* sample = FindSample(page_, wanted, why);
    return sample == nullptr ? why : FormatNumber(sample->value);
  }

  const Exposition page_ = ParseExposition(
      "one{a=\"1\"} 1\nloss{split=\"train\"} 2\nloss{split=\"valid\",fold=\"1\"} 3\n"
      "loss{split=\"valid\",fold=\"2\"} 4\nboth 5\nboth{a=\"1\"} 6\ntwice 7\ntwice 8\n",
      false);
};

TEST_F(FindSampleTest, TakesTheOneThereIs) {
  EXPECT_EQ(Find({"one", {}}), "1");
  EXPECT_EQ(Find({"on", {}}), "") << "not by the beginning of a name";
  EXPECT_EQ(Find({"loss", {{"split", "train"}}}), "2");
  EXPECT_EQ(Find({"loss", {{"fold", "2"}}}), "4");
  EXPECT_EQ(Find({"loss", {{"fold", "3"}}}), "");
  EXPECT_EQ(Find({"twice", {}}), "8") << "the later line";
}

TEST_F(FindSampleTest, TakesTheOneWithoutOtherLabels) { EXPECT_EQ(Find({"both", {}}), "5"); }

TEST_F(FindSampleTest, SaysThatItIsNotClearWhich) {
  EXPECT_THAT(Find({"loss", {}}), HasSubstr("loss has 3 series: loss{split=\"train\"}, "));
  EXPECT_THAT(Find({"loss", {{"split", "valid"}}}), HasSubstr("has 2 series"));
}

}  // namespace
}  // namespace shirabe::metrics
