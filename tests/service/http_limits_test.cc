// What the HTTP server bounds, one connection at a time: how long each step of it may take, what it
// reads of those it has refused, and what becomes of it when the server ends.
#include <sys/resource.h>

#include <functional>
#include <latch>
#include <thread>

#include "service/http/http_server.h"
#include "tests/integration/http_wire.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;

constexpr char kExperiment[] = "/api/v1/namespaces/a/experiments/one";
constexpr absl::Duration kShort = absl::Milliseconds(300);
constexpr absl::Duration kLong = absl::Minutes(10);

class HttpLimitsTest : public testing::Test {
 protected:
  void Start(const HttpLimits& limits = {}) { Start(limits, http_.context()); }
  void Start(const HttpLimits& limits, const HttpContext& context) {
    auto started = HttpServer::Start({.context = context, .limits = limits});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = std::move(*started);
  }
  int port() const { return server_->port(); }
  static std::string Request(const std::string& line, const std::string& body = "") {
    return RequestText(line, kAdminToken, body);
  }
  // Sends a text byte by byte, without a pause that is as long as the limit, until the other side
  // has had enough; false if it has not.
  static bool IsCutOffFrom(Wire& wire, const std::string& text) {
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
    for (size_t i = 0; RealClock()->Monotonic() < deadline; ++i) {
      wire.Send(text.substr(i % text.size(), 1));
      if (wire.ReadToEnd(kShort / 10)) return true;
    }
    return false;
  }

  HttpFixture http_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpLimitsTest, AHeadMustBeWholeInTimeHoweverItDripsIn) {
  Start({.header = kShort, .idle = kLong, .body = kLong});
  Wire wire(port());
  ASSERT_TRUE(wire.Send("GET /version HTTP/1.1\r\nHost: a\r\nX: "));
  EXPECT_TRUE(IsCutOffFrom(wire, "x"));
  EXPECT_EQ(wire.data(), "");
}

TEST_F(HttpLimitsTest, ABodyMustBeWholeInTimeHoweverItDripsIn) {
  Start({.header = kLong, .idle = kLong, .body = kShort});
  Wire wire(port());
  ASSERT_TRUE(
      wire.Send(absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ",
                             kAdminToken, "\r\nContent-Length: 100000\r\n\r\n")));
  EXPECT_TRUE(IsCutOffFrom(wire, " "));
  EXPECT_EQ(wire.data(), "");
}

TEST_F(HttpLimitsTest, AConnectionMayBeIdleAsLongAsItsCallerIsKnown) {
  Start({.header = kLong, .idle = kShort});
  Wire known(port());
  ASSERT_TRUE(known.Send(Request("GET /api/v1/algorithms")));
  EXPECT_EQ(known.ReadReply().status, 200);
  EXPECT_TRUE(known.ReadToEnd(absl::Seconds(10)));
  Start({.header = kShort, .idle = kLong});
  Wire friendly(port());
  ASSERT_TRUE(friendly.Send(Request("GET /api/v1/algorithms")));
  EXPECT_EQ(friendly.ReadReply().status, 200);
  Wire stranger(port());
  ASSERT_TRUE(stranger.Send("GET /version HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(stranger.ReadReply().status, 200);
  EXPECT_TRUE(stranger.ReadToEnd(absl::Seconds(10)));
  EXPECT_FALSE(friendly.ReadToEnd(absl::ZeroDuration()));
}

TEST_F(HttpLimitsTest, WhoIsRefusedAndSendsOnIsReadForAWhileOnly) {
  Start({.body_bytes = 1000});
  Wire wire(port());
  ASSERT_TRUE(wire.Send(
      absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n")));
  EXPECT_EQ(wire.ReadReply().status, 413);
  const std::string more(64 << 10, 'x');
  constexpr size_t kFarTooMuch = 64 << 20;
  size_t sent = 0;
  while (sent < kFarTooMuch && wire.Send(more)) sent += more.size();
  EXPECT_LT(sent, kFarTooMuch);
}

TEST_F(HttpLimitsTest, TheNextRequestMayComeWhileAReplyIsAwaited) {
  http_.Create("a", "one");
  Start();
  ASSERT_EQ(http_.Send("POST", absl::StrCat(kExperiment, ":pause"), "").status, 202);
  Wire wire(port());
  ASSERT_TRUE(wire.Send(
      Request(absl::StrCat("POST ", kExperiment, ":ask"), R"({"caller": "w", "waitSeconds": 1})")));
  Pause(absl::Milliseconds(200));  // it waits by now
  ASSERT_TRUE(wire.Send(Request("GET /version")));
  const WireReply asked = wire.ReadReply();
  EXPECT_EQ(asked.status, 200);
  EXPECT_THAT(asked.body, HasSubstr("reason"));
  EXPECT_THAT(wire.ReadReply().body, HasSubstr("version"));
}

TEST_F(HttpLimitsTest, WhoFollowsEventsAndTalksHasLeft) {
  http_.Create("a", "one");
  Start();
  Wire wire(port());
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("GET ", kExperiment, "/watch"))));
  ASSERT_TRUE(wire.ReadUntil(": watching"));
  EXPECT_FALSE(wire.ReadToEnd(absl::Milliseconds(100)));
  ASSERT_TRUE(wire.Send(Request("GET /version")));
  EXPECT_TRUE(wire.ReadToEnd(absl::Seconds(10)));
  EXPECT_EQ(wire.data().find("200 OK", 20), std::string::npos);  // nothing but the stream
}

TEST_F(HttpLimitsTest, WhatIsAtWorkTooLongWhenTheServerEndsIsCutOff) {
  std::latch at_work(1);
  std::latch may_end(1);
  HttpContext context = http_.context();
  Tokens tokens = *context.tokens;
  tokens.SetCluster([&](const std::string&, const std::string&) -> StatusOr<Principal> {
    at_work.count_down();
    may_end.wait();
    return absl::UnauthenticatedError("unknown token");
  });
  context.tokens = &tokens;
  Start({.drain = kShort}, context);
  Wire busy(port());
  ASSERT_TRUE(busy.Send(RequestText("GET /api/v1/algorithms", "a-token-of-the-cluster")));
  at_work.wait();
  std::jthread end([&] { server_ = nullptr; });
  EXPECT_TRUE(busy.ReadToEnd(absl::Seconds(10)));  // the worker is still at it
  EXPECT_EQ(busy.data(), "");
  // Counted after the caller has seen the end.
  const auto connections = [&] { return http_.metrics().Value("shirabe_http_connections", {}); };
  for (int i = 0; i < 500 && connections() != 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(connections(), 0);
  may_end.count_down();
}

// The number of the file that is opened next, once none is closed any more: by threads that start,
// or that the last test has left.
int NextFile() {
  constexpr int kSettled = 20;
  int next = -1;
  for (int same = 0; same < kSettled;) {
    const int now = dup(STDIN_FILENO);
    close(now);
    same = now == next ? same + 1 : 0;
    next = now;
    Pause(absl::Milliseconds(10));
  }
  return next;
}

TEST_F(HttpLimitsTest, ConnectionsComeAgainWhenFilesAreFreeAgain) {
  Start();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = NextFile();
  ASSERT_GE(next, 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next) + 1;  // one file for the client, none for the server
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Wire wire(port());
  const bool sent = wire.Send(Request("GET /version"));
  const bool answered = wire.ReadUntil("HTTP/1.1", absl::Milliseconds(300));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(sent);
  EXPECT_FALSE(answered);
  EXPECT_EQ(wire.ReadReply().status, 200);
}

}  // namespace
}  // namespace shirabe::service
