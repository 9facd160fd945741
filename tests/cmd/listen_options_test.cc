#include "cmd/listen_options.h"

#include <gtest/gtest.h>

namespace shirabe::cmd {
namespace {

// `controller` once built these options by itself, and had forgotten the logs: they were never
// deleted, whatever --log-space said.
TEST(ListenOptionsTest, EveryLimitReachesTheServer) {
  LocalSession session;
  session.place.home = "/home/of/it";
  ListenOptions given;
  given.grpc = "127.0.0.1:1";
  given.http = "127.0.0.1:2";
  given.katib_listen = "127.0.0.1:3";
  given.rate = 7;
  given.log_space = 3;
  given.connections = 5;
  given.base_path = "/team";
  const service::ServerOptions options = ServerOptionsOf(given, session);
  EXPECT_EQ(options.grpc, "127.0.0.1:1");
  EXPECT_EQ(options.http, "127.0.0.1:2");
  EXPECT_EQ(options.katib_listen, "127.0.0.1:3");
  EXPECT_EQ(options.home, "/home/of/it");
  EXPECT_EQ(options.log_bytes, int64_t{3} << 30);
  EXPECT_EQ(options.requests_per_second, 7);
  EXPECT_EQ(options.connections_per_address, 5);
  EXPECT_EQ(options.base_path, "/team");
}

TEST(ListenOptionsTest, LimitsHaveDefaultsAndZeroTakesThemAway) {
  const LocalSession session;
  const service::ServerOptions defaults = ServerOptionsOf({}, session);
  EXPECT_EQ(defaults.log_bytes, int64_t{10} << 30);
  EXPECT_EQ(defaults.requests_per_second, 2000);
  EXPECT_EQ(defaults.connections_per_address, 2000);
  ListenOptions none;
  none.rate = none.log_space = none.connections = 0;
  const service::ServerOptions unlimited = ServerOptionsOf(none, session);
  EXPECT_EQ(unlimited.log_bytes, 0);
  EXPECT_EQ(unlimited.requests_per_second, 0);
  EXPECT_EQ(unlimited.connections_per_address, 0);
}

TEST(ListenOptionsTest, ABasePathIsOneThatProxiesWriteAlike) {
  ListenOptions given;
  for (const char* good : {"", "/shirabe", "/team-a/tuning_1/x.y~z"}) {
    given.base_path = good;
    EXPECT_TRUE(CheckListenOptions(given).ok()) << good;
  }
  for (const char* bad : {"/", "shirabe", "/a/", "/a//b", "/..", "/a/../b", "/a b", "/a?b", "/%61",
                          "/a\r\nSet-Cookie:x", "//evil.example"}) {
    given.base_path = bad;
    EXPECT_FALSE(CheckListenOptions(given).ok()) << bad;
  }
  given.base_path = "/" + std::string(300, 'a');
  EXPECT_FALSE(CheckListenOptions(given).ok());
}

}  // namespace
}  // namespace shirabe::cmd
