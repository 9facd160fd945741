// Tokens that nobody has given out, shown to a controller that must ask the cluster about each.
#include <thread>

#include "tests/attack/attacked_cluster.h"
#include "tests/attack/raw_connections.h"
#include "tests/integration/http_wire.h"

namespace shirabe::attack {
namespace {

using testing::HasSubstr;

class UnknownTokensTest : public ControllerAttackTest {
 protected:
  // The first line of what is answered to a caller at 127.0.0.<last>.
  std::string Ask(int last, const std::string& token) {
    const Fd fd = ConnectFrom(last, port_);
    const std::string reply = service::AskOverTls(
        fd.get(), service::RequestText("GET /api/v1/namespaces/red/experiments", token),
        {.authority = cli_.state() + "/tls/ca.crt"});
    return reply.substr(0, reply.find('\r'));
  }
  int Reviews() const {
    int count = 0;
    for (const std::string& request : cluster_.requests()) {
      count += request.find("tokenreviews") != request.npos ? 1 : 0;
    }
    return count;
  }

  int port_ = 0;
};

// attacks: HTTP GET /api/v1/namespaces/{ns}/experiments
TEST_F(UnknownTokensTest, OneAddressUsesUpNeitherTheApiServerNorTheTurnsOfOthers) {
  cluster_.known_token = "the-token-of-somebody";
  StartController();
  const nlohmann::json ready =
      nlohmann::json::parse(ReadFile(cli_.Path("ready" + std::to_string(starts_))).value_or("{}"));
  const std::string http = ready.value("http", ":0");
  port_ = std::stoi(http.substr(http.rfind(':') + 1));
  std::atomic<int> turned_away = 0;
  std::vector<std::thread> attackers;
  const absl::Duration began = RealClock()->Monotonic();
  for (int i = 0; i < 4; ++i) {
    attackers.emplace_back([&, i] {
      for (int k = 0; k < 200; ++k) {
        const std::string line = Ask(2, absl::StrCat("a-token-that-is-none-", i, "-", k));
        EXPECT_EQ(line.find(" 200"), line.npos) << line;
        turned_away += line.find(" 503") != line.npos ? 1 : 0;
      }
    });
  }
  EXPECT_THAT(Ask(3, cluster_.known_token), HasSubstr(" 200"));
  for (std::thread& attacker : attackers) attacker.join();
  EXPECT_GT(turned_away, 0);
  const double seconds = absl::ToDoubleSeconds(RealClock()->Monotonic() - began);
  EXPECT_LE(Reviews(), 100 + 20 * (seconds + 1) + 1) << "in " << seconds << " s";
  // The next address has turns of its own.
  EXPECT_THAT(Ask(4, "another-that-is-none"), HasSubstr(" 401"));
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
