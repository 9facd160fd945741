#include "tracking/mlflow_export.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace shirabe::tracking {
namespace {

TEST(MlflowNamesTest, NamesThatAreFitStayAsTheyAre) {
  const MlflowKeys keys({"loss", "val/acc", "lr-1.5 x_y"});
  EXPECT_EQ(keys.KeyOf("loss"), "loss");
  EXPECT_EQ(keys.KeyOf("val/acc"), "val/acc");
  EXPECT_EQ(keys.KeyOf("lr-1.5 x_y"), "lr-1.5 x_y");
}

TEST(MlflowNamesTest, OthersAreWrittenByTheirBytes) {
  const MlflowKeys keys({});
  EXPECT_EQ(keys.KeyOf("a?b"), "a:3Fb");
  EXPECT_EQ(keys.KeyOf("a:b"), "a:3Ab");
  EXPECT_EQ(keys.KeyOf("é"), ":C3:A9");
  EXPECT_EQ(keys.KeyOf(std::string("a\0b", 3)), "a:00b");
  EXPECT_EQ(keys.KeyOf(""), ":");
}

TEST(MlflowNamesTest, AFolderIsNotAFileAsWell) {
  const MlflowKeys keys({"loss", "loss/train"});
  EXPECT_EQ(keys.KeyOf("loss"), "loss");
  EXPECT_EQ(keys.KeyOf("loss/train"), "loss:2Ftrain");
  EXPECT_EQ(MlflowKeys({"loss"}).KeyOf("other/one"), "other:2Fone");
}

TEST(MlflowNamesTest, NoKeyLeavesItsFolderAndNoTwoAreEqual) {
  const std::vector<std::string> names = {"..",
                                          ".",
                                          "/",
                                          "//",
                                          "../x",
                                          "/etc/passwd",
                                          "a/../b",
                                          "a/./b",
                                          "a//b",
                                          "a/",
                                          "/a",
                                          ".a",
                                          "a/.b",
                                          "a",
                                          "a/b",
                                          ":2E.",
                                          "\n",
                                          std::string(5000, 'x'),
                                          std::string(5001, 'x'),
                                          "..",
                                          "😀"};
  std::set<std::string> seen;
  const MlflowKeys keys(names);
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    const std::string key = keys.KeyOf(name);
    EXPECT_TRUE(seen.insert(key).second) << name << " and another are " << key;
    EXPECT_LE(key.size(), 250u);
    for (const auto& part : absl::StrSplit(key, '/')) {
      EXPECT_FALSE(part.empty() || absl::StartsWith(part, ".")) << name << " is " << key;
    }
  }
}

}  // namespace
}  // namespace shirabe::tracking
