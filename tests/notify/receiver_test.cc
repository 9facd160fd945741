// The sender against a real receiver, a Python program that checks signatures: one that takes what
// it gets, fails, redirects, answers without end, and is gone and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "notify/endpoints.h"
#include "notify/webhook.h"
#include "tests/support/webhook_receiver.h"

namespace shirabe::notify {
namespace {

using ::testing::HasSubstr;

class ReceiverTest : public testing::Test {
 protected:
  ReceiverTest() : receiver_(MakeFolder()) {}
  ~ReceiverTest() override {
    receiver_.Stop();
    SetEndpoints({}).IgnoreError();
    std::filesystem::remove_all(folder_);
  }
  void SetUp() override {
    receiver_.Start();
    v1::NotificationEndpoints all;
    v1::NotificationEndpoint& entry = *all.add_endpoints();
    entry.set_name("team");
    entry.set_url(absl::StrCat("http://127.0.0.1:", receiver_.port(), "/hook"));
    entry.set_secret_file(receiver_.secret_file());
    entry.add_namespaces("red");
    entry.set_allow_private_addresses(true);
    const Status set = SetEndpoints(all);
    ASSERT_TRUE(set.ok()) << set;
    sender_ = MakeWebhookSender(RealClock());
  }

  std::string MakeFolder() {
    folder_ = testing::TempDir() + "/receiver-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
    return folder_;
  }
  Status Send(const std::string& id) {
    const std::string body = absl::StrCat(R"({"id":")", id, R"(","type":"Improved"})");
    return sender_->Send({.endpoint = "team", .ns = "red", .id = id, .body = body}, {}).status;
  }

  std::string folder_;
  cmd::WebhookReceiver receiver_;
  std::unique_ptr<Sender> sender_;
};

TEST_F(ReceiverTest, ItTakesWhatIsSignedAndDropsRepeats) {
  EXPECT_TRUE(Send("u-1").ok());
  EXPECT_TRUE(Send("u-1").ok());
  EXPECT_TRUE(Send("u-2").ok());
  const auto received = receiver_.Received();
  ASSERT_EQ(received.size(), 2u);
  EXPECT_EQ(received[1]["id"], "u-2");
  for (const auto& request : receiver_.Requests()) {
    EXPECT_TRUE(request["signed"].get<bool>()) << request;
    EXPECT_EQ(request["id"], request["body"]["id"]);
    EXPECT_EQ(request["path"], "/hook");
  }
}

TEST_F(ReceiverTest, AnotherSecretIsNotBelieved) {
  std::ofstream(receiver_.secret_file()) << "a secret that is another one";
  EXPECT_THAT(Message(Send("u-1")), HasSubstr("answered HTTP 401"));
  EXPECT_TRUE(receiver_.Received().empty());
}

TEST_F(ReceiverTest, FailuresAreSaidAndNothingIsFollowedOrReadOn) {
  receiver_.SetMode("fail");
  EXPECT_THAT(Message(Send("u-1")), HasSubstr("answered HTTP 500"));
  receiver_.SetMode("redirect");
  EXPECT_THAT(Message(Send("u-1")), HasSubstr("answered HTTP 307"));
  receiver_.SetMode("endless");
  EXPECT_THAT(Message(Send("u-1")), HasSubstr("answered with too much"));
  for (const auto& request : receiver_.Requests()) EXPECT_EQ(request["path"], "/hook");
  EXPECT_EQ(receiver_.Requests().size(), 3u);
}

TEST_F(ReceiverTest, OneThatIsSlowHasItsTime) {
  receiver_.SetMode("slow");
  EXPECT_THAT(Message(Send("u-1")), HasSubstr("did not answer in time"));
}

TEST_F(ReceiverTest, OneThatIsGoneAndBackTakesItThen) {
  receiver_.Stop();
  EXPECT_TRUE(absl::IsUnavailable(Send("u-1")));
  receiver_.Start();
  EXPECT_TRUE(Send("u-1").ok());
  EXPECT_EQ(receiver_.Received().size(), 1u);
}

}  // namespace
}  // namespace shirabe::notify
