// Addresses of servers: what is one, and what is none.
#include "net/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::net {
namespace {

TEST(UrlTest, HasParts) {
  const auto plain = ParseUrl("http://example.org");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(plain->host, "example.org");
  EXPECT_EQ(plain->port, "80");
  EXPECT_EQ(plain->path, "/");
  const auto all = ParseUrl("https://[fd00::1]:6443/a/b/");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_TRUE(all->tls);
  EXPECT_EQ(all->host, "fd00::1");
  EXPECT_EQ(all->port, "6443");
  EXPECT_EQ(all->path, "/a/b/");
}

TEST(UrlTest, RefusesTheRestWithoutRepeatingIt) {
  for (const char* text : {"",
                           "h",
                           "h:80",
                           "ftp://h",
                           "file:///etc/passwd",
                           "http:h",
                           "http://",
                           "http:///h",
                           "http://h:",
                           "http://h:/a",
                           "http://h:x",
                           "http://h:99999",
                           "http://[::1",
                           "http://a b",
                           "http://h/a b",
                           "http://h\r\nX: y",
                           "http://hunter2@h",
                           "http://a:hunter2@h",
                           "http://h/?hunter2",
                           "http://h/#hunter2",
                           "http://h\xc3\xa4"}) {
    const Status status = ParseUrl(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text << status;
    EXPECT_THAT(Message(status), testing::Not(testing::HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace shirabe::net
