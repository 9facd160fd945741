#include "experiment/spec/server_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file_io.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/paths.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> FindingsIn(const std::string& text) {
  std::vector<std::string> lines;
  for (const Finding& finding : ParseNodes(text).findings) {
    lines.push_back(FormatFinding(finding, "n"));
  }
  return lines;
}

TEST(ParseNodes, ReadsAllOfIt) {
  const ParsedNodes parsed = ParseNodes(R"(
seed: 7
pools:
  - name: a100-spot
    capacity: spot
    pricePerHour: 0.9
    slots: 4
    reclaim: {perNodeHour: 4, times: [1, 2.5], noticeSeconds: 15, returnsAfterSeconds: 60}
    nodeSelector: {pool: a100}
    tolerations: [{key: spot, operator: Exists}]
  - name: a100
)");
  EXPECT_THAT(parsed.findings, IsEmpty());
  ASSERT_EQ(parsed.pools.pools_size(), 2);
  const v1::NodePool& spot = parsed.pools.pools(0);
  EXPECT_EQ(parsed.pools.seed(), 7);
  EXPECT_EQ(spot.capacity(), v1::SPOT);
  EXPECT_EQ(spot.price_per_hour(), 0.9);
  EXPECT_EQ(spot.slots(), 4);
  EXPECT_EQ(spot.reclaim().per_node_hour(), 4);
  EXPECT_THAT(spot.reclaim().times(), ElementsAre(1, 2.5));
  EXPECT_EQ(spot.reclaim().notice_seconds(), 15);
  EXPECT_EQ(spot.reclaim().returns_after_seconds(), 60);
  const v1::NodePool& usual = parsed.pools.pools(1);
  EXPECT_EQ(usual.capacity(), v1::ON_DEMAND);
  EXPECT_EQ(usual.slots(), 1);
  EXPECT_EQ(usual.price_per_hour(), 0);
}

TEST(ParseNodes, TheExampleIsFine) {
  const auto text = ReadFile(SourceDir() + "/deploy/examples/nodes.yaml");
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(FindingsIn(*text), IsEmpty());
}

TEST(ParseNodes, AClusterMayHaveNoPoolsAndAMachineNot) {
  EXPECT_THAT(ParseNodes("pools: []", NoPools::kIsFine).findings, IsEmpty());
  EXPECT_THAT(FindingsIn("pools: []"),
              ElementsAre("n:1:1: error: pools: is required: groups of like machines"));
  EXPECT_FALSE(ParseNodes("pool: []", NoPools::kIsFine).findings.empty());
  EXPECT_FALSE(ParseNodes("pools: 3", NoPools::kIsFine).findings.empty());
  EXPECT_FALSE(ParseNodes("", NoPools::kIsFine).findings.empty());
  const auto shipped = ReadFile(SourceDir() + "/deploy/kubernetes/controller/pools.yaml");
  ASSERT_TRUE(shipped.ok());
  EXPECT_THAT(ParseNodes(*shipped, NoPools::kIsFine).findings, IsEmpty());
}

// What it shows as an example is a comment there.
TEST(ParseNodes, TheExampleOfAClusterIsFine) {
  const auto shipped = ReadFile(SourceDir() + "/deploy/kubernetes/controller/pools.yaml");
  ASSERT_TRUE(shipped.ok());
  const size_t begin = shipped->find("# pools:\n");
  const size_t end = shipped->find("#\n", begin);
  ASSERT_NE(end, std::string::npos);
  std::string example;
  for (const auto line : absl::StrSplit(shipped->substr(begin, end - begin), '\n')) {
    absl::StrAppend(&example, absl::StripPrefix(line, "# "), "\n");
  }
  const ParsedNodes parsed = ParseNodes(example, NoPools::kIsFine);
  EXPECT_THAT(parsed.findings, IsEmpty());
  EXPECT_EQ(parsed.pools.pools_size(), 2);
}

TEST(ParseNodes, FindsEveryMistakeInItsPlace) {
  EXPECT_THAT(
      FindingsIn("pools:\n"
                 "  - {name: Spot_1, capacity: spott}\n"
                 "  - {name: a, pricePerHour: -1, slots: 0}\n"
                 "  - {name: a, pricePerHour: .nan, slots: 2.5}\n"
                 "  - {slots: 20000, price: 1}\n"),
      UnorderedElementsAre(
          "n:2:12: error: pools[0].name: pool \"Spot_1\" must be 1 to 40 lower-case letters, "
          "digits and '-', beginning and ending with a letter or digit",
          "n:2:30: error: pools[0].capacity: unknown value \"spott\"; did you mean \"spot\"?",
          "n:3:29: error: pools[1].pricePerHour: must be at least 0, not -1",
          "n:3:40: error: pools[1].slots: must be at least 1, not 0",
          "n:4:12: error: pools[2].name: \"a\" is the name of another pool: rename one",
          "n:4:29: error: pools[2].pricePerHour: must be a finite number, not .nan",
          "n:4:42: error: pools[2].slots: must be an integer, not the number 2.5",
          "n:5:5: error: pools[3].name: is required: unique among the pools",
          "n:5:13: error: pools[3].slots: must be at most 10000, not 20000",
          "n:5:20: error: pools[3].price: unknown field in pools[3]; did you mean "
          "\"pricePerHour\"?"));
}

TEST(ParseNodes, ChecksReclaims) {
  EXPECT_THAT(
      FindingsIn("pools:\n"
                 "- {name: a, reclaim: {times: [1, -2]}}\n"
                 "- {name: b, reclaim: {perNodeHour: 1e9}}\n"
                 "- {name: c, reclaim: {noticeSeconds: -1, times: [.inf]}}\n"
                 "- {name: d, reclaim: {}}\n"),
      UnorderedElementsAre(
          "n:2:34: error: pools[0].reclaim.times[1]: must be at least 0 seconds, not -2",
          "n:3:36: error: pools[1].reclaim.perNodeHour: must be at most 36000, not 1e+09",
          "n:4:38: error: pools[2].reclaim.noticeSeconds: must be at least 0, not -1",
          "n:4:50: error: pools[2].reclaim.times[0]: must be a finite number, not .inf",
          "n:5:13: warning: pools[3].reclaim: has neither times nor perNodeHour: nothing is ever "
          "reclaimed"));
}

TEST(ParseNodes, WhatIsNoNodesFileIsRefused) {
  EXPECT_THAT(FindingsIn(""), ElementsAre("n:1:1: error: the file holds nothing: write pools: "
                                          "[{name: gpu-spot, capacity: spot, slots: 4}]"));
  EXPECT_THAT(FindingsIn("- a\n").size(), 1);
  EXPECT_THAT(FindingsIn("pools: []\n"),
              ElementsAre("n:1:1: error: pools: is required: groups of like machines"));
  EXPECT_THAT(FindingsIn("kind: Experiment\npools: [{name: a}]\n").size(), 1);
  EXPECT_THAT(FindingsIn("pools: [{name: a}]\n---\npools: [{name: b}]\n"),
              ElementsAre("n:3:1: error: a nodes file is one document: remove this one"));
  EXPECT_THAT(FindingsIn("pools: [{name: a}"), testing::SizeIs(1));
}

}  // namespace
}  // namespace shirabe::experiment
