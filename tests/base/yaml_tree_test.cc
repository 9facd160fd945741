#include "base/text/yaml_tree.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shirabe {
namespace {

using Kind = YamlNode::Kind;

YamlNode Root(const std::string& text) {
  const auto documents = ParseYaml(text);
  EXPECT_EQ(documents.size(), 1u) << text;
  if (documents.empty()) return {};
  for (const auto& problem : documents[0].problems)
    ADD_FAILURE() << text << ": " << problem.message;
  return documents[0].root;
}

YamlNode ParsePlain(const std::string& text) {
  YamlNode node;
  node.text = text;
  ResolvePlain(node);
  return node;
}

// "line:column: message" of every problem in the text.
std::vector<std::string> Problems(const std::string& text) {
  std::vector<std::string> problems;
  for (const auto& document : ParseYaml(text)) {
    for (const auto& problem : document.problems) {
      problems.push_back(std::to_string(problem.mark.line) + ":" +
                         std::to_string(problem.mark.column) + ": " + problem.message);
    }
  }
  return problems;
}

std::string OnlyProblem(const std::string& text) {
  const auto problems = Problems(text);
  return problems.size() == 1 ? problems[0] : std::to_string(problems.size()) + " problems";
}

testing::AssertionResult HasProblem(const std::string& text, const std::string& begin,
                                    const std::string& part) {
  const std::string problem = OnlyProblem(text);
  if (problem.rfind(begin, 0) == 0 && problem.find(part) != std::string::npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << problem;
}

TEST(YamlScalar, BooleansAreThoseOfKubernetes) {
  for (const char* text : {"true", "True", "yes", "YES", "on", "On", "y", "Y"}) {
    EXPECT_EQ(ParsePlain(text).kind, Kind::kBoolean) << text;
    EXPECT_TRUE(ParsePlain(text).boolean) << text;
  }
  for (const char* text : {"false", "FALSE", "no", "No", "off", "OFF", "n", "N"}) {
    EXPECT_EQ(ParsePlain(text).kind, Kind::kBoolean) << text;
    EXPECT_FALSE(ParsePlain(text).boolean) << text;
  }
  for (const char* text : {"tRUE", "yES", "oN", "ye", "offf"}) {
    EXPECT_EQ(ParsePlain(text).kind, Kind::kString) << text;
  }
}

TEST(YamlScalar, NullsAreFew) {
  for (const char* text : {"", "~", "null", "Null", "NULL"}) {
    EXPECT_EQ(ParsePlain(text).kind, Kind::kNull) << text;
  }
  EXPECT_EQ(ParsePlain("nUll").kind, Kind::kString);
  EXPECT_EQ(ParsePlain("None").kind, Kind::kString);
}

TEST(YamlScalar, Numbers) {
  const std::pair<const char*, double> kNumbers[] = {
      {"0", 0},
      {"12", 12},
      {"-7", -7},
      {"+5", 5},
      {"1_000", 1000},
      {"0x1F", 31},
      {"0o17", 15},
      {"017", 15},
      {"0b101", 5},
      {"-0b11", -3},
      {"08", 8},
      {"0.5", 0.5},
      {".5", 0.5},
      {"1.", 1},
      {"1e3", 1000},
      {"1e-05", 1e-05},
      {"-.25", -0.25},
      {"6.8523e+5", 685230},
      {"+0.1", 0.1},
      {"9223372036854775807", 9223372036854775807.0},
      {"123456789012345678901234567890", 1.2345678901234568e29},
  };
  for (const auto& [text, value] : kNumbers) {
    EXPECT_EQ(ParsePlain(text).kind, Kind::kNumber) << text;
    EXPECT_EQ(ParsePlain(text).number, value) << text;
  }
  EXPECT_EQ(ParsePlain("-9223372036854775808").integer, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParsePlain("9223372036854775808").integer, std::nullopt);
  EXPECT_EQ(ParsePlain("3.0").integer, std::nullopt);
  EXPECT_TRUE(std::isinf(ParsePlain("-.Inf").number));
  EXPECT_TRUE(std::isnan(ParsePlain(".NaN").number));
}

TEST(YamlScalar, WhatOnlyLooksLikeANumberIsText) {
  for (const char* text :
       {"1.2.3", "1e",         "e5",    "-",   "+",   ".",   "..", "0x",  "0xg", "0b12",
        "1:30",  "2026-11-21", "1e400", "inf", "nan", "NaN", "_1", "--5", "1-2", "0o9"}) {
    EXPECT_EQ(ParsePlain(text).kind, Kind::kString) << text;
  }
}

TEST(YamlTree, KnowsItsPlaces) {
  const YamlNode root = Root("# comment\na: 1\nb:\n  - x\n  - {c: d}\n");
  EXPECT_EQ(root.mark.line, 2);
  EXPECT_EQ(root.Find("a")->mark.column, 4);
  const YamlNode& item = root.Find("b")->items.back();
  EXPECT_EQ(item.mark.line, 5);
  EXPECT_EQ(item.mark.column, 5);
  EXPECT_EQ(item.Find("c")->mark.column, 9);
  EXPECT_EQ(root.Find("z"), nullptr);
}

TEST(YamlTree, ColumnsCountCharacters) {
  EXPECT_EQ(Root("調べ: [あ, x]").Find("調べ")->items.back().mark.column, 9);
}

TEST(YamlTree, QuotedAndBlockScalarsAreText) {
  const YamlNode root = Root("a: \"1\"\nb: 'true'\nc: |\n  12\nd: >-\n  yes\n  no\n");
  for (const char* key : {"a", "b", "c", "d"}) {
    EXPECT_EQ(root.Find(key)->kind, Kind::kString) << key;
  }
  EXPECT_EQ(root.Find("c")->text, "12\n");
  EXPECT_EQ(root.Find("d")->text, "yes no");
}

TEST(YamlTree, Tags) {
  const YamlNode root = Root("a: !!str 5\nb: !!int '5'\nc: !!bool \"on\"\nd: ! x\ne: !!null ''\n");
  EXPECT_EQ(root.Find("a")->kind, Kind::kString);
  EXPECT_EQ(root.Find("b")->integer, 5);
  EXPECT_EQ(root.Find("c")->kind, Kind::kBoolean);
  EXPECT_EQ(root.Find("d")->kind, Kind::kString);
  EXPECT_EQ(root.Find("e")->kind, Kind::kNull);
  EXPECT_TRUE(HasProblem("a: !!int x", "1:4:", "not of the type !!int"));
  EXPECT_TRUE(HasProblem("a: !!binary x", "1:4:", "not supported"));
  EXPECT_TRUE(HasProblem("a: !mine {b: c}", "1:4:", "not supported"));
}

TEST(YamlTree, AliasesAreCopies) {
  const YamlNode root = Root("a: &x {b: [1, 2]}\nc: *x\nd: &s text\ne: *s\n");
  EXPECT_EQ(root.Find("c")->Find("b")->items.size(), 2u);
  EXPECT_EQ(root.Find("e")->text, "text");
}

TEST(YamlTree, MergeKeys) {
  const YamlNode root = Root(
      "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\n"
      "one: {<<: *base, b: 5}\ntwo: {<<: [*more, *base]}\nthree: {<<: &in {q: 7}}\nfour: *in\n");
  EXPECT_EQ(root.Find("one")->Find("a")->number, 1);
  EXPECT_EQ(root.Find("one")->Find("b")->number, 5);
  EXPECT_EQ(root.Find("one")->keys.size(), 2u);
  EXPECT_EQ(root.Find("two")->Find("b")->number, 3);
  EXPECT_EQ(root.Find("two")->Find("a")->number, 1);
  EXPECT_EQ(root.Find("three")->Find("q")->number, 7);
  EXPECT_EQ(root.Find("four")->Find("q")->number, 7);
  EXPECT_EQ(Root("a: {\"<<\": 1}").Find("a")->Find("<<")->number, 1);
  EXPECT_TRUE(HasProblem("a: {<<: 5}", "1:9:", "takes a mapping"));
}

TEST(YamlTree, DuplicateKeysAreAllFound) {
  const auto problems = Problems("a: 1\nb: {x: 1, x: 2}\na: 2\n\"a\": 3\n");
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0], "2:11: the key \"x\" is given twice, first at line 2: remove one");
  EXPECT_EQ(problems[1], "3:1: the key \"a\" is given twice, first at line 1: remove one");
}

