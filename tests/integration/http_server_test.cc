// The HTTP server over real sockets: clients that speak well, those that do not, and those that do
// not speak at all.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "service/common/suggestion_scheduler.h"
#include "service/http/http_server.h"
#include "tests/integration/http_wire.h"
#include "tests/service/http_fixture.h"
#include "tests/support/eventually.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;

constexpr char kOne[] = "/api/v1/namespaces/a/experiments/one";

class HttpServerTest : public testing::Test {
 protected:
  void Start(HttpLimits limits = {}) {
    auto started = HttpServer::Start({.context = http_.context(), .limits = limits});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = std::move(*started);
  }
  int port() const { return server_->port(); }
  static std::string Request(const std::string& line, const std::string& body = "") {
    return RequestText(line, kAdminToken, body);
  }
  // Whether the server still answers somebody who asks properly.
  bool Answers() const {
    Wire wire(port());
    return wire.Send(Request("GET /version")) && wire.ReadReply().status == 200;
  }
  double Connections() const { return http_.metrics().Value("shirabe_http_connections", {}); }

  HttpFixture http_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, KeepsAConnectionForManyRequests) {
  Start();
  Wire wire(port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(wire.Send(Request("GET /version")));
    EXPECT_EQ(wire.ReadReply().status, 200);
  }
  // Two at once are answered one after the other.
  ASSERT_TRUE(wire.Send(Request("GET /version") + Request("GET /nothing")));
  EXPECT_EQ(wire.ReadReply().status, 200);
  EXPECT_EQ(wire.ReadReply().status, 404);
  ASSERT_TRUE(wire.Send("GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_EQ(wire.ReadReply().status, 200);
  EXPECT_TRUE(wire.ReadToEnd());
}

TEST_F(HttpServerTest, AnswersHeadWithoutABody) {
  Start();
  http_.Create("a", "one");
  Wire wire(port());
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("HEAD ", kOne))));
  const WireReply head = wire.ReadReply(true);
  EXPECT_EQ(head.status, 200);
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("GET ", kOne))));
  const WireReply get = wire.ReadReply();
  EXPECT_THAT(head.head, HasSubstr(absl::StrCat("Content-Length: ", get.body.size())));
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("HEAD ", kOne, "/watch"))));
  EXPECT_EQ(wire.ReadReply(true).status, 200);
  ASSERT_TRUE(wire.Send(Request("GET /version")));
  EXPECT_EQ(wire.ReadReply().status, 200);
}

TEST_F(HttpServerTest, TakesAWholeExperimentInPieces) {
  Start();
  Wire wire(port());
  const std::string text = Request("POST /api/v1/namespaces/a/experiments", AskedSpec("one"));
  for (const char c : text) ASSERT_TRUE(wire.Send(std::string(1, c)));
  EXPECT_EQ(wire.ReadReply().status, 201);
}

TEST_F(HttpServerTest, WaitsForTheBodyThatIsExpected) {
  Start();
  Wire wire(port());
  const std::string spec = AskedSpec("one");
  ASSERT_TRUE(wire.Send(absl::StrCat(
      "POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ",
      spec.size(), "\r\nAuthorization: Bearer ", kAdminToken, "\r\n\r\n")));
  EXPECT_EQ(wire.ReadReply(true).status, 100);
  ASSERT_TRUE(wire.Send(spec));
  EXPECT_EQ(wire.ReadReply().status, 200);
}

TEST_F(HttpServerTest, RefusesWhatIsTooLarge) {
  Start({.header_bytes = 4096, .body_bytes = 1000});
  Wire body(port());
  ASSERT_TRUE(body.Send(Request("POST /api/v1/validate", std::string(2000, 'a'))));
  EXPECT_EQ(body.ReadReply().status, 413);
  EXPECT_TRUE(body.ReadToEnd());
  Wire header(port());
  header.Send("GET /version HTTP/1.1\r\nA: " + std::string(8000, 'a') + "\r\n\r\n");
  EXPECT_EQ(header.ReadReply().status, 431);
  Wire chunked(port());
  chunked.Send(absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ",
                            kAdminToken, "\r\nTransfer-Encoding: chunked\r\n\r\n", "7d0\r\n",
                            std::string(2000, 'a'), "\r\n0\r\n\r\n"));
  EXPECT_EQ(chunked.ReadReply().status, 413);
  EXPECT_TRUE(Answers());
}

