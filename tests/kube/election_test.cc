// Leader election over a fake lease, by clocks that a test moves.
#include "kube/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kube/await.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_objects.h"

namespace shirabe::kube {
namespace {

constexpr char kPath[] = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/shirabe";

class ElectionTest : public testing::Test {
 protected:
  ElectionTest() : server_([this](FakeExchange& exchange) { Handle(exchange); }) {
    ClientOptions options;
    options.tries = 1;
    options.answer = absl::Seconds(5);
    auto client = Client::Create(server_.config(), RealClock(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  void Handle(FakeExchange& exchange) {
    if (broken_) return exchange.Reply(500, StatusText(500, "InternalError", "broken"));
    objects_.Handle(exchange);
  }

  std::unique_ptr<Election> Stand(const std::string& identity, Clock* clock) {
    return Election::Start({.client = client_.get(),
                            .clock = clock,
                            .namespace_name = "ns",
                            .name = "shirabe",
                            .identity = identity,
                            .retry = absl::Milliseconds(10)});
  }
  // Until the candidates have looked at the lease some times more.
  void LetThemLook() {
    const int before = server_.Count("GET");
    ASSERT_TRUE(Await([&] { return server_.Count("GET") >= before + 8; }));
  }

  FakeObjects objects_;
  std::atomic<bool> broken_ = false;
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
  ManualClock one_clock_{absl::FromUnixSeconds(1'000'000'000)};
  ManualClock two_clock_{absl::FromUnixSeconds(2'000'000'000)};  // decades apart, and no matter
};

TEST_F(ElectionTest, TheFirstLeads) {
  const auto one = Stand("one", &one_clock_);
  ASSERT_TRUE(one->Await(absl::Seconds(20)));
  const auto two = Stand("two", &two_clock_);
  LetThemLook();
  EXPECT_TRUE(one->leads());
  EXPECT_FALSE(two->leads());
  EXPECT_EQ(two->holder(), "one");
  EXPECT_EQ(two->transitions(), 1);
  EXPECT_EQ(two->LastError(), "");
}

TEST_F(ElectionTest, WhatIsGivenUpIsTakenAtOnce) {
  auto one = Stand("one", &one_clock_);
  ASSERT_TRUE(one->Await(absl::Seconds(20)));
  const auto two = Stand("two", &two_clock_);
  one.reset();
  EXPECT_TRUE(two->Await(absl::Seconds(20)));
  EXPECT_EQ(two->transitions(), 2);
}

// A leader that is renewed is left alone however much time passes by the other's clock.
TEST_F(ElectionTest, ARenewedLeaseIsNotTaken) {
  const auto one = Stand("one", &one_clock_);
  ASSERT_TRUE(one->Await(absl::Seconds(20)));
  const auto two = Stand("two", &two_clock_);
  for (int i = 0; i < 5; ++i) {
    LetThemLook();
    one_clock_.Advance(absl::Seconds(9));
    LetThemLook();
    two_clock_.Advance(absl::Seconds(9));
  }
  LetThemLook();
  EXPECT_TRUE(one->leads());
  EXPECT_FALSE(two->leads());
}

// The leader hangs (SIGSTOP, a suspended machine): it knows as soon as it runs again.
TEST_F(ElectionTest, ALeaderThatCannotRenewLeadsNoMore) {
  const auto one = Stand("one", &one_clock_);
  ASSERT_TRUE(one->Await(absl::Seconds(20)));
  broken_ = true;
  one_clock_.Advance(absl::Seconds(11));
  EXPECT_FALSE(one->leads());
  EXPECT_TRUE(Await([&] { return !one->LastError().empty(); }));
  broken_ = false;
  EXPECT_TRUE(one->Await(absl::Seconds(20)));  // nobody has taken it meanwhile
}

TEST_F(ElectionTest, ALeaseThatStandsStillIsTaken) {
  const Json patch = {{"apiVersion", "coordination.k8s.io/v1"},
                      {"kind", "Lease"},
                      {"metadata", {{"namespace", "ns"}, {"name", "shirabe"}}},
                      {"spec", {{"holderIdentity", "gone"}, {"leaseDurationSeconds", 30}}}};
  const Resource leases{"coordination.k8s.io", "v1", "leases", "Lease"};
  ASSERT_TRUE(client_->Create(leases, patch).ok());
  const auto two = Stand("two", &two_clock_);
  ASSERT_TRUE(Await([&] { return two->holder() == "gone"; }));
  two_clock_.Advance(absl::Seconds(29));
  LetThemLook();
  EXPECT_FALSE(two->leads());
  two_clock_.Advance(absl::Seconds(2));
  EXPECT_TRUE(two->Await(absl::Seconds(20)));
  EXPECT_EQ(two->holder(), "two");
}

TEST_F(ElectionTest, OfTwoWhoTryOneIsRefused) {
  std::vector<std::unique_ptr<Election>> candidates;
  for (const char* name : {"a", "b", "c", "d"}) candidates.push_back(Stand(name, RealClock()));
  const auto leaders = [&] {
    return std::count_if(candidates.begin(), candidates.end(),
                         [](const auto& one) { return one->leads(); });
  };
  ASSERT_TRUE(Await([&] { return leaders() > 0; }));
  LetThemLook();
  EXPECT_EQ(leaders(), 1);
  const auto lease = client_->GetPath(kPath);
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(Number(*lease, {"spec", "leaseTransitions"}), 1);
}

// What was decided as the leader waits for its second try; by then another one may lead.
TEST_F(ElectionTest, WhoLeadsNoMoreDoesNotTryToWriteAgain) {
  const auto one = Stand("one", &one_clock_);
  ASSERT_TRUE(one->Await(absl::Seconds(20)));
  ClientOptions options;
  options.backoff = absl::Milliseconds(1);
  options.may_write = [&] {
    const bool leads = one->leads();
    broken_ = true;
    one_clock_.Advance(absl::Seconds(11));
    return leads;
  };
  const auto client = Client::Create(server_.config(), RealClock(), options);
  ASSERT_TRUE(client.ok()) << client.status();
  const Resource jobs{"batch", "v1", "jobs", "Job"};
  const Json job = {{"apiVersion", "batch/v1"},
                    {"kind", "Job"},
                    {"metadata", {{"namespace", "ns"}, {"name", "late"}}}};
  const Status refused = (*client)->Create(jobs, job).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_EQ(server_.Count("POST /apis/batch"), 1);
}

}  // namespace
}  // namespace shirabe::kube
