// What is a request and what is none, by RFC 9112. tests/attack/http_framing_test.cc sends the same
// kind of thing to the real server.
#include "service/http/http_framing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

using testing::Pair;

constexpr char kHost[] = "Host: a\r\n";

int StatusOfHead(const std::string& text) {
  const auto head = ParseHead(text, {});
  if (!head.ok()) return HttpStatusOf(head.status());
  return *head ? 200 : 100;
}

std::string Get(const std::string& fields) {
  return absl::StrCat("GET / HTTP/1.1\r\n", kHost, fields, "\r\n");
}

// The body of a chunked request, or the status of the error.
std::string Chunked(const std::string& text, size_t piece = 1 << 20) {
  RequestHead head;
  head.chunked = true;
  BodyReader reader(head, {.body_bytes = 1000});
  for (size_t begin = 0; begin < text.size() && !reader.done(); begin += piece) {
    const auto taken = reader.Consume(std::string_view(text).substr(begin, piece));
    if (!taken.ok()) return absl::StrCat(HttpStatusOf(taken.status()));
  }
  return reader.done() ? "=" + reader.body() : "more";
}

TEST(HttpFramingTest, ReadsAHeadInOnePieceOrByteByByte) {
  const std::string text = Get("X: a b\t\r\nContent-Length: 3\r\n");
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(StatusOfHead(text.substr(0, size)), 100) << size;
  }
  const auto head = ParseHead(text + "abc", {});
  ASSERT_TRUE(head.ok() && *head);
  EXPECT_EQ((*head)->bytes, text.size());
  EXPECT_EQ((*head)->length, 3U);
  EXPECT_TRUE((*head)->keep_alive);
  EXPECT_THAT((*head)->request.headers, testing::Contains(Pair("x", "a b")));
}

struct Case {
  int status;
  std::string text;
};

