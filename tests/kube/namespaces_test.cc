// Which namespace a name is, while it changes hands and while nobody can be asked.
#include "kube/namespace_cache.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {
namespace {

class NamespacesTest : public testing::Test {
 protected:
  NamespacesTest()
      : server_([this](FakeExchange& exchange) { Answer(exchange); }),
        client_(Client::Create(server_.config(), RealClock(), {.tries = 1}).value()),
        namespaces_(client_.get(), &clock_) {}

  void Answer(FakeExchange& exchange) {
    EXPECT_EQ(exchange.request().path, "/api/v1/namespaces/team");
    const int uid = uid_;
    if (uid < 0) return exchange.Reply(500, StatusText(500, "InternalError", "broken"));
    if (uid == 0) return exchange.Reply(404, StatusText(404, "NotFound", "no such namespace"));
    exchange.Reply(200, Dump({{"metadata", {{"name", "team"}, {"uid", std::to_string(uid)}}}}));
  }
  void Later() { clock_.Advance(absl::Seconds(3)); }

  std::atomic<int> uid_ = 1;  // 0 = there is none, -1 = it cannot be asked
  ManualClock clock_{absl::FromUnixSeconds(1'000'000'000)};
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
  NamespaceCache namespaces_;
};

TEST_F(NamespacesTest, ANameMayBeGivenToAnother) {
  EXPECT_EQ(namespaces_.Uid("team").value(), "1");
  uid_ = 0;
  Later();
  EXPECT_TRUE(absl::IsNotFound(namespaces_.Uid("team").status()));
  uid_ = 2;
  Later();
  EXPECT_EQ(namespaces_.Uid("team").value(), "2");
}

TEST_F(NamespacesTest, ItIsAskedOnceInAWhile) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(namespaces_.Uid("team").ok());
  EXPECT_EQ(server_.Count("GET"), 1);
}

TEST_F(NamespacesTest, WhileNobodyCanBeAskedWhatWasKnownStands) {
  uid_ = -1;
  EXPECT_FALSE(namespaces_.Uid("team").ok());
  uid_ = 1;
  Later();
  EXPECT_EQ(namespaces_.Uid("team").value(), "1");
  uid_ = -1;
  Later();
  EXPECT_EQ(namespaces_.Uid("team").value(), "1");
}

}  // namespace
}  // namespace shirabe::kube
