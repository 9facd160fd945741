// Notifications against a real receiver, a Python program that checks signatures: one that takes
// them, fails, is slow, redirects, answers without end, and is gone and comes back; with the server
// killed in between. What it received is in received.jsonl, each request in requests.jsonl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/integration/cli.h"
#include "tests/integration/webhook_receiver.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {
namespace {

using ::testing::HasSubstr;

class NotificationsTest : public testing::Test {
 protected:
  void SetUp() override {
    receiver_.Start();
    endpoints_ = cli_.Write(
        "endpoints.yaml",
        absl::StrCat("endpoints:\n- {name: team, url: 'http://127.0.0.1:", receiver_.port(),
                     "/hook', secretFile: ", receiver_.secret_file(),
                     ", namespaces: [default], allowPrivateAddresses: true}\n"));
  }

  // Trials whose loss falls with their number, so that each is an improvement.
  std::string SpecOf(const std::string& name, int trials) {
    const std::string script = cli_.Write(
        "trial.sh", "n=${SHIRABE_TRIAL##*-}\nawk -v n=\"$n\" 'BEGIN {print \"loss=\" 1 / n}'\n");
    return cli_.Write(
        name + ".yaml",
        Yaml({.name = name,
              .parallel = 1,
              .trials = trials,
              .container = ScriptCommand(script),
              .more = "shirabe: {notifications: [{\"on\": [Succeeded, Failed, Improved, "
                      "BudgetThreshold], webhook: {endpoint: team}}]}"}));
  }
  nlohmann::json StatusOf(const std::string& name) {
    const auto json = cli_.Json({"get", "experiment", name, "-o", "json"});
    const auto list = json.value("/status/shirabe/notifications"_json_pointer, nlohmann::json());
    return list.is_array() && !list.empty() ? list[0] : nlohmann::json::object();
  }
  std::unique_ptr<Running> Serve() {
    const std::string ready = cli_.Path("ready" + std::to_string(++servers_));
    auto server = cli_.Start({"serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
                              "--ready-file", ready, "--notifications", endpoints_});
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server->Err();
    return server;
  }
  void ExpectAllInOrder(size_t trials) const {
    const auto received = receiver_.Received();
    ASSERT_EQ(received.size(), trials + 1);
    for (size_t i = 0; i < trials; ++i) {
      EXPECT_EQ(received[i]["type"], "Improved");
      EXPECT_EQ(received[i]["best"]["trial"], absl::StrCat("told-", i + 1));
    }
    EXPECT_EQ(received[trials]["type"], "Succeeded");
  }

