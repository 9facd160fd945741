#include "metrics/line_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "tests/metrics/testing.h"

namespace shirabe::metrics {
namespace {

using std::string_view_literals::operator""sv;

std::string Loss(std::string_view line) { return Show(*MakeTextParser({"loss"}), {"loss"}, line); }

std::string Several(std::string_view line) {
  const std::vector<std::string> metrics = {"loss", "val_loss", "val/loss", "Validation-accuracy",
                                            "a.b",  "top 5",    "5"};
  return Show(*MakeTextParser(metrics), metrics, line);
}

TEST(TextParser, ReadsKatibsDefaultFormat) {
  EXPECT_EQ(Loss("loss=0.25"), "loss=0.25");
  EXPECT_EQ(Loss("loss = 0.25"), "loss=0.25");
  EXPECT_EQ(Loss("loss\t=\t-3"), "loss=-3");
  EXPECT_EQ(Loss("epoch 1: loss=0.25, accuracy=0.9"), "loss=0.25");
  EXPECT_EQ(Loss("loss=0.25 then loss=0.5"), "loss=0.25 loss=0.5");
  EXPECT_EQ(Loss("2026-11-21T08:30:00Z loss=0.25"), "loss=0.25");
  EXPECT_EQ(Several("loss=1 val_loss=2 Validation-accuracy=0.9"),
            "loss=1 val_loss=2 Validation-accuracy=0.9");
}

TEST(TextParser, ReadsRelativesOfThatFormat) {
  EXPECT_EQ(Loss("loss: 0.25"), "loss=0.25");
  EXPECT_EQ(Loss("loss:0.25"), "loss=0.25");
  EXPECT_EQ(Loss(R"({"epoch": 1, "loss": 0.25})"), "loss=0.25");
  EXPECT_EQ(Loss("{'loss': 0.25, 'grad_norm': 1.5}"), "loss=0.25");
  EXPECT_EQ(Loss(R"({"loss": "0.25"})"), "loss=0.25");
  EXPECT_EQ(Loss("INFO:root:loss=0.25"), "loss=0.25");
  EXPECT_EQ(Loss("1875/1875 [======] - 4s 2ms/step - loss: 0.29 - acc: 0.91"), "loss=0.29");
  EXPECT_EQ(Loss("\x1b[1;32mloss\x1b[0m=\x1b[33m0.25\x1b[0m"), "loss=0.25");
  EXPECT_EQ(Loss("\x1b]0;title\aloss=0.25\x1b[K"), "loss=0.25");
}

TEST(TextParser, FindsNamesOnlyAsWholeWords) {
  for (const char* line :
       {"val_loss=1", "loss_total=1", "val-loss=1", "loss-total=1", "val/loss=1", "val.loss=1",
        "1.loss=1", "xloss=1", "lossx=1", "loss2=1", "--loss=1", "Loss=1", "\xc3\xa9loss=1"}) {
    EXPECT_EQ(Loss(line), "") << line;
  }
  for (const char* line : {"(loss=1)", "|loss=1|", "[x]loss=1", "done...loss=1",
                           "\xe2\x94\x82loss=1", "\xffloss=1", ",loss=1", ">loss=1<", "$loss=1"}) {
    EXPECT_EQ(Loss(line), "loss=1") << line;
  }
  EXPECT_EQ(Several("val/loss=1 a.b=2 val_loss: 3"), "val/loss=1 a.b=2 val_loss=3");
}

TEST(TextParser, PrefersTheLongerOfTwoNames) { EXPECT_EQ(Several("top 5=1"), "top 5=1"); }

TEST(TextParser, LeavesProseAlone) {
  for (const char* line :
       {"the loss went down", "loss", "loss:", "loss: see below", "loss == 0.3", "loss::kMean",
        "loss is 0.3", "minimising loss (mean)", "", " ", "\"loss\": null"}) {
    EXPECT_EQ(Loss(line), "") << line;
  }
}

TEST(TextParser, ReadsEveryKindOfNumber) {
  EXPECT_EQ(Loss("loss=nan"), "loss=NaN");
  EXPECT_EQ(Loss("loss=-nan(ind)"), "loss=NaN");
  EXPECT_EQ(Loss("loss=inf"), "loss=Infinity");
  EXPECT_EQ(Loss("loss: -inf"), "loss=-Infinity");
  EXPECT_EQ(Loss("loss=Infinity"), "loss=Infinity");
  EXPECT_EQ(Loss("loss=-0"), "loss=-0");
  EXPECT_EQ(Loss("loss=1e400"), "loss=Infinity");
  EXPECT_EQ(Loss("loss=-1e400"), "loss=-Infinity");
  EXPECT_EQ(Loss("loss=1e-400"), "loss=0");
  EXPECT_EQ(Loss("loss=1e-05"), "loss=1e-05");
  EXPECT_EQ(Loss("loss=+.5E+2"), "loss=50");
  EXPECT_EQ(Loss("loss=93.5%"), "loss=93.5");
  EXPECT_EQ(Loss("the loss=0.5."), "loss=0.5");
  EXPECT_EQ(Loss("loss=0.5;"), "loss=0.5");
  EXPECT_EQ(Loss("loss=0.5,acc=1"), "loss=0.5");
  EXPECT_EQ(Loss("loss=0.5\u00b10.1"), "loss=0.5");
}

TEST(TextParser, NeverReadsHalfANumber) {
  for (const char* line :
       {"loss=1_000",     "loss=0.5.1",      "loss=0,5",    "loss=0x10",  "loss=1'000",
        "loss=1e",        "loss=1.#INF",     "loss=3/4",    "loss=12:30", "loss=5ms",
        "loss=1.5M",      "loss=0.5-0.1",    "loss=- 5",    "loss=",      "loss=tensor(0.5)",
        "loss=None",      "loss=[0.1, 0.2]", "loss=2*10^3", "loss=nano",  "loss=1\u00a0000",
        "loss=12\u00b5s", "loss=\u22121",    "loss: 1_000", "loss: 0,5",  "loss: tensor(0.5)",
        "'loss': '0,5'",  "loss: [0.1]"}) {
    EXPECT_EQ(Loss(line), "!") << line;
  }
}

TEST(TextParser, KeepsTheOtherReadingsOfABadLine) {
  EXPECT_EQ(Several("loss=1_000 val_loss=2"), "val_loss=2 !");
}

TEST(TextParser, TakesAnyBytes) {
  EXPECT_EQ(Loss("\0\0loss=1\0"sv), "loss=1");
  EXPECT_EQ(Loss("loss=1\0002"sv), "loss=1");
  EXPECT_EQ(Loss("loss=1\x80\xff"), "loss=1");
  EXPECT_EQ(Loss("\xf0\x9f\x9a\x80loss=1"), "loss=1");
  EXPECT_EQ(Loss("\xef\xbb\xbfloss=1"), "loss=1");
  EXPECT_EQ(Loss("\x1b"), "");
  EXPECT_EQ(Loss("loss=1\x1b["), "loss=1");
  EXPECT_EQ(Show(*MakeTextParser({"損失", "失"}), {"損失", "失"}, "損失=1"), "損失=1");
}

TEST(TextParser, SaysWhatIsBadAndWhy) {
  const auto parser = MakeTextParser({"loss"});
  ParsedLine parsed;
  parser->Parse("epoch 3 loss=1_000 \xff", parsed);
  EXPECT_EQ(parsed.bad, "loss=1_000 \\xff: digits grouped by '_'; print them without");
  parser->Parse("loss=0,5", parsed);
  EXPECT_THAT(parsed.bad, testing::HasSubstr("decimal sign is '.'"));
  parser->Parse("loss=" + std::string(1000, '9') + ".1.2", parsed);
  EXPECT_LT(parsed.bad.size(), 200u);
}

TEST(TextParser, TakesTheTimeAtTheBeginning) {
  const auto parser = MakeTextParser({"loss"});
  const auto time = [&](const std::string& line) {
    ParsedLine parsed;
    parser->Parse(line, parsed);
    return parsed.observations.at(0).time;
  };
  const absl::Time half_past = absl::FromUnixSeconds(1'795'249'800);
  EXPECT_EQ(time("2026-11-21T08:30:00Z loss=1"), half_past);
  EXPECT_EQ(time("2026-11-21T09:30:00.250+01:00 loss=1"), half_past + absl::Milliseconds(250));
  EXPECT_EQ(time("2026-11-21 08:30:00 loss=1"), std::nullopt);
  EXPECT_EQ(time("x 2026-11-21T08:30:00Z loss=1"), std::nullopt);
  EXPECT_EQ(time("infinite-future loss=1"), std::nullopt);
}

TEST(NamesIn, ListsWhatHasANumber) {
  EXPECT_THAT(NamesIn("epoch=1 val_loss: 0.3\nlr = x, train/acc=0.5 \"f1\": 1 epoch=2\n", 9),
              testing::ElementsAre("epoch", "val_loss", "train/acc", "f1"));
  EXPECT_THAT(NamesIn("a=1 b=2 c=3", 2), testing::ElementsAre("a", "b"));
  EXPECT_THAT(NamesIn("12:30:05 = : =1 ::\0=3"sv, 9), testing::IsEmpty());
}

}  // namespace
}  // namespace shirabe::metrics