TEST_F(HttpServerTest, ReadsNoBodyOfThoseWhoMayNotSendIt) {
  Start();
  for (const char* path : {"/api/v1/validate", "/api/v1/nothing"}) {
    Wire wire(port());
    ASSERT_TRUE(
        wire.Send(absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n",
                               "Expect: 100-continue\r\n\r\n")));
    const WireReply reply = wire.ReadReply();
    EXPECT_EQ(reply.status, path[8] == 'v' ? 401 : 404);
    EXPECT_THAT(reply.head, HasSubstr("Connection: close"));
  }
}

TEST_F(HttpServerTest, SaysWhyItCannotReadARequest) {
  Start();
  for (const char* text :
       {"nonsense\r\n\r\n", "GET /version HTTP/1.1\r\nBad Header\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"}) {
    Wire wire(port());
    ASSERT_TRUE(wire.Send(text));
    const WireReply reply = wire.ReadReply();
    EXPECT_EQ(reply.status, 400) << text;
    EXPECT_THAT(reply.body, HasSubstr("INVALID_ARGUMENT"));
    EXPECT_TRUE(wire.ReadToEnd());
  }
}

TEST_F(HttpServerTest, SurvivesRandomAndTruncatedBytes) {
  Start();
  Rng rng(7);
  const std::string good = Request("POST /api/v1/validate", AskedSpec("one"));
  for (int i = 0; i < 200; ++i) {
    Wire wire(port());
    std::string text = good.substr(0, rng.Below(good.size()));
    for (uint64_t k = rng.Below(4); k > 0 && !text.empty(); --k) {
      text[rng.Below(text.size())] = static_cast<char>(rng.Below(256));
    }
    wire.Send(text);
    wire.FinishSending();
    EXPECT_TRUE(wire.ReadToEnd()) << i;
  }
  EXPECT_TRUE(Answers());
}

TEST_F(HttpServerTest, ClosesWhoIsSilentOrSlow) {
  Start({.header = absl::Milliseconds(200), .body = absl::Milliseconds(200)});
  Wire silent(port());
  Wire half(port());
  half.Send("GET /version HT");
  Wire body(port());
  body.Send(absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ",
                         kAdminToken, "\r\nContent-Length: 100\r\n\r\nab"));
  EXPECT_TRUE(silent.ReadToEnd());
  EXPECT_TRUE(half.ReadToEnd());
  EXPECT_TRUE(body.ReadToEnd());
  EXPECT_TRUE(Answers());
}

TEST_F(HttpServerTest, ClosesWhoDoesNotReadWhatHeAskedFor) {
  http_.Create("a", "one", 3000);
  http_.RunTrials("a", "one", 3000);
  Start({.write = absl::Milliseconds(300)});
  Wire slow(port(), 4096);
  ASSERT_TRUE(slow.Send(Request(absl::StrCat("GET ", kOne, "/trials?pageSize=10000"))));
  EXPECT_TRUE(
      Eventually([&] { return http_.metrics().Value("shirabe_http_connections", {}) == 1; }));
  EXPECT_TRUE(Eventually([&] { return http_.metrics().Value("shirabe_http_connections", {}) == 0; },
                         absl::Seconds(20)));  // less than a connection has where none is said
  EXPECT_TRUE(Answers());
}

TEST_F(HttpServerTest, ExportsInChunksAndForOldClientsWithout) {
  Start();
  http_.Create("a", "one", 20);
  http_.RunTrials("a", "one", 20);
  Wire wire(port());
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("GET ", kOne, "/export"))));
  ASSERT_TRUE(wire.ReadUntil("0\r\n\r\n"));
  EXPECT_THAT(wire.data(), HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(wire.data(), HasSubstr("one-20,"));
  wire.data().clear();
  ASSERT_TRUE(wire.Send(Request("GET /version")));
  EXPECT_EQ(wire.ReadReply().status, 200);
  Wire old(port());
  ASSERT_TRUE(old.Send(absl::StrCat("GET ", kOne, "/export HTTP/1.0\r\nAuthorization: Bearer ",
                                    kAdminToken, "\r\n\r\n")));
  EXPECT_TRUE(old.ReadToEnd());
  EXPECT_THAT(old.data(), HasSubstr("one-20,"));
  EXPECT_THAT(old.data(), testing::Not(HasSubstr("chunked")));
}

