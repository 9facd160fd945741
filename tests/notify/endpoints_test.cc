// The administrator's endpoints: what an entry may be, and who may name it.
#include "notify/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace shirabe::notify {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class EndpointsTest : public testing::Test {
 protected:
  EndpointsTest() {
    folder_ = testing::TempDir() + "/endpoints-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
  }
  ~EndpointsTest() override {
    std::filesystem::remove_all(folder_);
    SetEndpoints({}).IgnoreError();
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  v1::NotificationEndpoint Entry(const std::string& name, const std::string& ns) const {
    v1::NotificationEndpoint entry;
    entry.set_name(name);
    entry.set_url("https://hooks.example.org/a");
    entry.set_secret_file(Write("secret", "0123456789abcdef\n"));
    entry.add_namespaces(ns);
    return entry;
  }
  static Status Set(const v1::NotificationEndpoint& entry) {
    v1::NotificationEndpoints all;
    *all.add_endpoints() = entry;
    return SetEndpoints(all);
  }

  std::string folder_;
};

TEST_F(EndpointsTest, AnEntryIsForItsNamespacesAndOthersAreNotToldOfIt) {
  v1::NotificationEndpoints all;
  *all.add_endpoints() = Entry("red-hook", "red");
  *all.add_endpoints() = Entry("anybody", "*");
  ASSERT_TRUE(SetEndpoints(all).ok());
  EXPECT_TRUE(EndpointsAreKnown());
  EXPECT_TRUE(FindEndpoint("red-hook", "red").ok());
  EXPECT_TRUE(FindEndpoint("anybody", "blue").ok());
  const Status foreign = FindEndpoint("red-hook", "blue").status();
  const Status unknown = FindEndpoint("red-hoop", "blue").status();
  EXPECT_TRUE(absl::IsNotFound(foreign));
  EXPECT_EQ(Message(foreign),
            "there is no endpoint \"red-hook\" for namespace blue here: there are anybody");
  EXPECT_EQ(Message(unknown),
            "there is no endpoint \"red-hoop\" for namespace blue here: there are anybody");
}

TEST_F(EndpointsTest, WithoutAnyTheFixIsTheAdministrators) {
  ASSERT_TRUE(SetEndpoints({}).ok());
  EXPECT_THAT(Message(FindEndpoint("team", "red").status()), HasSubstr("--notifications FILE"));
}

TEST_F(EndpointsTest, ABadEntryIsNamedAndItsSecretsAreNot) {
  v1::NotificationEndpoint entry = Entry("team", "*");
  entry.set_url("ftp://user:hunter2@example.org");
  const Status url = Set(entry);
  EXPECT_TRUE(absl::IsInvalidArgument(url)) << url;
  EXPECT_THAT(Message(url), HasSubstr("endpoint team: url: "));
  EXPECT_THAT(Message(url), Not(HasSubstr("hunter2")));

  entry = Entry("team", "*");
  entry.set_secret_file(Write("short", "tooshort"));
  const Status secret = Set(entry);
  EXPECT_TRUE(absl::IsInvalidArgument(secret)) << secret;
  EXPECT_THAT(Message(secret), HasSubstr("endpoint team: secretFile: "));
  EXPECT_THAT(Message(secret), HasSubstr("has 8 bytes"));
  EXPECT_THAT(Message(secret), Not(HasSubstr("tooshort")));

  entry.set_secret_file(folder_ + "/missing");
  EXPECT_THAT(Message(Set(entry)), HasSubstr("endpoint team: secretFile: "));
  entry.set_secret_file(Write("long", std::string(5000, 'x')));
  EXPECT_TRUE(absl::IsInvalidArgument(Set(entry)));
}

TEST_F(EndpointsTest, FilesAreReadAgainEachTime) {
  v1::NotificationEndpoint entry = Entry("slack", "*");
  entry.clear_url();
  entry.set_url_file(Write("url", " https://hooks.example.org/T0/B0/secret \n"));
  ASSERT_TRUE(Set(entry).ok());
  EXPECT_EQ(*UrlOf(entry), "https://hooks.example.org/T0/B0/secret");
  EXPECT_EQ(*SecretOf(entry), "0123456789abcdef");
  Write("secret", "another-secret-of-it");
  EXPECT_EQ(*SecretOf(entry), "another-secret-of-it");
}

TEST_F(EndpointsTest, ANameIsOneLabel) {
  for (const char* good : {"a", "team-slack", "0", "a1"}) {
    EXPECT_TRUE(ValidateEndpointName(good).ok()) << good;
  }
  for (const std::string bad :
       {"", "-a", "a-", "A", "a_b", "a.b", "a/b", "..", "a\nb", "a b", "http://127.0.0.1/"}) {
    EXPECT_FALSE(ValidateEndpointName(bad).ok()) << bad;
  }
  EXPECT_FALSE(ValidateEndpointName(std::string("a\0b", 3)).ok());
  EXPECT_LT(Message(ValidateEndpointName(std::string(1'000'000, 'a'))).size(), 400u);
}

}  // namespace
}  // namespace shirabe::notify