TEST(YamlTree, KeysAreText) {
  EXPECT_TRUE(HasProblem("on: 1", "1:1:", "write \"on\""));
  EXPECT_TRUE(HasProblem("{a: b, [c]: d}", "1:8:", "not a list"));
  EXPECT_TRUE(HasProblem("~: 1", "1:1:", "not null"));
  EXPECT_EQ(Root("8080: web").Find("8080")->text, "web");
}

TEST(YamlTree, Documents) {
  EXPECT_EQ(ParseYaml("").size(), 0u);
  EXPECT_EQ(ParseYaml("# nothing\n").size(), 0u);
  EXPECT_EQ(ParseYaml("---\n---\n...\n").size(), 0u);
  EXPECT_EQ(ParseYaml("---\na: 1\n---\n# empty\n---\nb: 2\n").size(), 2u);
  // An anchor ends with its document.
  EXPECT_TRUE(HasProblem("a: &x 1\n---\nb: *x\n", "3:4:", "has no anchor &x"));
  // What comes before a mistake is still read.
  const auto documents = ParseYaml("a: 1\n---\nb: [\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_TRUE(documents[0].problems.empty());
  EXPECT_TRUE(documents[1].broken);
}

TEST(YamlTree, ByteOrderMarkAndLineEnds) {
  EXPECT_EQ(Root("\xEF\xBB\xBF"
                 "a: 1")
                .Find("a")
                ->number,
            1);
  const YamlNode root = Root("a: 1\r\nb: |\r\n  x\r\n  y\r\nc: z\r\n");
  EXPECT_EQ(root.Find("b")->text, "x\ny\n");
  EXPECT_EQ(root.Find("c")->text, "z");
  EXPECT_EQ(root.Find("c")->mark.line, 5);
}

TEST(YamlTree, SyntaxErrorsSayWhereAndWhatToDo) {
  EXPECT_TRUE(HasProblem("a:\n\tb: 1\n", "2:1:", "indent with spaces"));
  EXPECT_TRUE(HasProblem("é: 1\na:\n\tb: 1\n", "3:1:", "indent with spaces"));
  EXPECT_TRUE(HasProblem("a: b: c\n", "1:5:", "quote a value"));
  EXPECT_TRUE(HasProblem("a: \"x\n", "2:1:", "close the quotation mark"));
  EXPECT_TRUE(HasProblem("a: [1, 2\n", "2:1:", "close the bracket"));
  EXPECT_TRUE(HasProblem("a: \"\\q\"\n", "1:5:", "single quotes"));
  EXPECT_TRUE(HasProblem("a: 1\n b: 2\n", "2:3:", "indentation"));
  EXPECT_TRUE(HasProblem("a: *b\n", "1:4:", "has no anchor &b"));
  EXPECT_TRUE(HasProblem("a: &b [*b]\n", "1:8:", "inside its own anchor"));
}

TEST(YamlTree, JsonMayHaveCharactersInTwoHalves) {
  EXPECT_EQ(Root(R"({"a": "\ud83d\ude00!", "b": "\u00fc\uDBFF\uDFFF"})").items.front().text,
            "\xF0\x9F\x98\x80!");
  EXPECT_EQ(Root(R"({"b": "\u00fc\uDBFF\uDFFF\ud800\udc00"})").items.front().text,
            "\xC3\xBC\xF4\x8F\xBF\xBF\xF0\x90\x80\x80");
  EXPECT_EQ(Root(R"({"\ud83d\ude00": 1})").keys.front().text, "\xF0\x9F\x98\x80");
  // A backslash that is escaped, and what is YAML alone, are as they are written.
  EXPECT_EQ(Root(R"({"a": "\\ud83d\\ude00 \ud83d\ude00"})").items.front().text, R"(\ud83d\ude00 )"
                                                                                "\xF0\x9F\x98\x80");
  EXPECT_EQ(Root(R"(a: '\ud83d\ude00')").items.front().text, R"(\ud83d\ude00)");
  EXPECT_EQ(Root(R"(a: \ud83d\ude00)").items.front().text, R"(\ud83d\ude00)");
}

TEST(YamlTree, HalfACharacterIsRefused) {
  for (const char* half : {R"("\ud83d")", R"("\ude00\ud83d")", R"("\ud83d\u0041")",
                           R"("\ud83d\ude0")", R"("\ud83d\\ude00")", R"("\ud83d\ude00 \ud83d")"}) {
    const std::vector<std::string> problems = Problems(std::string(R"({"a": )") + half + "}");
    ASSERT_EQ(problems.size(), 1u) << half;
    EXPECT_NE(problems[0].find("found invalid Unicode character"), std::string::npos)
        << problems[0];
  }
}

TEST(YamlTree, BytesThatAreNotTextAreNamedByPlace) {
  EXPECT_TRUE(HasProblem("a: 1\nb: \xFFx\n", "2:4:", "UTF-8"));
  EXPECT_TRUE(HasProblem(std::string("a: 1\nb: x\0y", 11), "2:5:", "control characters"));
  EXPECT_TRUE(HasProblem("a: \x1B[0m", "1:4:", "control characters"));
}

TEST(YamlTree, DepthIsLimited) {
  const auto nested = [](int levels) {
    return std::string(levels, '[') + "x" + std::string(levels, ']');
  };
  EXPECT_TRUE(Problems(nested(kMaxYamlDepth - 1)).empty());
  EXPECT_TRUE(HasProblem(nested(kMaxYamlDepth), "1:65:", "64 levels"));
  EXPECT_TRUE(HasProblem(std::string(500'000, '['), "1:65:", "64 levels"));
  // The levels of what an alias stands for count as well.
  const std::string half = "a: &a " + nested(40) + "\nb: ";
  EXPECT_TRUE(Problems(half + std::string(20, '[') + "*a" + std::string(20, ']')).empty());
  EXPECT_TRUE(
      HasProblem(half + std::string(40, '[') + "*a" + std::string(40, ']'), "2:44:", "64 levels"));
}

TEST(YamlTree, SizeIsLimited) {
  std::string text = "a: \"" + std::string(kMaxYamlBytes - 5, 'x') + "\"";
  EXPECT_TRUE(Problems(text).empty());
  EXPECT_TRUE(HasProblem(text + " ", "1:1:", "1 MiB"));
}

// Half a megabyte, sixty thousand times.
TEST(YamlTree, AliasesCannotRepeatALongText) {
  std::string bomb = "a: &a \"" + std::string(500'000, 'x') + "\"\nb: [*a";
  for (int i = 0; i < 60'000; ++i) bomb += ",*a";
  EXPECT_TRUE(HasProblem(bomb + "]\n", "2:", "MiB of text"));
}

TEST(YamlTree, AliasesCannotMakeASmallTextLarge) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k == 0 ? "" : ", ") + last;
    bomb += "]\n";
  }
  EXPECT_TRUE(HasProblem(bomb, "5:", "100000 values"));
  std::string merges = "a0: &a0 {k0: x}\n";
  for (int i = 1; i < 60; ++i) {
    const std::string n = std::to_string(i), last = "*a" + std::to_string(i - 1);
    merges += "a" + n + ": &a" + n + " {<<: [" + last + ", " + last + "], k" + n + ": x}\n";
  }
  EXPECT_TRUE(HasProblem(merges, "", "100000 values"));
}

}  // namespace
}  // namespace shirabe