std::vector<Case> Unclear() {
  return {
      {400, "GET / HTTP/1.1\r\n\r\n"},           // no Host
      {400, Get(kHost)},                         // two
      {400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},  // an empty one
      {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
      {400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"},
      {400, Get("Content-Length: 3\r\nContent-Length: 3\r\n")},
      {400, Get("Content-Length: 3\r\nContent-Length: 4\r\n")},
      {400, Get("Content-Length: 3, 3\r\n")},
      {400, Get("Content-Length: +3\r\n")},
      {400, Get("Content-Length: -3\r\n")},
      {400, Get("Content-Length: 0x3\r\n")},
      {400, Get("Content-Length: 3 \x0b\r\n")},
      {400, Get("Content-Length: 1 2\r\n")},
      {400, Get("Content-Length:\r\n")},
      {413, Get("Content-Length: 99999999999999999999999999\r\n")},
      {413, Get("Content-Length: 18446744073709551616\r\n")},
      {400, Get("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")},
      {400, Get("Transfer-Encoding: xchunked\r\n")},
      {400, Get("Transfer-Encoding: chunked, identity\r\n")},
      {400, Get("Transfer-Encoding: identity\r\n")},
      {400, Get("Transfer-Encoding: chunked, chunked\r\n")},
      {400, Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
      {400, Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n")},
      {400, Get("Transfer-Encoding: \"chunked\"\r\n")},
      {400, Get("Transfer-Encoding: chunked;q=1\r\n")},
      {400, Get("Transfer-Encoding:\r\n")},
      {501, Get("Transfer-Encoding: gzip, chunked\r\n")},
      {400, Get("Transfer-Encoding : chunked\r\n")},
      {400, Get("Transfer-Encoding\t: chunked\r\n")},
      {400, Get("X: a\r\n b\r\n")},  // folded
      {400, Get(" X: a\r\n")},
      {400, Get("X: a\nY: b\r\n")},  // a bare line feed
      {400, Get("X: a\rY: b\r\n")},  // a bare carriage return
      {400, Get(std::string("X: a\0b\r\n", 8))},
      {400, Get("X\r\n")},
      {400, Get(": a\r\n")},
      {400, Get("X[]: a\r\n")},
      {417, Get("Expect: 200-ok\r\n")},
      {400, "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
      {400, "GET /\r\n"},  // HTTP/0.9
      {400, "GET  / HTTP/1.1\r\n"},
      {400, "GET / HTTP/1.1 \r\n"},
      {400, "GET / a HTTP/1.1\r\n"},
      {400, "GET\t/\tHTTP/1.1\r\n"},
      {400, "GET a HTTP/1.1\r\n"},
      {400, "GET a:80 HTTP/1.1\r\n"},
      {400, "GET /\xc3\xa4 HTTP/1.1\r\n"},
      {400, "GET /#a HTTP/1.1\r\n"},
      {400, "GET http:///a HTTP/1.1\r\n"},
      {400, "GET http://a@b/ HTTP/1.1\r\n"},
      {400, "GET / http/1.1\r\n"},
      {505, "GET / HTTP/1.2\r\n"},
      {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {501, "CONNECT a:80 HTTP/1.1\r\n"},
      {400, "\x16\x03\x01"},  // TLS
      {400, "\r\n\r\nGET / HTTP/1.1\r\n"},
      {400, "G\nET / HTTP/1.1\r\n"},
      {414, "GET /" + std::string(20'000, 'a')},
      {414, "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n"},
      {431, Get("X: " + std::string(20'000, 'a'))},
  };
}

TEST(HttpFramingTest, RefusesWhatMayBeReadInTwoWays) {
  for (const Case& one : Unclear()) EXPECT_EQ(StatusOfHead(one.text), one.status) << one.text;
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) many += "a:b\r\n";
  EXPECT_EQ(StatusOfHead(many + "\r\n"), 431);
}

TEST(HttpFramingTest, TakesWhatIsUnusualAndClear) {
  for (const std::string& text :
       {std::string("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        Get("transfer-ENCODING:\tChunked \r\n"), std::string("GET / HTTP/1.0\r\n\r\n"),
        Get("X:\r\n"), Get("X: \xc3\xa4\r\n"), std::string("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
        Get("Upgrade: h2c\r\n"), std::string("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
        Get("Content-Length: 0003\r\n"), std::string("get / HTTP/1.1\r\nHost: a\r\n\r\n")}) {
    EXPECT_EQ(StatusOfHead(text), 200) << text;
  }
}

TEST(HttpFramingTest, AnAbsoluteTargetSaysTheHost) {
  const auto head =
      ParseHead("GET http://evil.example/a?b HTTP/1.1\r\nHost: localhost\r\n\r\n", {});
  ASSERT_TRUE(head.ok() && *head);
  EXPECT_EQ((*head)->request.target, "/a?b");
  EXPECT_EQ((*head)->request.Header("host"), "evil.example");
  EXPECT_EQ((*ParseHead("GET HTTP://a?b HTTP/1.1\r\nHost: a\r\n\r\n", {}))->request.target, "/?b");
}

TEST(HttpFramingTest, KnowsWhetherAConnectionGoesOn) {
  const auto keeps = [](const std::string& text) { return (*ParseHead(text, {}))->keep_alive; };
  EXPECT_TRUE(keeps(Get("")));
  EXPECT_FALSE(keeps(Get("Connection: x, Close\r\n")));
  EXPECT_FALSE(keeps(Get("Connection: close\r\nConnection: keep-alive\r\n")));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(HttpFramingTest, TakesChunksApart) {
  const std::string good = "3;a=b\r\nabc\r\n1\r\nd\r\n000\r\nTrailer: x\r\n\r\n";
  for (const size_t piece : {1, 2, 3, 100}) EXPECT_EQ(Chunked(good, piece), "=abcd");
  EXPECT_EQ(Chunked("A\r\n0123456789\r\n0\r\n\r\n"), "=0123456789");
  EXPECT_EQ(Chunked("3\r\nabc"), "more");
  for (const char* bad : {"-1\r\n", "+1\r\n", "0x1\r\n", "\r\n", " 1\r\n", "1 \r\n", "g\r\n", "1\n",
                          ";a\r\n", "3\r\nabcd\r\n", "3\r\nabc\n0\r\n\r\n", "1\r\na0\r\n",
                          "0\r\nno colon\r\n\r\n", "0\r\n a: b\r\n\r\n", "1;a\x01\r\n"}) {
    EXPECT_EQ(Chunked(bad), "400") << bad;
  }
  EXPECT_EQ(Chunked("1;" + std::string(300, 'a')), "400");
  for (const char* large : {"3e9\r\n", "ffffffffffffffff\r\n", "10000000000000000\r\n",
                            "100000000000000000000000000000001\r\n"}) {
    EXPECT_EQ(Chunked(large), "413") << large;
  }
  EXPECT_EQ(Chunked("0\r\n" + std::string("a: b\r\n")), "more");
  std::string trailer = "0\r\n";
  for (int i = 0; i < 1000; ++i) trailer += "a: 0123456789\r\n";
  EXPECT_EQ(Chunked(trailer), "431");
}

TEST(HttpFramingTest, LeavesWhatFollowsABody) {
  RequestHead head;
  head.length = 3;
  BodyReader reader(head, {});
  EXPECT_EQ(*reader.Consume("abGET"), 3U);
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(reader.body(), "abG");
  EXPECT_EQ(*reader.Consume("ET"), 0U);
}

}  // namespace
}  // namespace shirabe::service