TEST_F(HttpServerTest, StreamsEveryChangeAndGoesOnWhereItEnded) {
  Start();
  http_.Create("a", "one");
  Wire wire(port());
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("GET ", kOne, "/watch"))));
  ASSERT_TRUE(wire.ReadUntil(": watching"));
  http_.RunTrials("a", "one", 1);
  ASSERT_TRUE(wire.ReadUntil("\"one-1\""));
  const size_t id = wire.data().rfind("\nid: ");
  ASSERT_NE(id, std::string::npos);
  const std::string last = wire.data().substr(id + 5, wire.data().find('\n', id + 5) - id - 5);
  close(wire.fd());  // cut off
  http_.RunTrials("a", "one", 1);
  Wire again(port());
  std::string text = Request(absl::StrCat("GET ", kOne, "/watch"));
  text.insert(text.size() - 2, absl::StrCat("Last-Event-ID: ", last, "\r\n"));
  ASSERT_TRUE(again.Send(text));
  EXPECT_TRUE(again.ReadUntil("\"one-2\""));
  Wire future(port());
  ASSERT_TRUE(future.Send(Request(absl::StrCat("GET ", kOne, "/watch?after=1000000"))));
  EXPECT_EQ(future.ReadReply().status, 410);
}

TEST_F(HttpServerTest, KeepsASilentStreamAlive) {
  http_.Create("a", "one");
  Start({.heartbeat = absl::Milliseconds(50)});
  Wire wire(port());
  ASSERT_TRUE(wire.Send(Request(absl::StrCat("GET ", kOne, "/watch"))));
  ASSERT_TRUE(wire.ReadUntil(": still here"));
  EXPECT_EQ(http_.metrics().Value("shirabe_sse_clients", {}), 1);
  shutdown(wire.fd(), SHUT_RDWR);
  EXPECT_TRUE(Eventually([&] { return http_.metrics().Value("shirabe_sse_clients", {}) == 0; }));
}

TEST_F(HttpServerTest, MakesRoomByEndingWhoIsIdleAndUnknown) {
  Start({.connections = 2});
  Wire known(port());
  ASSERT_TRUE(known.Send(Request("GET /api/v1/algorithms")));
  EXPECT_EQ(known.ReadReply().status, 200);
  Wire unknown(port());
  ASSERT_TRUE(unknown.Send(Request("GET /version")));
  EXPECT_EQ(unknown.ReadReply().status, 200);
  EXPECT_TRUE(Answers());
  EXPECT_TRUE(unknown.ReadToEnd());
  ASSERT_TRUE(known.Send(Request("GET /api/v1/algorithms")));
  EXPECT_EQ(known.ReadReply().status, 200);
}

TEST_F(HttpServerTest, AnswersWhetherItLivesWhenAllSeatsAreTaken) {
  Start({.connections = 2});
  Wire first(port());
  Wire second(port());
  for (Wire* wire : {&first, &second}) {
    ASSERT_TRUE(wire->Send(Request("GET /api/v1/watch")));
    ASSERT_TRUE(wire->ReadUntil(": watching"));
  }
  for (const char* path : {"/livez", "/readyz"}) {
    Wire probe(port());
    ASSERT_TRUE(probe.Send(Request(absl::StrCat("GET ", path))));
    EXPECT_EQ(probe.ReadReply().status, 200) << path;
    EXPECT_TRUE(probe.ReadToEnd());
  }
  Wire third(port());
  ASSERT_TRUE(third.Send(Request("GET /api/v1/algorithms")));
  const WireReply reply = third.ReadReply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.head, HasSubstr("Retry-After"));
  // A scraper sees it, and not as an error of the server.
  Wire scraper(port());
  ASSERT_TRUE(scraper.Send(Request("GET /metrics")));
  const WireReply metrics = scraper.ReadReply();
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("shirabe_http_connections_refused_total 1\n"));
  EXPECT_THAT(metrics.body, testing::Not(HasSubstr("code=\"503\"")));
  shutdown(first.fd(), SHUT_RDWR);
  EXPECT_TRUE(Eventually([&] { return Answers(); }));
}