  Cli cli_;
  WebhookReceiver receiver_{cli_.Path("receiver")};
  std::string endpoints_;
  int servers_ = 0;
};

TEST_F(NotificationsTest, ARunTellsWhatBecameOfIt) {
  const auto run = cli_.Run({"run", "-f", SpecOf("told", 3), "--notifications", endpoints_});
  ASSERT_EQ(run.code, 0) << run.err;
  ExpectAllInOrder(3);
  for (const auto& request : receiver_.Requests()) {
    EXPECT_TRUE(request["signed"].get<bool>()) << request;
    EXPECT_EQ(request["path"], "/hook");
    EXPECT_EQ(request["id"], request["body"]["id"]);
  }
  EXPECT_EQ(receiver_.Requests().size(), 4u) << "nothing was sent twice";
  EXPECT_EQ(StatusOf("told").value("delivered", 0), 4);
  const auto described = cli_.Run({"describe", "told"});
  EXPECT_THAT(described.out, HasSubstr("Notifications:"));
  EXPECT_THAT(described.out, testing::ContainsRegex("team +4 +0 +0"));
  const auto events = cli_.Run({"events", "told"});
  EXPECT_THAT(events.out, HasSubstr("NotificationDelivered"));
  EXPECT_THAT(events.out, HasSubstr("Succeeded (4) to team"));
}

TEST_F(NotificationsTest, AServerTellsAgainWhatFailed) {
  receiver_.SetMode("fail");
  const auto server = Serve();
  ASSERT_EQ(cli_.Run({"apply", "-f", SpecOf("told", 2)}).code, 0);
  ASSERT_TRUE(Eventually([&] { return receiver_.Requests().size() >= 2; })) << server->Err();
  EXPECT_EQ(StatusOf("told").value("error", ""), "the endpoint answered HTTP 500");
  receiver_.SetMode("ok");
  ASSERT_TRUE(Eventually([&] { return receiver_.Received().size() == 3; })) << server->Err();
  ExpectAllInOrder(2);
}

TEST_F(NotificationsTest, ARedirectIsNotFollowedAndAnEndlessAnswerIsNotRead) {
  const auto server = Serve();
  receiver_.SetMode("redirect");
  ASSERT_EQ(cli_.Run({"apply", "-f", SpecOf("told", 1)}).code, 0);
  ASSERT_TRUE(Eventually([&] { return StatusOf("told").value("attempts", 0) >= 1; }));
  EXPECT_EQ(StatusOf("told").value("error", ""), "the endpoint answered HTTP 307");
  receiver_.SetMode("endless");
  ASSERT_TRUE(Eventually([&] {
    return StatusOf("told").value("error", "") == "the endpoint answered with too much";
  })) << StatusOf("told");
  receiver_.SetMode("ok");
  ASSERT_TRUE(Eventually([&] { return receiver_.Received().size() == 2; })) << server->Err();
  for (const auto& request : receiver_.Requests()) EXPECT_EQ(request["path"], "/hook");
}

// It is asked again once it has had its time, and meanwhile the search goes on.
TEST_F(NotificationsTest, ASlowReceiverHoldsUpNoTrial) {
  receiver_.SetMode("slow");
  const auto server = Serve();
  ASSERT_EQ(cli_.Run({"apply", "-f", SpecOf("told", 3)}).code, 0);
  ASSERT_TRUE(Eventually([&] { return receiver_.Requests().size() == 1; })) << server->Err();
  receiver_.SetMode("ok");
  EXPECT_EQ(cli_.Run({"wait", "told", "--timeout", "60s"}).code, 0);
  EXPECT_TRUE(receiver_.Received().empty()) << "it still waits for the first answer";
  ASSERT_TRUE(Eventually([&] { return receiver_.Received().size() == 4; })) << server->Err();
  ExpectAllInOrder(3);
  EXPECT_THAT(cli_.Run({"events", "told"}).out, HasSubstr("did not answer in time"));
}

TEST_F(NotificationsTest, AReceiverThatIsGoneHoldsUpNothingAndIsToldOnceItIsBack) {
  receiver_.Stop();
  const auto run = cli_.Run({"run", "-f", SpecOf("told", 2), "--notifications", endpoints_});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("3 notifications for team are not delivered yet"));
  receiver_.Start();
  const auto server = Serve();
  ASSERT_TRUE(Eventually([&] { return receiver_.Received().size() == 3; })) << server->Err();
  ExpectAllInOrder(2);
}

TEST_F(NotificationsTest, NothingIsLostWhereTheServerIsKilledAgainAndAgain) {
  constexpr int kTold = 8;
  auto server = Serve();
  ASSERT_EQ(cli_.Run({"apply", "-f", SpecOf("told", kTold)}).code, 0);
  for (size_t seen = 1; seen <= kTold; seen += 2) {
    ASSERT_TRUE(Eventually([&] { return receiver_.Received().size() >= seen; })) << server->Err();
    server->Signal(SIGKILL);
    server->Wait();
    server = Serve();
  }
  ASSERT_TRUE(Eventually([&] { return receiver_.Received().size() == kTold + 1; }))
      << server->Err();
  ExpectAllInOrder(kTold);
  ASSERT_TRUE(Eventually([&] { return StatusOf("told").value("pending", 1) == 0; }));
}

TEST_F(NotificationsTest, SlacksBodyIsOneText) {
  endpoints_ = cli_.Write(
      "endpoints.yaml",
      absl::StrCat("endpoints:\n- {name: team, urlFile: ",
                   cli_.Write("url", absl::StrCat("http://127.0.0.1:", receiver_.port(), "/T0/B0")),
                   ", format: slack, namespaces: ['*'], "
                   "allowPrivateAddresses: true}\n"));
  receiver_.SetMode("slack");
  ASSERT_EQ(cli_.Run({"run", "-f", SpecOf("told", 1), "--notifications", endpoints_}).code, 0);
  const auto requests = receiver_.Requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0]["path"], "/T0/B0");
  EXPECT_THAT(requests[0]["body"]["text"].get<std::string>(),
              HasSubstr("Experiment default/told: Improved. trial told-1 is the best so far"));
}

TEST_F(NotificationsTest, AnEndpointThatIsNotTheAdministratorsIsRefused) {
  const auto without = cli_.Run({"run", "-f", SpecOf("told", 1)});
  EXPECT_EQ(without.code, 5) << without.err;
  EXPECT_THAT(without.err, HasSubstr("spec.shirabe.notifications[0].webhook.endpoint"));
  EXPECT_THAT(without.err, HasSubstr("--notifications FILE"));
  const auto missing = cli_.Run({"run", "-f", SpecOf("told", 1), "--notifications", "/nowhere"});
  EXPECT_NE(missing.code, 0);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace shirabe::cmd
