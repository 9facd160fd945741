// Connections that are there to take the room of others: they announce and do not send, or are
// idle, or come from one address by the hundred.
#include <algorithm>

#include "tests/attack/attacked_server.h"
#include "tests/attack/raw_connections.h"

namespace shirabe::attack {
namespace {

using service::RequestText;
using service::Wire;
using service::WireReply;
using testing::HasSubstr;

// What comes back for a request, until the other side closes.
std::string Exchange(const Fd& fd, const std::string& text) {
  std::string all;
  if (send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return all;
  pollfd wait = {fd.get(), POLLIN, 0};
  char buffer[4096];
  while (poll(&wait, 1, 5000) > 0) {
    const ssize_t n = recv(fd.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return all;
    all.append(buffer, static_cast<size_t>(n));
  }
  return all;
}

class ConnectionsAttack : public AttackTest {
 protected:
  absl::Duration TimeOf(const std::string& line, const std::string& token,
                        const std::string& body = "") const {
    const absl::Duration began = RealClock()->Monotonic();
    EXPECT_EQ(Http(line, token, body).status, 200) << line;
    return RealClock()->Monotonic() - began;
  }
};

// attacks: HTTP POST /shirabe.v1.Shirabe/{method}, HTTP POST /api/v1/validate, HTTP GET /livez
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:tell
TEST_F(ConnectionsAttack, BodiesThatAreAnnouncedAndNotSent) {
  Serve();
  const std::string a_trials = std::string(32, 'a');
  const std::string requests[] = {
      "POST /shirabe.v1.Shirabe/GetExperiment HTTP/1.1\r\nHost: a\r\n"
      "Content-Type: application/grpc-web+proto\r\n",
      "POST /api/v1/namespaces/red/experiments/x/trials/1:tell HTTP/1.1\r\nHost: a\r\n"
      "Authorization: Bearer " +
          a_trials + "\r\n",
      "GET /livez HTTP/1.1\r\nHost: a\r\n",
      absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ", kRedToken,
                   "\r\n"),
  };
  std::vector<std::unique_ptr<Wire>> wires;
  for (const std::string& request : requests) {
    for (int i = 0; i < 100; ++i) {
      wires.push_back(std::make_unique<Wire>(http_port_));
      wires.back()->Send(request + "Content-Length: 4194304\r\n\r\n");
    }
  }
  // Whoever is not known is told so before he has sent anything of it.
  for (const int first : {0, 100, 200}) {
    const WireReply reply = wires[static_cast<size_t>(first)]->ReadReply();
    EXPECT_GE(reply.status, 400);
    EXPECT_LE(reply.status, 403);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_LT(TimeOf("POST /api/v1/validate", kBlueToken, Spec(kAskedSpec, "blue", "x")),
              absl::Seconds(1));
  }
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/validate
TEST_F(ConnectionsAttack, ExpectationsOfStrangersAreNotMet) {
  Serve();
  for (const char* token : {"", "Authorization: Bearer a-token-that-nobody-knows\r\n"}) {
    Wire wire(http_port_);
    wire.Send(absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n",
                           token, "Expect: 100-continue\r\n\r\n"));
    const WireReply reply = wire.ReadReply();
    EXPECT_GE(reply.status, 401);
    EXPECT_LE(reply.status, 403);
    EXPECT_TRUE(wire.ReadToEnd());
  }
}

// attacks: HTTP POST /api/v1/validate
TEST_F(ConnectionsAttack, BodiesOfOneCallerThatAreNeverWhole) {
  Serve();
  const std::string most(3'500'000, ' ');
  std::vector<std::unique_ptr<Wire>> wires;
  for (int i = 0; i < 25; ++i) {
    wires.push_back(std::make_unique<Wire>(http_port_));
    wires.back()->Send(
        absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n"
                     "Authorization: Bearer ",
                     kRedToken, "\r\n\r\n", most));
  }
  int refused = 0;
  for (auto& wire : wires) {
    if (wire->ReadUntil("429 Too Many Requests", absl::Milliseconds(100))) ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(TimeOf("POST /api/v1/validate", kBlueToken, Spec(kAskedSpec, "blue", "x")),
            absl::Seconds(1));
}

// attacks: HTTP GET /livez, HTTP GET /readyz, HTTP GET /api/v1/algorithms
TEST_F(ConnectionsAttack, ThousandsThatSayNothing) {
  constexpr int kAddresses = 7;
  constexpr int kEach = 1900;
  if (!MayOpenFiles(kAddresses * kEach + 500)) GTEST_SKIP() << "too few files may be open";
  Serve();
  Wire known(http_port_);
  known.Send(RequestText("GET /api/v1/algorithms", kRedToken));
  EXPECT_EQ(known.ReadReply().status, 200);
  std::vector<Fd> crowd;
  for (int i = 0; i < kEach; ++i) {
    for (int k = 0; k < kAddresses; ++k) crowd.push_back(ConnectFrom(2 + k, http_port_));
  }
  std::vector<absl::Duration> times;
  for (int i = 0; i < 20; ++i) times.push_back(TimeOf("GET /livez", ""));
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], absl::Milliseconds(100));
  EXPECT_LT(times.back(), absl::Seconds(1));
  TimeOf("GET /readyz", "");
  TimeOf("GET /api/v1/algorithms", kRedToken);
  // Who is known kept his connection.
  known.Send(RequestText("GET /api/v1/algorithms", kRedToken));
  EXPECT_EQ(known.ReadReply().status, 200);
  crowd.clear();
  ExpectAlive();
}

// attacks: HTTP GET /livez, HTTP GET /version
TEST_F(ConnectionsAttack, OneAddressThatTakesAllItCan) {
  Serve({"--connections-per-address", "50"});
  std::vector<Fd> crowd;
  for (int i = 0; i < 50; ++i) {
    crowd.push_back(ConnectFrom(2, http_port_));
    ASSERT_TRUE(crowd.back().valid());
  }
  const std::string version = "GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  const std::string livez = "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  EXPECT_THAT(Exchange(ConnectFrom(2, http_port_), version), HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(Exchange(ConnectFrom(2, http_port_), livez), HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(Exchange(ConnectFrom(3, http_port_), version), HasSubstr("HTTP/1.1 200"));
  EXPECT_EQ(Http("GET /version", "").status, 200);
}

}  // namespace
}  // namespace shirabe::attack
