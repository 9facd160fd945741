#include "cmd/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Values {
  bool watch = false;
  std::string file;
  std::vector<std::string> params;
  std::optional<int64_t> limit;
  std::string output = "table";
  std::vector<std::string> names;
};

StatusOr<bool> Parse(Values& values, std::vector<std::string> arguments) {
  Options options("get NAME", "Gets.");
  options.Flag("-w,--watch", &values.watch, "go on");
  options.Text("-f,--file", &values.file, "FILE", "a file");
  options.Texts("--param", &values.params, "NAME=RANGE", "a parameter");
  options.Number("--limit", &values.limit, 0, "at most");
  options.Word("-o,--output", &values.output, {"table", "json"}, "how");
  options.Arguments("NAME", &values.names, 1, 2);
  return options.Parse(std::move(arguments));
}

std::string Refusal(std::vector<std::string> arguments) {
  Values values;
  const auto parsed = Parse(values, std::move(arguments));
  EXPECT_TRUE(IsUsage(parsed.status())) << parsed.status();
  return Message(parsed.status());
}

TEST(OptionsTest, ReadsOptionsAndArgumentsInAnyOrder) {
  Values values;
  const auto parsed = Parse(values, {"-w", "a", "-o", "json", "--param", "lr=0..1", "b",
                                     "--limit=3", "--param", "bs=1,2", "-f", "-"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(*parsed);
  EXPECT_TRUE(values.watch);
  EXPECT_EQ(values.file, "-");
  EXPECT_THAT(values.params, ElementsAre("lr=0..1", "bs=1,2"));
  EXPECT_EQ(values.limit, 3);
  EXPECT_EQ(values.output, "json");
  EXPECT_THAT(values.names, ElementsAre("a", "b"));
}

TEST(OptionsTest, AListOptionTakesOneValueATime) {
  Values values;
  ASSERT_TRUE(Parse(values, {"--param", "lr=0..1", "name"}).ok());
  EXPECT_THAT(values.params, ElementsAre("lr=0..1"));
  EXPECT_THAT(values.names, ElementsAre("name"));
}

TEST(OptionsTest, ShortValuesMayFollowDirectly) {
  Values values;
  ASSERT_TRUE(Parse(values, {"-ojson", "x"}).ok());
  EXPECT_EQ(values.output, "json");
}

TEST(OptionsTest, MistakesNameTheFix) {
  EXPECT_THAT(Refusal({"--wach", "a"}), HasSubstr("unknown option --wach; did you mean --watch?"));
  EXPECT_THAT(Refusal({"a", "-o", "jsn"}), HasSubstr("did you mean \"json\"?"));
  EXPECT_THAT(Refusal({"a", "--limit", "many"}), HasSubstr("\"many\" must be a whole number"));
  EXPECT_THAT(Refusal({"a", "--limit", "-1"}), HasSubstr("at least 0"));
  EXPECT_THAT(Refusal({}), HasSubstr("NAME is missing; usage: shirabe get NAME"));
  EXPECT_THAT(Refusal({"a", "b", "c"}), HasSubstr("unexpected argument \"c\""));
  EXPECT_THAT(Refusal({"a", "--file"}), HasSubstr("--file"));
}

TEST(OptionsTest, ARepeatedOptionIsNamed) {
  EXPECT_EQ(Refusal({"a", "-o", "json", "--output", "table"}),
            "option -o, --output is given 2 times (json, table): give it once; usage: shirabe get "
            "NAME");
  EXPECT_THAT(Refusal({"a", "--limit", "1", "--limit", "2", "--limit=3"}),
              HasSubstr("option --limit is given 3 times (1, 2, 3): give it once"));
  EXPECT_THAT(Refusal({"a", "-f", "x", "-f", "y"}), HasSubstr("option -f, --file is given 2"));
}

TEST(OptionsTest, WhatMayBeRepeatedIsNotTheMistake) {
  for (const char* option : {"--watch", "--param=lr=0..1"}) {
    EXPECT_THAT(Refusal({"a", option, option, "--limit", "many"}),
                HasSubstr("\"many\" must be a whole number"));
  }
}

TEST(OptionsTest, ARepeatedFlagSaysNothingNew) {
  Values values;
  const auto parsed = Parse(values, {"-w", "--watch", "a"});
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(values.watch);
}

TEST(OptionsTest, HelpShowsEveryOption) {
  Options options("get NAME", "Gets.");
  bool watch = false;
  options.Flag("-w,--watch", &watch, "go on");
  const std::string help = options.Help();
  EXPECT_THAT(help, HasSubstr("Gets.\n\nUsage: shirabe get NAME\n"));
  EXPECT_THAT(help, HasSubstr("-w, --watch"));
  EXPECT_THAT(help, HasSubstr("go on\n"));
}

}  // namespace
}  // namespace shirabe::cmd
