// Whose a token is and what he may do, as the API server says it.
#include "kube/token_reviewer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kTokens[] = "POST /apis/authentication.k8s.io/v1/tokenreviews";
constexpr char kRights[] = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";

class ReviewerTest : public testing::Test {
 protected:
  ReviewerTest()
      : server_([this](FakeExchange& exchange) { Answer(exchange); }),
        client_(Client::Create(server_.config(), RealClock(),
                               {.backoff = absl::Milliseconds(1), .tries = 2})
                    .value()),
        reviewer_(client_.get(), &clock_, {.audience = "shirabe"}) {}

  // Ada's token is "a.d.a"; she may list in team.
  void Answer(FakeExchange& exchange) {
    if (broken_) return exchange.Reply(500, "{}");
    const Json asked = Json::parse(exchange.request().body, nullptr, false);
    Json answer = asked;
    if (exchange.request().path.find("tokenreviews") != std::string::npos) {
      EXPECT_EQ(asked["spec"]["audiences"], Json::array({"shirabe"}));
      const bool known = asked["spec"]["token"] == "a.d.a";
      answer["status"] = {{"authenticated", known}};
      if (known) {
        answer["status"]["audiences"] = Json::array({audience_});
        answer["status"]["user"] = {
            {"username", "ada"}, {"uid", "7"}, {"groups", Json::array({"women"})}};
      }
    } else {
      EXPECT_EQ(asked["spec"]["user"], "ada");
      if (asked["spec"].contains("nonResourceAttributes")) {
        EXPECT_FALSE(asked["spec"].contains("resourceAttributes"));
        const Json path = {{"verb", "get"}, {"path", "/metrics"}};
        answer["status"] = {{"allowed", asked["spec"]["nonResourceAttributes"] == path}};
        return exchange.Reply(201, answer.dump());
      }
      const Json& wanted = asked["spec"]["resourceAttributes"];
      EXPECT_EQ(asked["spec"]["groups"], Json::array({"women"}));
      answer["status"] = {
          {"allowed", may_ && wanted["verb"] == "list" && wanted["namespace"] == "team"}};
    }
    exchange.Reply(201, answer.dump());
  }

  static ResourceAttributes Listing(const std::string& ns) {
    return {
        .verb = "list", .group = "kubeflow.org", .resource = "experiments", .namespace_name = ns};
  }

  std::atomic<bool> broken_ = false;
  std::atomic<bool> may_ = true;
  std::string audience_ = "shirabe";
  ManualClock clock_{absl::FromUnixSeconds(100'000)};
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
  TokenReviewer reviewer_;
};

TEST_F(ReviewerTest, SomebodyWhoIsKnownMayDoWhatHeMay) {
  const auto ada = reviewer_.Review("a.d.a", "10.0.0.1");
  ASSERT_TRUE(ada.ok()) << ada.status();
  EXPECT_EQ(ada->name, "ada");
  EXPECT_EQ(reviewer_.Authorize(*ada, Listing("team")), absl::OkStatus());
  const Status other = reviewer_.Authorize(*ada, Listing("other"));
  EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
  EXPECT_THAT(Message(other), AllOf(HasSubstr("ada may not list experiments.kubeflow.org"),
                                    HasSubstr("in namespace other")));
  EXPECT_THAT(Message(reviewer_.Authorize(*ada, Listing(""))), HasSubstr("in all namespaces"));
}

TEST_F(ReviewerTest, APathIsARightOfItsOwn) {
  const auto ada = reviewer_.Review("a.d.a", "10.0.0.1");
  ASSERT_TRUE(ada.ok()) << ada.status();
  EXPECT_TRUE(reviewer_.Authorize(*ada, {.verb = "get", .path = "/metrics"}).ok());
  const Status other = reviewer_.Authorize(*ada, {.verb = "get", .path = "/other"});
  EXPECT_TRUE(absl::IsPermissionDenied(other)) << other;
  EXPECT_THAT(Message(other), HasSubstr("ada may not get /other"));
}

TEST_F(ReviewerTest, AnUnknownTokenIsRefusedWithTheFix) {
  const auto unknown = reviewer_.Review("b.o.b", "10.0.0.1");
  EXPECT_TRUE(absl::IsUnauthenticated(unknown.status())) << unknown.status();
  EXPECT_THAT(Message(unknown.status()), HasSubstr("--audience shirabe"));
  EXPECT_THAT(Message(unknown.status()), testing::Not(HasSubstr("b.o.b")));
}

TEST_F(ReviewerTest, ATokenForAnotherAudienceOpensNothing) {
  audience_ = "https://kubernetes.default.svc";
  EXPECT_TRUE(absl::IsUnauthenticated(reviewer_.Review("a.d.a", "10.0.0.1").status()));
}

TEST_F(ReviewerTest, AnswersAreKeptForAWhileOnly) {
  for (int i = 0; i < 5; ++i) {
    const auto ada = reviewer_.Review("a.d.a", "10.0.0.1");
    ASSERT_TRUE(ada.ok()) << ada.status();
    EXPECT_TRUE(reviewer_.Authorize(*ada, Listing("team")).ok());
    EXPECT_FALSE(reviewer_.Review("b.o.b", "10.0.0.1").ok());
  }
  EXPECT_EQ(server_.Count(kTokens), 2);
  EXPECT_EQ(server_.Count(kRights), 1);
  may_ = false;
  clock_.Advance(absl::Minutes(1));
  EXPECT_FALSE(reviewer_.Authorize(*reviewer_.Review("a.d.a", "10.0.0.1"), Listing("team")).ok());
  EXPECT_EQ(server_.Count(kTokens), 3);
}

TEST_F(ReviewerTest, AServerThatDoesNotAnswerIsAskedAgain) {
  broken_ = true;
  EXPECT_TRUE(absl::IsUnavailable(reviewer_.Review("a.d.a", "10.0.0.1").status()));
  broken_ = false;
  EXPECT_TRUE(reviewer_.Review("a.d.a", "10.0.0.1").ok());
}

TEST_F(ReviewerTest, MadeUpTokensDoNotUseTheServerUp) {
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    refused +=
        absl::IsUnavailable(reviewer_.Review(std::to_string(i), "10.0.0.1").status()) ? 1 : 0;
  }
  EXPECT_EQ(refused, 100);
  EXPECT_EQ(server_.Count(kTokens), 100);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(reviewer_.Review("a.d.a", "10.0.0.1").ok());
}

TEST_F(ReviewerTest, MadeUpTokensOfOneCallerLeaveTheOthersTheirTurns) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(reviewer_.Review(std::to_string(i), "10.0.0.1").ok());
  }
  EXPECT_TRUE(reviewer_.Review("a.d.a", "10.0.0.2").ok());
}

TEST_F(ReviewerTest, MadeUpTokensOfManyCallersAreLimitedInAll) {
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(reviewer_.Review(std::to_string(i), "10.0.0." + std::to_string(i % 100)).ok());
  }
  EXPECT_EQ(server_.Count(kTokens), 400);
}

}  // namespace
}  // namespace shirabe::kube