TEST_F(HttpServerTest, LetsRequestsAtWorkFinishWhenItEnds) {
  std::latch at_work(1);
  std::latch may_end(1);
  HttpContext context = http_.context();
  Tokens tokens = *context.tokens;
  tokens.SetCluster([&](const std::string&, const std::string&) -> StatusOr<Principal> {
    at_work.count_down();
    may_end.wait();
    return absl::UnauthenticatedError("nobody");
  });
  context.tokens = &tokens;
  auto started = HttpServer::Start({.context = context});
  ASSERT_TRUE(started.ok());
  server_ = std::move(*started);
  Wire stream(port());
  ASSERT_TRUE(stream.Send(Request("GET /api/v1/watch")));
  ASSERT_TRUE(stream.ReadUntil(": watching"));
  Wire idle(port());
  ASSERT_TRUE(idle.Send(Request("GET /version")));
  EXPECT_EQ(idle.ReadReply().status, 200);
  Wire busy(port());
  ASSERT_TRUE(busy.Send(RequestText("GET /api/v1/algorithms", "a-token-of-the-cluster")));
  at_work.wait();
  std::jthread end([&] { server_ = nullptr; });
  EXPECT_TRUE(stream.ReadToEnd());
  EXPECT_THAT(stream.data(), HasSubstr("0\r\n\r\n"));  // ended in order
  EXPECT_TRUE(idle.ReadToEnd());
  may_end.count_down();
  const WireReply reply = busy.ReadReply();
  EXPECT_GT(reply.status, 0);
  EXPECT_THAT(reply.head, HasSubstr("Connection: close"));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  Start();
  const auto context = http_.context();
  const auto taken = HttpServer::Start({.address = server_->address(), .context = context});
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kUnavailable);
  for (const char* bad : {"", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "nowhere:80"}) {
    const auto wrong = HttpServer::Start({.address = bad, .context = context});
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

// As many files as the test needs, or why it cannot have them.
std::string RaiseFileLimit(rlim_t wanted) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, wanted));
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return "";
  return absl::StrCat("only ", limit.rlim_cur, " files may be open here, ", wanted, " are needed");
}

// Another process that connects as often as it is told and waits, so that each needs only its own
// ends of the connections. It calls nothing but the system: it is a copy of a process with threads.
class Crowd {
 public:
  Crowd(int port, int size) {
    CHECK(pipe2(down_, O_CLOEXEC) == 0 && pipe2(up_, O_CLOEXEC) == 0);
    pid_ = fork();
    if (pid_ == 0) Connect(port, size);
    close(up_[1]);
  }
  ~Crowd() {
    Leave();
    close(up_[0]);
    close(down_[0]);
  }
  // Whether all of them are connected.
  bool Wait() const {
    char byte = 0;
    return read(up_[0], &byte, 1) == 1 && byte == 'y';
  }
  void Leave() {
    if (pid_ <= 0) return;
    close(down_[1]);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  [[noreturn]] void Connect(int port, int size) const {
    close(down_[1]);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool all = true;
    for (int i = 0; i < size && all; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      all = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    }
    char byte = all ? 'y' : 'n';
    if (write(up_[1], &byte, 1) == 1) all = read(down_[0], &byte, 1) == 0;  // until we leave
    _exit(all ? 0 : 1);
  }

  int down_[2];
  int up_[2];
  pid_t pid_ = -1;
};

TEST_F(HttpServerTest, HoldsTenThousandConnections) {
  constexpr int kMany = 10'000;
  if (const std::string why = RaiseFileLimit(2 * kMany); !why.empty()) GTEST_SKIP() << why;
  Start();
  Crowd crowd(port(), kMany);
  ASSERT_TRUE(crowd.Wait());
  EXPECT_TRUE(Eventually([&] { return Connections() == kMany; }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Answers());
  crowd.Leave();
  EXPECT_TRUE(Eventually([&] { return Connections() == 0; }));
  EXPECT_TRUE(Answers());
}

TEST_F(HttpServerTest, TwoThousandStreamsHearOfAChange) {
  constexpr int kMany = 2000;
  if (const std::string why = RaiseFileLimit(2 * kMany + 500); !why.empty()) GTEST_SKIP() << why;
  http_.Create("a", "one");
  Quotas quotas{.streams = Quota({.what = "event streams"})};  // one caller has all of them
  HttpContext context = http_.context();
  context.quotas = &quotas;
  auto started = HttpServer::Start({.context = context});
  ASSERT_TRUE(started.ok());
  server_ = std::move(*started);
  std::vector<std::unique_ptr<Wire>> wires;
  for (int i = 0; i < kMany; ++i) {
    wires.push_back(std::make_unique<Wire>(port()));
    ASSERT_TRUE(wires.back()->Send(Request(absl::StrCat("GET ", kOne, "/watch"))));
  }
  for (auto& wire : wires) ASSERT_TRUE(wire->ReadUntil(": watching"));
  EXPECT_TRUE(Answers());
  http_.RunTrials("a", "one", 1);
  for (auto& wire : wires) EXPECT_TRUE(wire->ReadUntil("\"one-1\""));
  wires.clear();
  server_ = nullptr;
}

}  // namespace
}  // namespace shirabe::service
