// Who we are to a server: certificates, tokens that are rotated, plugins; and whom we trust.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "kube/api_client.h"
#include "kube/credentials.h"
#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {
namespace {

using testing::HasSubstr;
using testing::Not;

class Folder : public testing::Test {
 protected:
  Folder() { std::filesystem::create_directories(home_); }
  ~Folder() override { std::filesystem::remove_all(home_); }

  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_EQ(WriteFileAtomic(home_ + "/" + name, text), absl::OkStatus());
    return home_ + "/" + name;
  }
  std::string Program(const std::string& name, const std::string& body) const {
    const std::string path = Write(name, "#!/bin/sh\n" + body);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  std::string Read(const std::string& name) const {
    const auto text = ReadFile(home_ + "/" + name);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
  static Status Ask(const Config& config) {
    ClientOptions options;
    options.tries = 2;
    options.backoff = absl::Milliseconds(1);
    auto client = Client::Create(config, RealClock(), options);
    return client.ok() ? (*client)->GetPath("/version").status() : client.status();
  }

  const std::string home_ =
      absl::StrCat(testing::TempDir(), "kube-", getpid(), "-",
                   testing::UnitTest::GetInstance()->current_test_info()->name());
};

// ---- tokens ------------------------------------------------------------------------------------

// A server that lets in whoever sends this header.
class TokenTest : public Folder {
 protected:
  TokenTest()
      : server_([this](FakeExchange& exchange) {
          const auto& headers = exchange.request().headers;
          const auto sent = headers.find("authorization");
          const std::lock_guard lock(mutex_);
          last_ = sent == headers.end() ? "" : sent->second;
          if (last_ == wanted_) return exchange.Reply(200, "{}");
          exchange.Reply(401, StatusText(401, "Unauthorized", "Unauthorized"));
        }) {}

  void Want(const std::string& header) {
    const std::lock_guard lock(mutex_);
    wanted_ = header;
  }
  // Prints a credential with the next token, token-1 first, and counts its runs.
  Config WithPlugin(const std::string& expires) const {
    Config config = server_.config();
    constexpr char kPrint[] = R"sh(
echo run >>runs
cat <<END
{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status":
 {"token": "token-$(wc -l <runs | tr -d ' ')")sh";
    config.exec.command =
        Program("plugin", absl::StrCat("cd ", home_, kPrint, expires, "}}\nEND\n"));
    config.exec.api_version = "client.authentication.k8s.io/v1";
    return config;
  }

  std::mutex mutex_;
  std::string wanted_, last_;
  FakeApiServer server_;
};

TEST_F(TokenTest, AreSent) {
  Config config = server_.config();
  Want("");
  EXPECT_EQ(Ask(config), absl::OkStatus());
  config.username = "me";
  config.password = "pass";
  Want("Basic bWU6cGFzcw==");
  EXPECT_EQ(Ask(config), absl::OkStatus());
  config.token = " t0k \n";
  Want("Bearer t0k");
  EXPECT_EQ(Ask(config), absl::OkStatus());
  config.token = "bad\r\nX-Evil: 1";
  const Status bad = Ask(config);
  EXPECT_TRUE(absl::IsPermissionDenied(bad)) << bad;
  EXPECT_THAT(Message(bad), Not(HasSubstr("Evil")));
}

TEST_F(TokenTest, AreReadAgainWhenTheirFileChanges) {
  Config config = server_.config();
  config.token_file = Write("token", "old\n");
  config.token = "unused";
  Want("Bearer old");
  auto client = Client::Create(config, RealClock());
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE((*client)->GetPath("/version").ok());
  Write("token", "newer\n");
  Want("Bearer newer");
  EXPECT_TRUE((*client)->GetPath("/version").ok());
  EXPECT_EQ(server_.requests().size(), 2u);
  // In the middle of an exchange of files the last one is still good.
  std::filesystem::remove(home_ + "/token");
  EXPECT_TRUE((*client)->GetPath("/version").ok());
}

// Else a Job would seem to be gone when only our token is.
TEST_F(TokenTest, ThatAreMissingAreNoObjectThatIsMissing) {
  Config config = server_.config();
  config.token_file = home_ + "/none";
  EXPECT_TRUE(absl::IsPermissionDenied(Ask(config))) << Ask(config);
  config.token_file = "";
  config.exec.command = "no-such-plugin-anywhere";
  EXPECT_TRUE(absl::IsPermissionDenied(Ask(config))) << Ask(config);
  EXPECT_EQ(server_.requests().size(), 0u);
}

TEST_F(TokenTest, ThatAreRefusedAreRefused) {
  Config config = server_.config();
  config.token = "wrong-secret";
  Want("Bearer right");
  const Status refused = Ask(config);
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(Message(refused), Not(HasSubstr("wrong-secret")));
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(TokenTest, OfAPluginAreKept) {
  const auto client = Client::Create(WithPlugin(""), RealClock());
  ASSERT_TRUE(client.ok());
  Want("Bearer token-1");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((*client)->GetPath("/version").ok());
  // Refused: the plugin is asked again, once.
  Want("Bearer token-2");
  EXPECT_TRUE((*client)->GetPath("/version").ok());
  Want("Bearer no-such-token");
  EXPECT_TRUE(absl::IsPermissionDenied((*client)->GetPath("/version").status()));
  EXPECT_EQ(Read("runs"), "run\nrun\nrun\n");
}

TEST_F(TokenTest, OfAPluginAreRenewedBeforeTheyExpire) {
  ManualClock clock(absl::FromUnixSeconds(1'700'000'000));  // 2023-11-14T22:13:20Z
  const auto client =
      Client::Create(WithPlugin(R"(, "expirationTimestamp": "2023-11-14T22:23:20Z")"), &clock);
  ASSERT_TRUE(client.ok());
  Want("Bearer token-1");
  EXPECT_TRUE((*client)->GetPath("/version").ok());
  clock.Advance(absl::Minutes(9));
  EXPECT_TRUE((*client)->GetPath("/version").ok());
  clock.Advance(absl::Seconds(55));
  Want("Bearer token-2");
  EXPECT_TRUE((*client)->GetPath("/version").ok());
}

// ---- plugins -----------------------------------------------------------------------------------

using PluginTest = Folder;

TEST_F(PluginTest, IsToldOfTheClusterAndRunWithoutAShell) {
  Config config{.server = "https://h:1", .ca = "CA"};
  const std::string body = absl::StrCat(R"sh(printf '%s' "$KUBERNETES_EXEC_INFO" >)sh", home_,
                                        R"sh(/info
printf '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1",
"status": {"token": "%s-%s-%s"}}' "$1" "$2" "$REGION")sh");
  config.exec = {.command = Program("plugin", body),
                 .args = {"a;b", "$(c)"},
                 .env = {{"REGION", "eu"}},
                 .api_version = "client.authentication.k8s.io/v1beta1",
                 .provide_cluster_info = true};
  const auto credential = RunExecPlugin(config, RealClock());
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "a;b-$(c)-eu");
  EXPECT_EQ(credential->expires, absl::InfiniteFuture());
  const Json info = Json::parse(Read("info"));
  EXPECT_EQ(Text(info, {"spec", "cluster", "server"}), "https://h:1");
  EXPECT_EQ(Text(info, {"spec", "cluster", "certificate-authority-data"}), "Q0E=");
}

TEST_F(PluginTest, SaysWhyThereIsNone) {
  const std::string head = R"(echo '{"kind": "ExecCredential", "apiVersion":)";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"echo 'run aws sso login' >&2; exit 3", "ended with exit code 3: run aws sso login"},
      {"kill -9 $$", "was ended by signal 9"},
      {"echo nonsense", "printed no ExecCredential"},
      {head + R"( "v2"}')", "another version"},
      {head + R"( "client.authentication.k8s.io/v1", "status": {}}')", "neither a token nor"},
      {head + R"( "client.authentication.k8s.io/v1", "status": {"token": "secret",
          "expirationTimestamp": "soon"}}')",
       "is not a time: soon"},
      {"yes", "prints without end"},
      {"sleep 60", "does not end"},
      {"exec >/dev/null 2>&1; sleep 60", "does not end"},
  };
  for (const auto& [body, words] : table) {
    Config config;
    config.exec.command = Program("plugin", body);
    config.exec.api_version = "client.authentication.k8s.io/v1";
    const Status said = RunExecPlugin(config, RealClock(), absl::Seconds(1)).status();
    EXPECT_THAT(Message(said), HasSubstr(words)) << body;
    EXPECT_THAT(Message(said), HasSubstr("user.exec.command " + config.exec.command));
    EXPECT_THAT(Message(said), Not(HasSubstr("secret")));
  }
  Config config;
  config.exec.command = "no-such-plugin-anywhere";
  const Status missing = RunExecPlugin(config, RealClock()).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
}

// ---- TLS ---------------------------------------------------------------------------------------

// Certificates made by the openssl tool.
class TlsTest : public Folder {
 protected:
  void SetUp() override {
    if (system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no openssl tool";
    Make("server", "-x509 -days 2 -addext subjectAltName=IP:127.0.0.1,DNS:api.example.org");
    Make("stranger", "-x509 -days 2 -addext subjectAltName=IP:127.0.0.9");
    Make("client", "-x509 -days 2");
  }
  void Make(const std::string& name, const std::string& kind) const {
    const std::string command = absl::StrCat(
        "cd ", home_,
        " && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=", name,
        " -keyout ", name, ".key -out ", name, ".pem ", kind, " >log 2>&1");
    ASSERT_EQ(system(command.c_str()), 0) << command;
  }
  std::unique_ptr<FakeApiServer> Serve(const std::string& name, const std::string& client = "") {
    return std::make_unique<FakeApiServer>(
        [](FakeExchange& exchange) { exchange.Reply(200, "{}"); },
        FakeApiServer::Tls{Read(name + ".pem"), Read(name + ".key"),
                           client.empty() ? "" : Read(client + ".pem")});
  }
};

TEST_F(TlsTest, TrustsTheAuthorityAndTheName) {
  const auto server = Serve("server");
  Config config = server->config();
  config.ca = Read("server.pem");
  EXPECT_EQ(Ask(config), absl::OkStatus());  // by address
  config.server_name = "api.example.org";
  EXPECT_EQ(Ask(config), absl::OkStatus());
  config.server_name = "other.example.org";
  const Status other = Ask(config);
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(Message(other), HasSubstr("tls-server-name"));
}

TEST_F(TlsTest, TrustsNobodyElse) {
  const auto server = Serve("server");
  Config config = server->config();
  config.ca = Read("stranger.pem");
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(config)));
  config.ca = "";  // the system's authorities
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(config)));
  const auto stranger = Serve("stranger");  // of another address
  config = stranger->config();
  config.ca = Read("stranger.pem");
  EXPECT_TRUE(absl::IsFailedPrecondition(Ask(config)));
  config.insecure = true;
  EXPECT_EQ(Ask(config), absl::OkStatus());
}

