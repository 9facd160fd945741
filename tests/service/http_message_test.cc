#include "service/http/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(HttpMessageTest, TakesATargetApart) {
  const auto target = ParseTarget("/a/b%20c/%7Ed?x=1+2&y=%3d&z&&w=");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_THAT(target->segments, ElementsAre("a", "b c", "~d"));
  EXPECT_THAT(target->query,
              ElementsAre(Pair("x", "1 2"), Pair("y", "="), Pair("z", ""), Pair("w", "")));
  EXPECT_THAT(ParseTarget("/")->segments, ElementsAre());
  EXPECT_THAT(ParseTarget("//a/")->segments, ElementsAre("", "a"));
}

TEST(HttpMessageTest, RefusesWhatIsNoTarget) {
  for (const char* bad : {"", "*", "a/b", "http://host/a", "/%", "/%1", "/%zz", "/a?x=%0g", "/%00",
                          "/%0a", "/a?%7f"}) {
    EXPECT_EQ(ParseTarget(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(ParseTarget(std::string(200, '/')).ok());
}

TEST(HttpMessageTest, AHeaderCannotBeBrokenByItsValue) {
  HttpReply reply{.body = "{}"};
  reply.headers.emplace_back("Location", "a\r\nSet-Cookie: b");
  const std::string head = HeadOf(reply, {.date = "now"});
  EXPECT_THAT(head, Not(HasSubstr("\r\nSet-Cookie")));
  EXPECT_THAT(head, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(HeadOf({.status = 204, .type = ""}, {}), Not(HasSubstr("Content-Length")));
}

TEST(HttpErrorsTest, SaysEachCodeInHttpsWords) {
  for (int code = 0; code <= 16; ++code) {
    const auto known = static_cast<absl::StatusCode>(code);
    EXPECT_FALSE(CodeWord(known).empty());
    EXPECT_STRNE(ReasonPhrase(HttpStatusOf(Status(known, "x"))), "Status") << code;
  }
  const HttpReply denied = ErrorReply(absl::UnauthenticatedError("who?"));
  EXPECT_EQ(denied.status, 401);
  EXPECT_THAT(denied.headers, ElementsAre(Pair("WWW-Authenticate", "Bearer")));
  EXPECT_EQ(ErrorReply(WithHttpStatus(absl::AbortedError("x"), 412)).status, 412);
  EXPECT_THAT(ErrorReply(BadField("a", "is \xff wrong")).body, HasSubstr("\"field\":\"a\""));
}

}  // namespace
}  // namespace shirabe::service
