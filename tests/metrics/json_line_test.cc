#include "metrics/json_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/metrics/testing.h"

namespace shirabe::metrics {
namespace {

using std::string_view_literals::operator""sv;

std::string Read(std::string_view line) {
  return Show(*MakeJsonParser({"loss", "val/loss"}), {"loss", "val/loss"}, line);
}

ParsedLine Parse(std::string_view line) {
  ParsedLine parsed;
  MakeJsonParser({"loss"})->Parse(line, parsed);
  return parsed;
}

TEST(JsonParser, ReadsKatibsLines) {
  EXPECT_EQ(Read(R"({"loss": 0.25, "epoch": 7, "other": [1, {"loss": 2}]})"), "loss=0.25");
  EXPECT_EQ(Read(R"({"epoch": 0, "loss": "0.25", "val/loss": " 1e-5 "})"),
            "loss=0.25 val/loss=1e-05");
  EXPECT_EQ(Read(R"({"step": 3, "loss": 0.25})"), "loss@3=0.25");
  EXPECT_EQ(Read(R"({"loss": 0.25, "step": "3"})"), "loss@3=0.25");
  EXPECT_EQ(Read(R"({"loss": 0.25, "step": 3.0})"), "loss@3=0.25");
  EXPECT_EQ(Read(R"({"loss": 0.25, "step": null})"), "loss=0.25");
}

TEST(JsonParser, ReadsOurLines) {
  EXPECT_EQ(Read(R"({"step": 120, "metrics": {"loss": 0.25, "lr": 1}})"), "loss@120=0.25");
  EXPECT_EQ(Read(R"({"metrics":{"val/loss":1,"loss":2},"step":0})"), "val/loss@0=1 loss@0=2");
  EXPECT_EQ(Read(R"({"metrics": {"loss": 0.25}})"), "loss=0.25");
  EXPECT_EQ(Read(R"({"done": true})"), "");
  EXPECT_TRUE(Parse(R"({"done": true})").done);
  EXPECT_FALSE(Parse(R"({"done": false})").done);
  EXPECT_FALSE(Parse(R"({"metrics": {"done": true}})").done);
}

TEST(JsonParser, ReadsWhatPythonWrites) {
  EXPECT_EQ(Read(R"({"loss": NaN, "val/loss": -Infinity})"), "loss=NaN val/loss=-Infinity");
  EXPECT_EQ(Read(R"({"loss": "nan", "x": Infinity})"), "loss=NaN");
  EXPECT_EQ(Read(R"({"loss": null, "val/loss": 1})"), "val/loss=1");
  EXPECT_EQ(Read(R"({"val\/loss": 1e400, "loss": -0})"), "val/loss=Infinity loss=-0");
  EXPECT_EQ(Read(R"({"\u006coss": 1, "s": "\"\\\ud83d\ude80"})"), "loss=1");
  EXPECT_EQ(Show(*MakeJsonParser({"損失🚀"}), {"m"}, R"({"\u640d\u5931\ud83d\ude80": 1})"), "m=1");
}

TEST(JsonParser, TakesBlankLinesTwoObjectsAndStrayBytes) {
  EXPECT_EQ(Read(""), "");
  EXPECT_EQ(Read(" \t\r"), "");
  EXPECT_EQ(Read("\0\0\0"sv), "");
  EXPECT_EQ(Read("\0\0{\"loss\": 1}\r"sv), "loss=1");
  EXPECT_EQ(Read("\xef\xbb\xbf{\"loss\": 1}"), "loss=1");
  EXPECT_EQ(Read(R"({"step": 1, "loss": 1}{"loss": 2})"), "loss@1=1 loss=2");
  EXPECT_EQ(Read("{\"s\": \"\xff\xfe\", \"loss\": 1}"), "loss=1");
}

TEST(JsonParser, RefusesTheWholeOfALineThatIsNoJson) {
  for (const char* line : {"loss=1",
                           "{",
                           "}",
                           "[]",
                           "3",
                           "{\"loss\": 1",
                           "{\"loss\": 1,}",
                           "{\"loss\" 1}",
                           "{loss: 1}",
                           "{\"loss\": 1_000}",
                           "{\"loss\": 0,5}",
                           "{\"loss\": 0x10}",
                           "{\"loss\": 0.5.1}",
                           "{\"loss\": 1}x",
                           "{\"loss\": 1, \"x\": tru}",
                           "{\"loss\": 1, \"x\": \"\\u12\"}",
                           "{\"loss\": 1, \"x\": \"",
                           "{\"loss\": 1, \"x\": \"\\",
                           "{\"loss\": 1, \"x\": [1}",
                           "{\"step\": 1, \"metr{\"step\": 2, \"metrics\": {\"loss\": 1}}"}) {
    EXPECT_EQ(Read(line), "!") << line;
  }
  // Nested too deep, also where every bracket is closed again.
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"y\": ", "}")}) {
    const auto nested = [&, open = open, close = close](int depth) {
      std::string line = "{\"loss\": 1, \"x\": ";
      for (int i = 0; i < depth; ++i) line += open;
      line += "1";
      for (int i = 0; i < depth; ++i) line += close;
      return Read(line + "}");
    };
    EXPECT_EQ(nested(64), "loss=1") << open;
    EXPECT_EQ(nested(65), "!") << open;
    EXPECT_EQ(nested(5000), "!") << open;
  }
  const std::string deep(100'000, '[');
  EXPECT_EQ(Read("{\"x\": " + deep), "!");
  EXPECT_THAT(Parse("{\"loss\" 1}").bad, testing::HasSubstr("byte 9"));
}

TEST(JsonParser, RefusesOnlyTheValueThatIsNoNumber) {
  EXPECT_EQ(Read(R"({"loss": "0,5", "val/loss": 1})"), "val/loss=1 !");
  EXPECT_EQ(Read(R"({"loss": true})"), "!");
  EXPECT_EQ(Read(R"({"loss": [1]})"), "!");
  EXPECT_EQ(Read(R"({"loss": {"value": 1}})"), "!");
  EXPECT_EQ(Read(R"({"loss": "1_000"})"), "!");
  EXPECT_EQ(Read(R"({"other": "abc", "loss": 1})"), "loss=1");
  EXPECT_THAT(Parse(R"({"loss": "1_000"})").bad, testing::HasSubstr("\"loss\" is 1_000: digits"));
}

TEST(JsonParser, RefusesAStepThatIsNoWholeNumber) {
  for (const char* step : {"-1", "1.5", "true", "\"x\"", "NaN", "1e300", "[]"}) {
    EXPECT_EQ(Read("{\"step\": " + std::string(step) + ", \"loss\": 1}"), "!") << step;
  }
  EXPECT_EQ(Read(R"({"step": -1, "loss": 1}{"step": 2, "loss": 3})"), "loss@2=3 !");
}

TEST(JsonParser, ReadsTimeStamps) {
  const absl::Time half_past = absl::FromUnixSeconds(1'795'249'800);
  const auto time = [](const std::string& text) {
    return Parse("{\"timestamp\": " + text + ", \"loss\": 1}").observations.at(0).time;
  };
  EXPECT_EQ(time("\"2026-11-21T08:30:00Z\""), half_past);
  EXPECT_EQ(time("\"2026-11-21T08:30:00\""), half_past);
  EXPECT_EQ(time("1795249800"), half_past);
  EXPECT_EQ(time("1795249800.5"), half_past + absl::Milliseconds(500));
  for (const char* text : {"\"soon\"", "-1", "NaN", "1e300", "null", "{}"}) {
    EXPECT_EQ(time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace shirabe::metrics
