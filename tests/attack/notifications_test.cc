// Notifications as a way to reach what a user of a namespace may not: endpoints of others,
// addresses inside, headers of a request; and as a way to fill the server. The receiver is a real
// one.
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"
#include "tests/support/webhook_receiver.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NotificationAttackTest : public AttackTest {
 protected:
  // `red-hook` is red's alone; `inside` is a name that leads to this machine, which its entry does
  // not allow, and `metadata` leads to where clouds keep credentials, though it allows much.
  void ServeEndpoints() {
    receiver_.Start();
    const std::string rest = absl::StrCat(", secretFile: ", receiver_.secret_file(), ", ");
    const std::string port = absl::StrCat(receiver_.port());
    const std::string file =
        cli_.Write("endpoints.yaml",
                   absl::StrCat("endpoints:\n- {name: red-hook, url: 'http://127.0.0.1:", port,
                                "/red'", rest, "namespaces: [red], allowPrivateAddresses: true}\n",
                                "- {name: open, url: 'http://127.0.0.1:", port, "/open'", rest,
                                "namespaces: ['*'], allowPrivateAddresses: true}\n",
                                "- {name: inside, url: 'http://localhost:", port, "/inside'", rest,
                                "namespaces: ['*']}\n",
                                "- {name: metadata, url: 'http://169.254.169.254/latest/meta-data'",
                                rest, "namespaces: ['*'], allowPrivateAddresses: true}\n"));
    Serve({"--notifications", file});
  }

  v1::SubmitRequest Wishing(const std::string& name, const std::vector<std::string>& endpoints) {
    v1::SubmitRequest request;
    v1::Experiment& experiment = *request.mutable_experiment();
    experiment = SmallExperiment({"blue", name});
    v1::ExperimentSpec& spec = *experiment.mutable_spec();
    spec.mutable_algorithm()->set_algorithm_name("random");
    spec.set_max_trial_count(1);
    spec.mutable_shirabe()->set_ask_and_tell(true);
    for (const std::string& endpoint : endpoints) {
      v1::Notification& wish = *spec.mutable_shirabe()->add_notifications();
      wish.mutable_webhook()->set_endpoint(endpoint);
      for (const auto cause : {v1::ON_SUCCEEDED, v1::ON_FAILED, v1::ON_IMPROVED}) {
        wish.add_events(cause);
      }
    }
    return request;
  }
  grpc::Status Submit(const v1::SubmitRequest& request) {
    v1::SubmitReply reply;
    return Shirabe()->SubmitExperiment(As(kBlueToken).get(), request, &reply);
  }
  // Its end is one that is told.
  void End(const std::string& name) {
    const auto reply =
        Http("POST /api/v1/namespaces/blue/experiments/" + name + ":stop", kBlueToken);
    ASSERT_LT(reply.status, 300) << reply.body;
  }
  nlohmann::json Notifications(const std::string& name) {
    const auto reply = Http("GET /api/v1/namespaces/blue/experiments/" + name, kBlueToken);
    const auto json = nlohmann::json::parse(reply.body, nullptr, false);
    if (json.is_discarded()) return nlohmann::json::array();
    return json.value("/status/shirabe/notifications"_json_pointer, nlohmann::json::array());
  }

  cmd::WebhookReceiver receiver_{cli_.Path("receiver")};
};

// attacks: CRD spec.shirabe.notifications.webhook.endpoint
TEST_F(NotificationAttackTest, EndpointsOfOthersAreAsIfTheyWereNotThere) {
  ServeEndpoints();
  const grpc::Status foreign = Submit(Wishing("foreign", {"red-hook"}));
  const grpc::Status unknown = Submit(Wishing("foreign", {"red-hoop"}));
  EXPECT_FALSE(foreign.ok());
  EXPECT_THAT(foreign.error_message(), HasSubstr("there is no endpoint"));
  EXPECT_THAT(foreign.error_message(), Not(HasSubstr("127.0.0.1")));
  std::string same = unknown.error_message();
  same.replace(same.find("red-hoop"), 8, "red-hook");
  EXPECT_EQ(same, foreign.error_message());
  for (const std::string& name :
       {std::string("http://169.254.169.254/"), std::string("open\r\nX: y"), std::string("../open"),
        std::string("OPEN"), std::string(1'000'000, 'a'), std::string("*")}) {
    const grpc::Status refused = Submit(Wishing("hostile", {name}));
    EXPECT_FALSE(refused.ok()) << name.substr(0, 100);
    EXPECT_LT(refused.error_message().size(), 4000u);
  }
  EXPECT_TRUE(receiver_.Requests().empty());
  ExpectAlive();
}

