// Connections to the doors of gRPC that are there to take the room of others.
#include "tests/attack/attacked_server.h"
#include "tests/attack/raw_connections.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

class GrpcConnectionsAttack : public AttackTest {
 protected:
  static int PortOf(const std::string& address) {
    return std::stoi(address.substr(address.rfind(':') + 1));
  }
  static bool IsClosed(const Fd& fd, absl::Duration patience) {
    pollfd wait = {fd.get(), POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) <= 0) return false;
    char byte = 0;
    while (true) {
      const ssize_t n = recv(fd.get(), &byte, 1, MSG_DONTWAIT);
      if (n <= 0) return n == 0 || errno == ECONNRESET;
    }
  }
  absl::Duration TimeOfACall(v1::Shirabe::Stub& stub) const {
    const absl::Duration began = RealClock()->Monotonic();
    v1::ExperimentRef all;
    all.set_namespace_("red");
    const auto context = As(kRedToken);
    const auto reader = stub.ListExperiments(context.get(), all);
    v1::Experiment experiment;
    while (reader->Read(&experiment)) {
    }
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return RealClock()->Monotonic() - began;
  }
};

// attacks: gRPC shirabe.v1.Shirabe/ListExperiments
TEST_F(GrpcConnectionsAttack, ThousandsThatSayNothingKeepNobodyOut) {
  constexpr int kAddresses = 7;
  constexpr int kEach = 1900;
  if (!MayOpenFiles(kAddresses * kEach + 500)) GTEST_SKIP() << "too few files may be open";
  Serve();
  const auto known = Shirabe();
  TimeOfACall(*known);
  std::vector<Fd> crowd;
  for (int i = 0; i < kEach; ++i) {
    for (int k = 0; k < kAddresses; ++k) crowd.push_back(ConnectFrom(2 + k, PortOf(grpc_)));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_LT(TimeOfACall(*known), absl::Seconds(2));
    EXPECT_LT(TimeOfACall(*Shirabe()), absl::Seconds(5));
    EXPECT_EQ(Http("GET /livez", "").status, 200);
  }
  // The oldest of those that had shown nothing went.
  EXPECT_TRUE(IsClosed(crowd.front(), absl::Seconds(5)));
  crowd.clear();
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ListExperiments, gRPC api.v1.beta1.Suggestion/GetSuggestions
TEST_F(GrpcConnectionsAttack, OneAddressThatTakesAllItCanIsTurnedAway) {
  constexpr int kMost = 50;
  Serve({"--connections-per-address", std::to_string(kMost), "--katib-listen", "127.0.0.1:0"});
  for (const std::string& door : {grpc_, katib_}) {
    std::vector<Fd> crowd;
    for (int i = 0; i < kMost; ++i) crowd.push_back(ConnectFrom(2, PortOf(door)));
    EXPECT_TRUE(IsClosed(ConnectFrom(2, PortOf(door)), absl::Seconds(5))) << door;
    EXPECT_FALSE(IsClosed(ConnectFrom(3, PortOf(door)), absl::Milliseconds(300))) << door;
    TimeOfACall(*Shirabe());
    // Those that have gone leave their room.
    crowd.clear();
    EXPECT_TRUE(Eventually([&] {
      return !IsClosed(ConnectFrom(2, PortOf(door)), absl::Milliseconds(100));
    })) << door;
  }
  const std::string refused = "shirabe_grpc_connections_refused_total ";
  const std::string metrics = Http("GET /metrics", kAdminToken).body;
  ASSERT_NE(metrics.find(refused), std::string::npos);
  EXPECT_GE(std::stoi(metrics.substr(metrics.rfind(refused) + refused.size())), 2);
}

}  // namespace
}  // namespace shirabe::attack
