// What trial/local/status_endpoint.h promises, to programs that behave and to those that do not.
#include "trial/local/status_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/http_wire.h"

namespace shirabe::trial {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMaxBody = 1000;

class StatusEndpointTest : public testing::Test {
 protected:
  StatusEndpointTest() {
    endpoint_->Add("/a", "token-a", [this](const std::string& body) { return Handle("a", body); });
    endpoint_->Add("/b", "token-b", [this](const std::string& body) { return Handle("b", body); });
    const auto port = endpoint_->Listen(0);
    EXPECT_TRUE(port.ok()) << port.status();
    port_ = port.value_or(0);
  }

  service::WireReply Call(const std::string& line, const std::string& token,
                          const std::string& body = "{}") const {
    service::Wire wire(port_);
    wire.Send(service::RequestText(line, token, body));
    return wire.ReadReply();
  }

  std::vector<std::string> Handled() {
    const std::lock_guard lock(mutex_);
    return handled_;
  }

  std::mutex mutex_;
  std::vector<std::string> handled_;
  Status answer_ = absl::OkStatus();
  uint16_t port_ = 0;
  std::unique_ptr<StatusEndpoint> endpoint_ = StatusEndpoint::Create(kMaxBody);

 private:
  Status Handle(const std::string& whose, const std::string& body) {
    const std::lock_guard lock(mutex_);
    handled_.push_back(absl::StrCat(whose, ":", body));
    return answer_;
  }
};

TEST_F(StatusEndpointTest, AReportGoesToTheAttemptOfItsPath) {
  const auto reply = Call("POST /a", "token-a", "one");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "{}");
  EXPECT_EQ(Call("POST /b", "token-b", "two").status, 200);
  EXPECT_THAT(Handled(), ElementsAre("a:one", "b:two"));
}

TEST_F(StatusEndpointTest, AReportMayComeInPieces) {
  const std::string chunked =
      "POST /a HTTP/1.1\r\nAuthorization: Bearer token-a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4\r\nthis\r\n1\r\n \r\n4\r\nthat\r\n0\r\n\r\n";
  for (const std::string& request :
       {service::RequestText("POST /a", "token-a", "this that"), chunked}) {
    service::Wire wire(port_);
    for (const char piece : request) {
      wire.Send(std::string(1, piece));
      absl::SleepFor(absl::Microseconds(200));
    }
    EXPECT_EQ(wire.ReadReply().status, 200);
    service::Wire whole(port_);
    whole.Send(request);
    EXPECT_EQ(whole.ReadReply().status, 200);
  }
  EXPECT_THAT(Handled(), Each("a:this that"));
  EXPECT_THAT(Handled(), SizeIs(4));
}

TEST_F(StatusEndpointTest, OnlyTheTokenOfThatAttemptOpensIt) {
  for (const char* token : {"token-b", "token-", "token-aa", "oken-a", "", "Bearer token-a"}) {
    EXPECT_EQ(Call("POST /a", token).status, 401) << token;
  }
  EXPECT_EQ(Call("POST /c", "token-a").status, 401);
  EXPECT_EQ(Call("POST /a/", "token-a").status, 401);
  EXPECT_EQ(Call("POST /a?x=1", "token-a").status, 401);
  EXPECT_EQ(Call("GET /a", "token-b").status, 401);
  EXPECT_THAT(Handled(), IsEmpty());
}

TEST_F(StatusEndpointTest, WhatIsNoReportIsRefused) {
  EXPECT_EQ(Call("GET /a", "token-a", "").status, 405);
  EXPECT_EQ(Call("DELETE /a", "token-a", "").status, 405);
  EXPECT_EQ(Call("POST /a", "token-a", std::string(kMaxBody + 1, ' ')).status, 413);
  EXPECT_THAT(Handled(), IsEmpty());
  EXPECT_EQ(Call("POST /a", "token-a", std::string(kMaxBody, ' ')).status, 200);
  service::Wire nonsense(port_);
  nonsense.Send("this is not HTTP at all\r\n\r\n");
  EXPECT_TRUE(nonsense.ReadToEnd());
  // More is announced than is sent, or than can be.
  service::Wire endless(port_);
  endless.Send(
      "POST /a HTTP/1.1\r\nAuthorization: Bearer token-a\r\n"
      "Content-Length: 99999999999999999999\r\n\r\n");
  EXPECT_TRUE(endless.ReadToEnd());
  service::Wire header(port_);
  header.Send("POST /a HTTP/1.1\r\nX: " + std::string(1 << 20, 'x'));
  EXPECT_TRUE(header.ReadToEnd());
  EXPECT_EQ(Call("POST /a", "token-a").status, 200);
}

TEST_F(StatusEndpointTest, ErrorsOfTheHandlerAreSaidInWords) {
  answer_ = absl::InvalidArgumentError("metrics[0]: \"quoted\"\n");
  const auto wrong = Call("POST /a", "token-a");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.body, R"({"error": "metrics[0]: \"quoted\"\n"})");
  answer_ = absl::ResourceExhaustedError("the disk is full");
  const auto later = Call("POST /a", "token-a");
  EXPECT_EQ(later.status, 503);
  EXPECT_THAT(later.body, HasSubstr("the disk is full"));
}

TEST_F(StatusEndpointTest, AnAttemptThatHasEndedReportsNothingMore) {
  endpoint_->Remove("/a");
  endpoint_->Remove("/a");
  EXPECT_EQ(Call("POST /a", "token-a").status, 401);
  EXPECT_EQ(Call("POST /b", "token-b").status, 200);
  endpoint_->Add("/a", "token-new", [](const std::string&) { return absl::OkStatus(); });
  EXPECT_EQ(Call("POST /a", "token-a").status, 401);
  EXPECT_EQ(Call("POST /a", "token-new").status, 200);
}

TEST_F(StatusEndpointTest, OneWhoHoldsConnectionsOpenKeepsNoOtherFromReporting) {
  std::deque<service::Wire> held;
  for (int i = 0; i < 3 * kMaxStatusCalls; ++i) {
    held.emplace_back(port_);
    if (i % 2 == 0) held.back().Send("POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\nx");
    if (i % 16 == 0) {
      EXPECT_EQ(Call("POST /b", "token-b").status, 200) << i;
    }
  }
  EXPECT_EQ(Call("POST /b", "token-b").status, 200);
  EXPECT_TRUE(held.front().ReadToEnd()) << "the oldest was not dropped";
}

TEST_F(StatusEndpointTest, ListensAtThePortThatAProgramWasTold) {
  EXPECT_EQ(*endpoint_->Listen(port_), port_) << "it listens there already";
  const auto other = StatusEndpoint::Create(kMaxBody);
  EXPECT_TRUE(absl::IsUnavailable(other->Listen(port_).status())) << "another process has it";
  endpoint_ = nullptr;
  other->Add("/a", "token-a", [](const std::string&) { return absl::OkStatus(); });
  EXPECT_EQ(*other->Listen(port_), port_) << "it is free again";
  EXPECT_EQ(Call("POST /a", "token-a").status, 200);
  const auto more = other->Listen(0);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_NE(*more, port_);
  port_ = *more;
  EXPECT_EQ(Call("POST /a", "token-a").status, 200);
}

TEST_F(StatusEndpointTest, PortsHaveALimit) {
  for (int i = 1; i < kMaxStatusPorts; ++i) EXPECT_TRUE(endpoint_->Listen(0).ok());
  const Status status = endpoint_->Listen(0).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(endpoint_->Listen(port_).ok());
}

}  // namespace
}  // namespace shirabe::trial