TEST_F(NotificationAttackTest, NoNameLeadsInside) {
  ServeEndpoints();
  ASSERT_TRUE(Submit(Wishing("inside", {"inside", "metadata", "open"})).ok());
  End("inside");
  ASSERT_TRUE(Eventually([&] { return receiver_.Requests().size() == 1; }));
  ASSERT_TRUE(Eventually([&] {
    int refused = 0;
    for (const auto& one : Notifications("inside")) refused += one.value("attempts", 0) > 0;
    return refused == 2;
  })) << Notifications("inside");
  for (const auto& request : receiver_.Requests()) EXPECT_EQ(request["path"], "/open");
  const std::string told = Notifications("inside").dump();
  EXPECT_THAT(told, HasSubstr("allowPrivateAddresses"));
  EXPECT_THAT(told, Not(HasSubstr("169.254.169.254")));
  EXPECT_THAT(told, Not(HasSubstr(receiver_.secret_file())));
  ExpectAlive();
}

TEST_F(NotificationAttackTest, WhatAUserWritesIsNoHeaderAndNoIdentity) {
  ServeEndpoints();
  v1::SubmitRequest request = Wishing("headers", {"open"});
  v1::ObjectMeta& metadata = *request.mutable_experiment()->mutable_metadata();
  metadata.set_uid("u\r\nShirabe-Signature: v1=0\r\n\r\n");
  (*metadata.mutable_labels())["a"] = "b\r\nEvil: yes";
  v1::ShirabeStatus& forged = *request.mutable_experiment()->mutable_status()->mutable_shirabe();
  forged.add_notifications()->set_endpoint("red-hook");
  forged.mutable_notifications(0)->set_pending(1'000'000);
  forged.mutable_notified()->set_made(1'000'000);
  const grpc::Status submitted = Submit(request);
  if (submitted.ok()) {
    End("headers");
    ASSERT_TRUE(Eventually([&] { return receiver_.Requests().size() == 1; }));
    const auto sent = receiver_.Requests()[0];
    EXPECT_TRUE(sent["signed"].get<bool>());
    EXPECT_EQ(sent["id"].get<std::string>().find_first_of("\r\n: "), std::string::npos);
    EXPECT_EQ(sent["body"]["number"], 1);
    EXPECT_EQ(sent["path"], "/open");
  }
  ExpectAlive();
}

TEST_F(NotificationAttackTest, ManyWishesAreRefusedAndLongTextsAreCut) {
  ServeEndpoints();
  EXPECT_FALSE(Submit(Wishing("many", std::vector<std::string>(100'000, "open"))).ok());
  v1::SubmitRequest causes = Wishing("causes", {"open"});
  for (int i = 0; i < 100'000; ++i) {
    causes.mutable_experiment()
        ->mutable_spec()
        ->mutable_shirabe()
        ->mutable_notifications(0)
        ->add_events(v1::ON_FAILED);
  }
  EXPECT_FALSE(Submit(causes).ok());
  causes.mutable_experiment()
      ->mutable_spec()
      ->mutable_shirabe()
      ->mutable_notifications(0)
      ->clear_events();
  causes.mutable_experiment()
      ->mutable_spec()
      ->mutable_shirabe()
      ->mutable_notifications(0)
      ->add_events(static_cast<v1::NotificationCause>(99));
  EXPECT_FALSE(Submit(causes).ok());
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
