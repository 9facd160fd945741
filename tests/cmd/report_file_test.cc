#include "cmd/verbs/page/report_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "service/http/web_files.h"

namespace shirabe::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReportFacts FactsOf(const std::string& sentence) {
  return {.experiment = {"default", "one"},
          .made = absl::FromUnixSeconds(1),
          .program = "1",
          .left_out = {sentence}};
}

TEST(ReportFileTest, ItsPageHasAPolicyByHashAndOnePlaceForData) {
  const service::WebFile* page = service::FindWebFile("report.html");
  if (page == nullptr) GTEST_SKIP() << "built without the dashboard";
  const std::string text(page->bytes);
  EXPECT_THAT(text, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(text, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(text, Not(HasSubstr("unsafe-")));
  const size_t place = text.find("{{");
  EXPECT_EQ(text.compare(place, 10, "{{report}}"), 0);
}

TEST(ReportFileTest, NoTextEndsTheElementThatItIsIn) {
  ReportFile file;
  const std::string hostile = "</script><!--<script>";
  ASSERT_TRUE(file.Add({.path = "a?" + hostile, .type = hostile, .body = hostile}).ok());
  const auto text = file.Finish(FactsOf(hostile));
  if (service::WebFiles().empty()) {
    EXPECT_TRUE(absl::IsFailedPrecondition(text.status()));
    EXPECT_THAT(Message(text.status()), HasSubstr("-DSHIRABE_WEB_DIR=DIR"));
    return;
  }
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, Not(HasSubstr(hostile)));
  EXPECT_THAT(*text, Not(HasSubstr("<!--")));
  EXPECT_THAT(*text, HasSubstr("\\u003c/script>"));
  EXPECT_TRUE(absl::EndsWith(*text, "</html>\n"));
}

TEST(ReportFileTest, WhatIsTheSameIsKeptOnce) {
  if (service::WebFiles().empty()) GTEST_SKIP() << "built without the dashboard";
  std::string body;
  for (int i = 0; i < 20'000; ++i) body += std::to_string(i * 7919);
  ReportFile once, twice;
  for (ReportFile* file : {&once, &twice}) ASSERT_TRUE(file->Add({"a", "t", body}).ok());
  ASSERT_TRUE(twice.Add({"b", "t", body}).ok());
  const auto a = once.Finish(FactsOf("")), b = twice.Finish(FactsOf(""));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_LT(b->size() - a->size(), 32u);
}

}  // namespace
}  // namespace shirabe::cmd
