#include "cmd/verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"

namespace shirabe::cmd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(VerbTest, EveryVerbIsListedOnceWithItsSummary) {
  const std::vector<std::string> lines = absl::StrSplit(VerbList(), '\n');
  const std::vector<std::string> names = VerbNames();
  EXPECT_GE(names.size(), 37u);
  for (const std::string& name : names) {
    const Verb& verb = *FindVerb(name);
    EXPECT_FALSE(verb.summary.empty()) << name;
    EXPECT_FALSE(verb.summary.ends_with(".")) << name;
    EXPECT_NE(verb.run, nullptr) << name;
    std::string line = "  " + name;
    line.resize(14, ' ');
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line + verb.summary), 1) << name;
  }
}

TEST(VerbTest, VerbsForProgramsAreThereAndNotListed) {
  for (const char* name : {"__complete", "pod"}) {
    ASSERT_NE(FindVerb(name), nullptr) << name;
    EXPECT_THAT(VerbNames(), Not(Contains(name)));
    EXPECT_THAT(VerbList(), Not(HasSubstr(std::string("  ") + name + " ")));
  }
  EXPECT_EQ(FindVerb("no-such-verb"), nullptr);
  EXPECT_EQ(FindVerb(""), nullptr);
}

// The words that come next, without a store to read.
TEST(VerbTest, EachVerbKnowsItsOwnWords) {
  const auto next = [](const Arguments& words) { return FindVerb(words[0])->completes(words); };
  EXPECT_THAT(next({"get", ""}),
              ElementsAre("exp", "trials", "attempts", "checkpoints", "metrics"));
  EXPECT_THAT(next({"describe", ""}), ElementsAre("exp", "trial", "schedule"));
  EXPECT_THAT(next({"import", ""}), ElementsAre("optuna", "katib", "csv"));
  EXPECT_THAT(next({"import", "csv", ""}), IsEmpty());
  EXPECT_THAT(next({"config", ""}), Contains("use-context"));
  EXPECT_THAT(next({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(next({"explain", ""}), ElementsAre("algorithm", "experiment", "stopper"));
  EXPECT_THAT(next({"explain", "algorithm", ""}),
              AllOf(Contains("tpe"), Not(Contains("medianstop"))));
  EXPECT_THAT(next({"explain", "stopper", ""}),
              AllOf(Contains("medianstop"), Not(Contains("tpe"))));
  EXPECT_THAT(next({"algorithms", ""}), Contains("bayesianoptimization"));
  EXPECT_EQ(FindVerb("version")->completes, nullptr);
  EXPECT_THAT(FindVerb("export")->outputs, ElementsAre("csv", "jsonl", "tensorboard", "mlflow"));
}

}  // namespace
}  // namespace shirabe::cmd
