// What is sent to an endpoint, and where it is not sent at all. A real receiver:
// tests/integration/notifications_test.cc.
#include "notify/webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "notify/endpoints.h"

namespace shirabe::notify {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(SignatureTest, IsTheHmacOfTimestampDotBody) {
  // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
  EXPECT_EQ(Signature("0123456789abcdef", "1700000000", R"({"a":1})"),
            "v1=9eb18f493f8ec135d9eb2dad817c369bb4e9cbfa818657897a7437c1cd8c3a23");
}

std::string SlackText(const nlohmann::json& body) {
  return nlohmann::json::parse(SlackBody(body.dump()))["text"];
}

TEST(SlackBodyTest, SaysWhatHappenedInOneText) {
  const nlohmann::json body = {{"type", "Improved"},
                               {"experiment", {{"namespace", "red"}, {"name", "digits"}}},
                               {"message", "trial digits-3 is the best so far: loss 0.1"}};
  EXPECT_EQ(SlackText(body),
            "Experiment red/digits: Improved. trial digits-3 is the best so far: loss 0.1");
}

TEST(SlackBodyTest, NothingInItIsAMentionOrALink) {
  const nlohmann::json body = {{"type", "Failed"},
                               {"experiment", {{"namespace", "red"}, {"name", "digits"}}},
                               {"message", "<!channel> <http://evil|click> &amp; <@U1>"}};
  EXPECT_THAT(SlackText(body), HasSubstr("&lt;!channel&gt; &lt;http://evil|click&gt; &amp;amp;"));
  EXPECT_THAT(SlackText(body), Not(HasSubstr("<")));
}

TEST(SlackBodyTest, IsShortWhateverTheMessage) {
  std::string accents;
  for (int i = 0; i < 100'000; ++i) accents += "é";
  const nlohmann::json body = {{"message", accents}};
  EXPECT_LT(SlackBody(body.dump()).size(), 7000u);
  EXPECT_EQ(SlackText("no object"), "Experiment /: . ");
  EXPECT_FALSE(SlackBody("not JSON").empty());
}

class WebhookSenderTest : public testing::Test {
 protected:
  WebhookSenderTest() {
    folder_ = testing::TempDir() + "/webhook-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
    std::ofstream(folder_ + "/secret") << "0123456789abcdef";
  }
  ~WebhookSenderTest() override {
    std::filesystem::remove_all(folder_);
    SetEndpoints({}).IgnoreError();
  }
  SendResult SendTo(const std::string& url, bool allow_private) {
    v1::NotificationEndpoints all;
    v1::NotificationEndpoint& entry = *all.add_endpoints();
    entry.set_name("team");
    entry.set_url(url);
    entry.set_secret_file(folder_ + "/secret");
    entry.add_namespaces("red");
    entry.set_allow_private_addresses(allow_private);
    const Status set = SetEndpoints(all);
    EXPECT_TRUE(set.ok()) << set;
    ManualClock clock;
    const auto sender = MakeWebhookSender(&clock);
    return sender->Send({.endpoint = "team", .ns = "red", .id = "u-1", .body = "{}"}, {});
  }

  std::string folder_;
};

TEST_F(WebhookSenderTest, PrivateAddressesAreAskedOnlyWhereTheEntrySaysSo) {
  for (const char* url : {"http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/",
                          "http://10.255.255.1:9/", "http://[::ffff:127.0.0.1]:9/"}) {
    const SendResult refused = SendTo(url, false);
    EXPECT_TRUE(absl::IsPermissionDenied(refused.status)) << url << ": " << refused.status;
    EXPECT_THAT(Message(refused.status), HasSubstr("allowPrivateAddresses"));
  }
  const SendResult allowed = SendTo("http://127.0.0.1:9/", true);
  EXPECT_TRUE(absl::IsUnavailable(allowed.status)) << allowed.status;
}

TEST_F(WebhookSenderTest, MetadataIsNeverAskedAndNoAddressIsTold) {
  for (const char* url : {"http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0:9/",
                          "http://[::ffff:169.254.169.254]/", "http://100.100.100.200/"}) {
    const SendResult refused = SendTo(url, true);
    EXPECT_TRUE(absl::IsPermissionDenied(refused.status)) << url << ": " << refused.status;
    EXPECT_THAT(Message(refused.status), Not(HasSubstr("169.254")));
  }
}

TEST_F(WebhookSenderTest, AnEntryThatIsGoneOrUnreadableIsAnError) {
  v1::NotificationEndpoints all;
  ASSERT_TRUE(SetEndpoints(all).ok());
  ManualClock clock;
  const auto sender = MakeWebhookSender(&clock);
  const SendResult gone = sender->Send({.endpoint = "team", .ns = "red"}, {});
  EXPECT_TRUE(absl::IsNotFound(gone.status)) << gone.status;
  SendTo("http://127.0.0.1:9/", true);
  std::filesystem::remove(folder_ + "/secret");
  const SendResult unread = sender->Send({.endpoint = "team", .ns = "red"}, {});
  EXPECT_TRUE(absl::IsUnavailable(unread.status)) << unread.status;
  EXPECT_THAT(Message(unread.status), Not(HasSubstr(folder_)));
}

}  // namespace
}  // namespace shirabe::notify
