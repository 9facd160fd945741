// What every request over HTTP keeps to, against servers that do not: limits of time and size,
// where it goes, and what is sent again.
#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/certificate.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "tests/kube/await.h"
#include "tests/kube/fake_api_server.h"

namespace shirabe::net {
namespace {

using kube::Await;
using kube::FakeApiServer;
using kube::FakeExchange;
using testing::HasSubstr;
using testing::Not;

class HttpClientTest : public testing::Test {
 protected:
  HttpClientTest() {
    auto client = HttpClient::Create();
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  static HttpCall CallOf(const FakeApiServer& server, const std::string& target = "/") {
    return {.request = {.target = target}, .origin = server.config().server};
  }
  HttpExchange Get(const HttpCall& call, const BodyCallback* sink = nullptr) {
    return client_->Do(call, sink, {});
  }

  std::unique_ptr<HttpClient> client_;
};

FakeApiServer::Handler Say(int status, const std::string& body,
                           const FakeExchange::Headers& headers = {}) {
  return [=](FakeExchange& exchange) { exchange.Reply(status, body, headers); };
}

TEST_F(HttpClientTest, GivesStatusHeadersAndBody) {
  FakeApiServer server(Say(404, "none", {{"X-One", " a b "}}));
  const HttpExchange exchange = Get(CallOf(server));
  ASSERT_TRUE(exchange.status.ok()) << exchange.status;
  EXPECT_EQ(exchange.stage, ExchangeStage::kAnswered);
  EXPECT_EQ(exchange.answer.status, 404);
  EXPECT_EQ(exchange.answer.reason, "Fake");
  EXPECT_EQ(exchange.answer.Header("x-one"), "a b");
  EXPECT_EQ(exchange.answer.Header("x-two"), "");
  EXPECT_EQ(exchange.answer.body, "none");
}

TEST_F(HttpClientTest, SendsWhatItIsGivenAndLittleElse) {
  std::mutex mutex;
  kube::FakeRequest seen;
  FakeApiServer server([&](FakeExchange& exchange) {
    {
      const std::lock_guard lock(mutex);
      seen = exchange.request();
    }
    exchange.Reply(200, "");
  });
  HttpCall call = CallOf(server, "/a/../b?c=%2F#d");
  call.request.method = "PATCH";
  call.request.content_type = "application/json";
  call.request.body = std::string(1'000'000, 'x');
  call.request.headers = {{"X-One", "1"}, {"x-one", "2"}, {"X-Empty", ""}, {"user-agent", "me"}};
  ASSERT_TRUE(Get(call).status.ok());
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.target, call.request.target);
  EXPECT_EQ(seen.body, call.request.body);
  const std::map<std::string, std::string> headers = {
      {"host", absl::StrCat("127.0.0.1:", server.port())},
      {"user-agent", "me"},
      {"accept", "*/*"},
      {"content-type", "application/json"},
      {"content-length", "1000000"},
      {"x-one", "2"},
      {"x-empty", ""}};
  EXPECT_EQ(seen.headers, headers);
}

TEST_F(HttpClientTest, RefusesWhatWouldBreakOutOfItsLine) {
  FakeApiServer server(Say(200, ""));
  std::vector<HttpCall> calls;
  for (const char* target : {"", "x", "/a b", "/a\r\nX: y", "/a\n", "/\x7f"}) {
    calls.push_back(CallOf(server, target));
  }
  for (const char* text : {"a\r\nX: y", "a\n", "\x01"}) {
    calls.push_back(CallOf(server));
    calls.back().request.headers = {{"X", text}};
    calls.push_back(CallOf(server));
    calls.back().request.content_type = text;
  }
  for (const char* name : {"", "a b", "a:b", "a\r\n"}) {
    calls.push_back(CallOf(server));
    calls.back().request.headers = {{name, "x"}};
  }
  for (const HttpCall& call : calls) {
    EXPECT_TRUE(absl::IsInvalidArgument(Get(call).status)) << Get(call).status;
  }
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(HttpClientTest, ReusesAConnection) {
  FakeApiServer server(Say(200, "x"));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Get(CallOf(server)).status.ok());
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientTest, FollowsNoRedirect) {
  FakeApiServer other(Say(200, "secret"));
  FakeApiServer server(Say(302, "", {{"Location", other.config().server + "/x"}}));
  const HttpExchange exchange = Get(CallOf(server));
  EXPECT_EQ(exchange.answer.status, 302);
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(HttpClientTest, UsesNoProxy) {
  FakeApiServer proxy(Say(200, "proxy"));
  setenv("http_proxy", proxy.config().server.c_str(), 1);
  setenv("ALL_PROXY", proxy.config().server.c_str(), 1);
  FakeApiServer server(Say(200, "server"));
  EXPECT_EQ(Get(CallOf(server)).answer.body, "server");
  unsetenv("http_proxy");
  unsetenv("ALL_PROXY");
}

TEST_F(HttpClientTest, ConnectsOnlyWhereItMay) {
  FakeApiServer server(Say(200, "x"));
  HttpCall call = CallOf(server);
  call.may_connect = [](const sockaddr& address) { return !IsLoopback(address); };
  const HttpExchange refused = Get(call);
  EXPECT_TRUE(absl::IsPermissionDenied(refused.status)) << refused.status;
  EXPECT_EQ(refused.stage, ExchangeStage::kNotSent);
  // A name is one address or another: it is the address that counts.
  call.origin = absl::StrCat("http://localhost:", server.port());
  EXPECT_TRUE(absl::IsPermissionDenied(Get(call).status));
  EXPECT_EQ(server.connections(), 0);
  // Nor is a connection used that another call has made.
  EXPECT_TRUE(Get(CallOf(server)).status.ok());
  call.origin = server.config().server;
  EXPECT_TRUE(absl::IsPermissionDenied(Get(call).status));
  call.may_connect = IsLoopback;
  EXPECT_TRUE(Get(call).status.ok());
}

TEST_F(HttpClientTest, AsksBeforeAnythingIsSent) {
  FakeApiServer server(Say(200, "x"));
  HttpCall call = CallOf(server);
  call.before_send = [] { return absl::UnavailableError("not now"); };
  const HttpExchange exchange = Get(call);
  EXPECT_EQ(exchange.status, absl::UnavailableError("not now"));
  EXPECT_EQ(exchange.stage, ExchangeStage::kNotSent);
  EXPECT_EQ(server.Count(""), 0);
}

// ---- limits ------------------------------------------------------------------------------------

TEST_F(HttpClientTest, LimitsBodies) {
  FakeApiServer server([](FakeExchange& exchange) {
    if (exchange.request().path == "/told") {
      return exchange.Raw("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n");
    }
    while (exchange.Stream(std::string(100, 'x'))) {
    }
  });
  for (const char* target : {"/told", "/endless"}) {
    HttpCall call = CallOf(server, target);
    call.limits.body_bytes = 1000;
    const HttpExchange exchange = Get(call);
    EXPECT_TRUE(absl::IsResourceExhausted(exchange.status)) << exchange.status;
    EXPECT_LE(exchange.answer.body.size(), 1000u);
  }
}

TEST_F(HttpClientTest, LimitsHeaders) {
  FakeApiServer server([](FakeExchange& exchange) {
    exchange.Raw("HTTP/1.1 200 OK\r\n");
    const bool one = exchange.request().path == "/one";
    if (one) exchange.Raw("X: ");
    for (int i = 0; i < 2'000; ++i)
      exchange.Raw(one ? std::string(100, 'x') : "X: y" + std::string(95, 'z') + "\r\n");
    (void)exchange.KeepSilent(absl::Seconds(30));
  });
  for (const char* target : {"/one", "/many"}) {
    const absl::Duration begun = RealClock()->Monotonic();
    const HttpExchange exchange = Get(CallOf(server, target));
    EXPECT_FALSE(exchange.status.ok()) << target;
    EXPECT_FALSE(absl::IsDeadlineExceeded(exchange.status)) << exchange.status;
    EXPECT_LT(RealClock()->Monotonic() - begun, absl::Seconds(10));
  }
}

TEST_F(HttpClientTest, LimitsTheWholeTimeOfAnAnswer) {
  FakeApiServer server([](FakeExchange& exchange) {
    if (exchange.request().path == "/header") exchange.Raw("HTTP/1.1 200 OK\r\nX: ");
    // One byte at a time, so that there is never a silence.
    for (int i = 0; i < 1'000 && exchange.KeepSilent(absl::Milliseconds(10)); ++i) {
      exchange.request().path == "/header" ? exchange.Raw("x") : (void)exchange.Stream("x");
    }
  });
  for (const char* target : {"/header", "/body"}) {
    HttpCall call = CallOf(server, target);
    call.limits.answer = absl::Milliseconds(300);
    const HttpExchange exchange = Get(call);
    EXPECT_TRUE(absl::IsDeadlineExceeded(exchange.status)) << exchange.status;
    EXPECT_EQ(exchange.stage, ExchangeStage::kAnswering) << target;
  }
}

TEST_F(HttpClientTest, LimitsTheTimeToConnect) {
  // The kernel accepts, and there is no program behind it that does its part of the handshake.
  const Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  ASSERT_EQ(bind(listener.get(), any, length) | listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), any, &length), 0);
  HttpCall call{.origin = absl::StrCat("https://127.0.0.1:", ntohs(address.sin_port))};
  call.limits.connect = absl::Milliseconds(200);
  const HttpExchange exchange = Get(call);
  EXPECT_TRUE(absl::IsDeadlineExceeded(exchange.status)) << exchange.status;
  EXPECT_EQ(exchange.stage, ExchangeStage::kNotSent);
}

TEST_F(HttpClientTest, StopsAtOnce) {
  FakeApiServer server([](FakeExchange& exchange) { exchange.KeepSilent(absl::Seconds(60)); });
  const BodyCallback all = [](std::string_view) { return true; };
  for (const BodyCallback* sink : {&all, static_cast<const BodyCallback*>(nullptr)}) {
    const int before = server.Count("");
    std::stop_source stop;
    HttpExchange ended;
    std::thread thread([&] { ended = client_->Do(CallOf(server), sink, stop.get_token()); });
    ASSERT_TRUE(Await([&] { return server.Count("") == before + 1; }));
    const absl::Duration begun = RealClock()->Monotonic();
    stop.request_stop();
    thread.join();
    EXPECT_LT(RealClock()->Monotonic() - begun, absl::Seconds(3));
    EXPECT_TRUE(absl::IsCancelled(ended.status)) << ended.status;
    // And one that is stopped before it begins sends nothing.
    EXPECT_TRUE(absl::IsCancelled(client_->Do(CallOf(server), sink, stop.get_token()).status));
  }
}

// ---- what is sent again ------------------------------------------------------------------------

TEST_F(HttpClientTest, SendsNothingTwice) {
  // The first request is answered; the second, over the same connection, is received and dropped.
  std::atomic<int> received = 0;
  FakeApiServer server([&](FakeExchange& exchange) {
    if (++received == 1) return exchange.Reply(200, "{}");
    exchange.Reset();
  });
  HttpCall call = CallOf(server);
  call.request.method = "POST";
  call.request.body = "one";
  ASSERT_TRUE(Get(call).status.ok());
  const HttpExchange lost = Get(call);
  EXPECT_TRUE(absl::IsUnavailable(lost.status)) << lost.status;
  EXPECT_EQ(lost.stage, ExchangeStage::kSent);
  EXPECT_EQ(received, 2);
}

TEST_F(HttpClientTest, SaysHowFarItCame) {
  FakeApiServer server([](FakeExchange& exchange) {
    if (exchange.request().path == "/cut")
      exchange.Raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx");
    exchange.Reset();
  });
  EXPECT_EQ(Get(CallOf(server, "/reset")).stage, ExchangeStage::kSent);
  const HttpExchange cut = Get(CallOf(server, "/cut"));
  EXPECT_EQ(cut.stage, ExchangeStage::kAnswering);
  EXPECT_TRUE(absl::IsUnavailable(cut.status)) << cut.status;
  const HttpExchange nowhere = Get({.origin = "http://127.0.0.1:1"});
  EXPECT_EQ(nowhere.stage, ExchangeStage::kNotSent);
  EXPECT_THAT(Message(nowhere.status), HasSubstr("Connection refused"));
  EXPECT_EQ(Get({.origin = "http://no-such-host.invalid:1"}).stage, ExchangeStage::kNotSent);
}

// ---- streams -----------------------------------------------------------------------------------

TEST_F(HttpClientTest, TellsABodyAsItComesAndMayCallMeanwhile) {
  std::atomic<bool> told = false;
  FakeApiServer server([&](FakeExchange& exchange) {
    if (exchange.request().path != "/stream") return exchange.Reply(200, "x");
    exchange.Stream("one");
    EXPECT_TRUE(Await([&] { return told.load(); })) << "the first piece comes before the second";
    exchange.Stream("two");
    exchange.EndStream();
  });
  std::string all;
  const BodyCallback sink = [&](std::string_view piece) {
    all += piece;
    told = true;
    return Get(CallOf(server, "/other")).status.ok();
  };
  const HttpExchange exchange = Get(CallOf(server, "/stream"), &sink);
  EXPECT_TRUE(exchange.status.ok()) << exchange.status;
  EXPECT_EQ(all, "onetwo");
  EXPECT_EQ(exchange.answer.body, "");
}

TEST_F(HttpClientTest, WaitsForASlowReader) {
  constexpr int kPieces = 200;
  FakeApiServer server([&](FakeExchange& exchange) {
    for (int i = 0; i < kPieces && exchange.Stream(std::string(100'000, 'x')); ++i) {
    }
    exchange.EndStream();
  });
  size_t read = 0;
  const BodyCallback sink = [&](std::string_view piece) {
    if (read == 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    read += piece.size();
    return true;
  };
  HttpCall call = CallOf(server);
  call.limits.silence = absl::Milliseconds(300);  // of the server, not of the reader
  EXPECT_TRUE(Get(call, &sink).status.ok());
  EXPECT_EQ(read, kPieces * 100'000u);
}

// ---- TLS ---------------------------------------------------------------------------------------

class HttpTlsTest : public HttpClientTest {
 protected:
  HttpTlsTest()
      : authority_(*MakeAuthority("test", absl::Now())),
        pair_(*IssueCertificate(authority_, {"127.0.0.1", "api.example.org"}, absl::Now())),
        server_(Say(200, "x"), {pair_.certificate, pair_.key, ""}) {}

  HttpCall Call() const {
    HttpCall call = CallOf(server_);
    call.tls.ca = authority_.certificate;
    return call;
  }

  const KeyPair authority_;
  const KeyPair pair_;
  FakeApiServer server_;
};

TEST_F(HttpTlsTest, TrustsTheAuthorityThatItIsGivenAlone) {
  EXPECT_TRUE(Get(Call()).status.ok()) << Get(Call()).status;
  HttpCall call = Call();
  call.tls.ca = MakeAuthority("other", absl::Now())->certificate;
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(call).status)) << Get(call).status;
  call.tls.insecure = true;
  EXPECT_TRUE(Get(call).status.ok());
  // A connection that was made without looking is none for those who look.
  call.tls.insecure = false;
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(call).status));
}

TEST_F(HttpTlsTest, ChecksTheNameThatItIsGiven) {
  HttpCall call = Call();
  call.tls.server_name = "api.example.org";
  EXPECT_TRUE(Get(call).status.ok()) << Get(call).status;
  call.tls.server_name = "other.example.org";
  EXPECT_TRUE(absl::IsFailedPrecondition(Get(call).status));
}

TEST_F(HttpTlsTest, RefusesPemThatIsNoneBeforeItIsUsed) {
  EXPECT_EQ(
      CheckTls({.ca = authority_.certificate, .certificate = pair_.certificate, .key = pair_.key}),
      absl::OkStatus());
  EXPECT_THAT(Message(CheckTls({.ca = "hunter2"})), HasSubstr("ca is not"));
  EXPECT_THAT(Message(CheckTls({.certificate = "hunter2", .key = pair_.key})),
              HasSubstr("certificate is not"));
  const Status key = CheckTls({.certificate = pair_.certificate, .key = authority_.key});
  EXPECT_THAT(Message(key), HasSubstr("key is not"));
  EXPECT_THAT(Message(CheckTls({.certificate = pair_.certificate, .key = "hunter2"})),
              Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace shirabe::net
