#include "base/text/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe {
namespace {

using testing::HasSubstr;

std::string Nested(int levels) { return std::string(levels, '[') + "1" + std::string(levels, ']'); }

TEST(JsonTextTest, ReadsWhatIsWithinTheLimits) {
  const auto json = ParseJson(R"({"a": [1, {"b": "]}[{,\"\\"}], "c": null})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ((*json)["a"][1]["b"], "]}[{,\"\\");
  EXPECT_TRUE(ParseJson(Nested(64)).ok());
}

TEST(JsonTextTest, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nope", "\"", "\"\\", "[1]]", "}"}) {
    EXPECT_EQ(ParseJson(text).status().message(), "it is not JSON") << text;
    EXPECT_TRUE(ReadJsonOrDiscarded(text).is_discarded()) << text;
  }
}

TEST(JsonTextTest, SaysWhichLimitIsBroken) {
  EXPECT_THAT(std::string(ParseJson(Nested(65)).status().message()),
              HasSubstr("more than 64 levels"));
  const JsonLimits small{.bytes = 40, .levels = 3, .values = 6, .keys = 2};
  EXPECT_TRUE(ParseJson("[[1,2],{\"a\":3}]", small).ok());
  EXPECT_THAT(Message(ParseJson(std::string(41, ' '), small).status()), HasSubstr("41 bytes"));
  EXPECT_THAT(Message(ParseJson("[[[[]]]]", small).status()), HasSubstr("3 levels"));
  EXPECT_THAT(Message(ParseJson("[1,2,3,4,5,6,7]", small).status()), HasSubstr("6 values"));
  EXPECT_THAT(Message(ParseJson(R"({"a":1,"b":2,"c":3})", small).status()), HasSubstr("2 keys"));
  EXPECT_TRUE(ParseJson(R"([{"a":1,"b":2},1])", small).ok());
}

// Six million levels: whoever built, copied or freed such a tree by recursion would end here.
TEST(JsonTextTest, DepthTakesNoStack) {
  EXPECT_FALSE(ParseJson(Nested(3'000'000)).ok());
  EXPECT_FALSE(ParseJson(std::string(6'000'000, '[')).ok());
  EXPECT_FALSE(ParseJson(std::string(6'000'000, '{')).ok());
}

// One deep object in a list of everybody's.
TEST(JsonTextTest, WhatIsTooDeepOfAServersAnswerIsLeftOut) {
  const auto json = ParseServerJson("{\"items\": [{\"name\": \"a\", \"deep\": " + Nested(5000) +
                                    "}, {\"name\": \"b\"}]}");
  ASSERT_TRUE(json.is_object());
  ASSERT_EQ(json["items"].size(), 2);
  EXPECT_EQ(json["items"][0]["name"], "a");
  EXPECT_EQ(json["items"][1]["name"], "b");
  int levels = 0;
  for (const nlohmann::json* at = &json["items"][0]["deep"]; at->is_array() && !at->empty();
       at = &at->front()) {
    ++levels;
  }
  EXPECT_LE(levels, kMaxServerLevels);
  EXPECT_GT(levels, 64);
  EXPECT_TRUE(ParseServerJson("{\"items\": [").is_discarded());
}

// Names, logs and errors of trials are bytes of any kind: the library by itself throws at them.
TEST(JsonTextTest, WritesBytesThatAreNotText) {
  const nlohmann::json object = {{"b", 1}, {"a", "caf\xE9 \"x\"\n"}};
  EXPECT_EQ(JsonText(object), "{\"a\":\"caf\uFFFD \\\"x\\\"\\n\",\"b\":1}");
  const nlohmann::ordered_json ordered = {{"b", 1}, {"a", "\xFF"}};
  EXPECT_EQ(JsonText(ordered, 1), "{\n \"b\": 1,\n \"a\": \"\uFFFD\"\n}");
  EXPECT_EQ(JsonQuoted("\xC3(\t\""), "\"\uFFFD(\\t\\\"\"");
}

}  // namespace
}  // namespace shirabe
