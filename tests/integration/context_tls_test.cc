// A server that asks its callers for a certificate, and users who reach it by a context: as they
// set it up, and as they get it wrong. The certificates are made by the openssl tool; BinaryDir()
// is where the program under test lies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"

namespace shirabe::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ContextTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no openssl tool";
    setenv("XDG_CONFIG_HOME", cli_.Path("config").c_str(), 1);
    Make("ca", "-x509 -days 2");
    Make("server", "-x509 -days 2 -addext subjectAltName=IP:127.0.0.1");
    Make("stranger", "-x509 -days 2");
    Make("me", "");
    Openssl("x509 -req -in me.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out me.crt");
    server_ = cli_.Start({"serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--tls-cert",
                          cli_.Path("server.pem"), "--tls-key", cli_.Path("server.key"),
                          "--client-ca", cli_.Path("ca.pem"), "--ready-file", cli_.Path("ready")});
    ASSERT_TRUE(Eventually([&] { return cli_.Exists("ready"); })) << server_->Err();
    const auto ready = nlohmann::json::parse(ReadFile(cli_.Path("ready")).value_or("{}"));
    address_ = ready.value("grpc", "");
    token_file_ = ready.value("tokenFile", "");
  }
  ~ContextTlsTest() override { unsetenv("XDG_CONFIG_HOME"); }

  void Openssl(const std::string& words) {
    const std::string command = "cd " + cli_.Path("") + " && openssl " + words + " >log 2>&1";
    ASSERT_EQ(system(command.c_str()), 0) << words;
  }
  void Make(const std::string& name, const std::string& kind) {
    Openssl("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name +
            " -keyout " + name + ".key -out " + name + ".pem " + kind);
  }

  // What a user reads who has set up a context with these and asks for the experiments.
  Outcome With(const std::vector<std::string>& certificate) {
    std::vector<std::string> words = {
        "config", "set-context",           "it",           "--server", "tls://" + address_,
        "--ca",   cli_.Path("server.pem"), "--token-file", token_file_};
    words.insert(words.end(), certificate.begin(), certificate.end());
    const Outcome set = cli_.Run(words);
    EXPECT_EQ(set.code, 0) << set.err;
    Outcome outcome = cli_.Run({"--context", "it", "get", "experiments"});
    EXPECT_EQ(cli_.Run({"config", "delete-context", "it"}).code, 0);
    return outcome;
  }
  std::vector<std::string> Pair(const std::string& certificate, const std::string& key) const {
    return {"--client-certificate", cli_.Path(certificate), "--client-key", cli_.Path(key)};
  }

  Cli cli_;
  std::string address_;
  std::string token_file_;
  std::unique_ptr<Running> server_;
};

// Its certificate is one of two days.
TEST_F(ContextTlsTest, TheServersLogSaysThatItsCertificateEnds) {
  EXPECT_THAT(server_->Err(),
              AllOf(HasSubstr("the certificate ends soon"), HasSubstr("server.pem")));
}

// All who can connect can make handshakes fail, as often as they like.
TEST_F(ContextTlsTest, HandshakesThatFailDoNotFillTheLog) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(
        cli_.Run({"get", "experiments", "--server", address_, "--token-file", token_file_}).code,
        0);
  }
  ASSERT_TRUE(
      Eventually([&] { return absl::StrContains(server_->Err(), "gRPC reports an error"); }));
  int lines = 0;
  for (const auto line : absl::StrSplit(server_->Err(), '\n')) {
    EXPECT_FALSE(absl::StrContains(line, "ssl_transport_security.cc")) << line;
    if (!absl::StrContains(line, "gRPC reports an error")) continue;
    ++lines;
    EXPECT_TRUE(nlohmann::json::accept(std::string(line))) << line;
  }
  EXPECT_EQ(lines, 1);
}

TEST_F(ContextTlsTest, ACertificateOfTheContextLetsIn) {
  const Outcome outcome = With(Pair("me.crt", "me.key"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "no experiments in namespace default\n");
}

TEST_F(ContextTlsTest, WithoutOneTheErrorSaysHowToGiveIt) {
  const Outcome outcome = With({});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(address_), HasSubstr("--client-certificate FILE")));
}

TEST_F(ContextTlsTest, OneOfAnotherAuthorityIsNotTrusted) {
  const Outcome outcome = With(Pair("stranger.pem", "stranger.key"));
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("may not trust the certificate"));
}

TEST_F(ContextTlsTest, WhatIsNoPairIsSaidBeforeTheServerIsAsked) {
  const Outcome half = With({"--client-certificate", cli_.Path("me.crt")});
  EXPECT_EQ(half.code, 2);
  EXPECT_THAT(half.err, HasSubstr("go together"));
  const Outcome mixed = With(Pair("me.crt", "ca.key"));
  EXPECT_EQ(mixed.code, 2);
  EXPECT_THAT(mixed.err, AllOf(HasSubstr("me.crt"), HasSubstr("not that of the certificate"),
                               Not(HasSubstr("ssl_transport_security"))));
  cli_.Write("hello.pem", "hello");
  EXPECT_THAT(With(Pair("hello.pem", "me.key")).err, HasSubstr("none in PEM"));
  EXPECT_EQ(With(Pair("nowhere.pem", "me.key")).code, 3);
}

TEST_F(ContextTlsTest, WithoutTlsTheErrorSaysHowToAskForIt) {
  const Outcome outcome =
      cli_.Run({"--server", address_, "--token-file", token_file_, "get", "experiments"});
  EXPECT_EQ(outcome.code, 7);
  EXPECT_THAT(outcome.err, HasSubstr("write tls://" + address_));
}

}  // namespace
}  // namespace shirabe::cmd