TEST_F(TlsTest, ShowsItsCertificate) {
  const auto server = Serve("server", "client");
  Config config = server->config();
  config.ca = Read("server.pem");
  EXPECT_FALSE(Ask(config).ok());
  config.certificate = Read("client.pem");
  config.key = Read("client.key");
  EXPECT_EQ(Ask(config), absl::OkStatus());
}

TEST_F(TlsTest, ShowsTheCertificateOfAPlugin) {
  const auto server = Serve("server", "client");
  Config config = server->config();
  config.ca = Read("server.pem");
  const Json credential = {
      {"kind", "ExecCredential"},
      {"apiVersion", "client.authentication.k8s.io/v1"},
      {"status",
       {{"clientCertificateData", Read("client.pem")}, {"clientKeyData", Read("client.key")}}}};
  config.exec.command = Program("plugin", "cat " + Write("credential", Dump(credential)));
  config.exec.api_version = "client.authentication.k8s.io/v1";
  EXPECT_EQ(Ask(config), absl::OkStatus());
}

TEST_F(TlsTest, RefusesWhatIsNoCertificateWithoutRepeatingIt) {
  Config config{.server = "https://127.0.0.1:1"};
  config.certificate = Read("client.pem");
  config.key = "hunter2";
  const Status key = Client::Create(config, RealClock()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(key)) << key;
  EXPECT_THAT(Message(key), HasSubstr("user.client-key"));
  EXPECT_THAT(Message(key), Not(HasSubstr("hunter2")));
  config.key = Read("server.key");  // of another certificate
  EXPECT_THAT(Message(Client::Create(config, RealClock()).status()), HasSubstr("user.client-key"));
  config = {.server = "https://127.0.0.1:1", .ca = "nonsense"};
  EXPECT_THAT(Message(Client::Create(config, RealClock()).status()),
              HasSubstr("cluster.certificate-authority"));
}

}  // namespace
}  // namespace shirabe::kube
