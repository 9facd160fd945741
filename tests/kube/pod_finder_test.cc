// Whose pod has an address.
#include "kube/namespace_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {
namespace {

using testing::HasSubstr;

constexpr char kPodFinderPods[] = "GET /api/v1/pods";

class PodFinderTest : public testing::Test {
 protected:
  PodFinderTest()
      : server_([this](FakeExchange& exchange) {
          asked_ = exchange.request().query.at("fieldSelector");
          if (broken_) return exchange.Reply(500, "{}");
          exchange.Reply(200, Json({{"kind", "PodList"},
                                    {"metadata", {{"resourceVersion", "1"}}},
                                    {"items", pods_}})
                                  .dump());
        }),
        client_(Client::Create(server_.config(), RealClock(),
                               {.backoff = absl::Milliseconds(1), .tries = 2})
                    .value()),
        finder_(client_.get(), &clock_) {}

  void Add(const std::string& ns, const std::string& address, const std::string& phase,
           bool host = false) {
    Json pod = {{"metadata", {{"name", "p"}, {"namespace", ns}}},
                {"spec", Json::object()},
                {"status", {{"phase", phase}, {"podIP", address}}}};
    if (host) pod["spec"]["hostNetwork"] = true;
    pods_.push_back(pod);
  }

  std::atomic<bool> broken_ = false;
  Json pods_ = Json::array();
  std::string asked_;
  ManualClock clock_{absl::FromUnixSeconds(100'000)};
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
  PodFinder finder_;
};

TEST_F(PodFinderTest, TheNamespaceOfTheRunningPodWithThisAddress) {
  Add("red", "10.0.0.7", "Running");
  Add("blue", "10.0.0.7", "Succeeded");  // had it before
  EXPECT_EQ(finder_.NamespaceOf("10.0.0.7").value_or(""), "red");
  EXPECT_THAT(asked_, HasSubstr("10.0.0.7"));
}

TEST_F(PodFinderTest, WhatIsNoPodsAloneIsRefused) {
  const auto refused = [this](const std::string& address) {
    return absl::IsPermissionDenied(finder_.NamespaceOf(address).status());
  };
  EXPECT_TRUE(refused("10.0.0.8"));
  Add("red", "10.0.0.9", "Running", /*host=*/true);
  EXPECT_TRUE(refused("10.0.0.9"));
  Add("red", "10.0.0.10", "Failed");
  EXPECT_TRUE(refused("10.0.0.10"));
  Add("red", "10.0.0.11", "Running");
  Add("blue", "10.0.0.11", "Running");
  EXPECT_TRUE(refused("10.0.0.11"));
  // A server that does not know the selector, and answers with all pods.
  Add("blue", "10.0.0.12", "Running");
  EXPECT_TRUE(refused("10.0.0.13"));
}

TEST_F(PodFinderTest, WhatIsNoAddressIsNotAskedFor) {
  for (const char* text : {"", "unix:", "10.0.0.7,metadata.namespace=red", "localhost"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(finder_.NamespaceOf(text).status())) << text;
  }
  EXPECT_EQ(server_.Count(kPodFinderPods), 0);
}

TEST_F(PodFinderTest, AnAnswerIsKeptForSeconds) {
  Add("red", "10.0.0.7", "Running");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(finder_.NamespaceOf("10.0.0.7").ok());
  EXPECT_EQ(server_.Count(kPodFinderPods), 1);
  pods_ = Json::array();
  clock_.Advance(absl::Seconds(6));
  EXPECT_FALSE(finder_.NamespaceOf("10.0.0.7").ok());
}

TEST_F(PodFinderTest, AServerThatDoesNotAnswerSaysNothing) {
  broken_ = true;
  EXPECT_TRUE(absl::IsUnavailable(finder_.NamespaceOf("10.0.0.7").status()));
  broken_ = false;
  Add("red", "10.0.0.7", "Running");
  EXPECT_TRUE(finder_.NamespaceOf("10.0.0.7").ok());
}

}  // namespace
}  // namespace shirabe::kube
