// Kubeconfig files, service accounts, and addresses of servers.
#include "kube/cluster_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "kube/resource_path.h"

namespace shirabe::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kFile[] = R"(apiVersion: v1
kind: Config
current-context: work
contexts:
- name: work
  context: {cluster: c, user: u, namespace: team}
- name: bare
  context: {cluster: c}
- name: lost
  context: {cluster: c, user: nobody}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: Q0E=
    tls-server-name: api.example.org
users:
- name: u
  user:
    client-certificate: certs/me.pem
    client-key-data: S0VZ
)";

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() { std::filesystem::create_directories(home_ + "/certs"); }
  ~ConfigTest() override { std::filesystem::remove_all(home_); }

  std::string Write(const std::string& name, const std::string& text) const {
    EXPECT_EQ(WriteFileAtomic(home_ + "/" + name, text), absl::OkStatus());
    return home_ + "/" + name;
  }
  // A file with one user, of whom this is said.
  std::string WithUser(const std::string& fields, const std::string& cluster = "") const {
    return Write("one", absl::StrCat("current-context: x\ncontexts:\n"
                                     "- {name: x, context: {cluster: c, user: u}}\n"
                                     "clusters:\n- name: c\n  cluster:\n"
                                     "    server: https://10.0.0.1\n",
                                     cluster, "users:\n- name: u\n  user:\n", fields));
  }

  const std::string home_ = absl::StrCat(testing::TempDir(), "kube-config-", getpid());
};

TEST_F(ConfigTest, ReadsTheCurrentContext) {
  Write("certs/me.pem", "CERT");
  const auto config = LoadKubeconfig(Write("config", kFile), "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->context, "work");
  EXPECT_EQ(config->namespace_name, "team");
  EXPECT_EQ(config->server, "https://10.0.0.1:6443");
  EXPECT_EQ(config->server_name, "api.example.org");
  EXPECT_EQ(config->ca, "CA");
  EXPECT_EQ(config->certificate, "CERT");  // relative to the kubeconfig
  EXPECT_EQ(config->key, "KEY");
}

TEST_F(ConfigTest, ReadsTheContextThatIsNamed) {
  const std::string path = Write("config", kFile);
  const auto bare = LoadKubeconfig(path, "bare");
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->namespace_name, "default");
  EXPECT_EQ(bare->certificate, "");
  const Status missing = LoadKubeconfig(path, "other").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(Message(missing), HasSubstr("contexts has no \"other\""));
  const Status lost = LoadKubeconfig(path, "lost").status();
  EXPECT_THAT(Message(lost), HasSubstr("users has no \"nobody\""));
}

TEST_F(ConfigTest, MergesFiles) {
  const std::string contexts = Write("a", R"(
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: first}}]
)");
  const std::string rest = Write("b", R"(
current-context: x
clusters: [{name: c, cluster: {server: "http://h:1"}}]
users: [{name: u, user: {token: second}}]
)");
  const auto config = LoadKubeconfig(contexts + ":" + home_ + "/missing:" + rest, "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "http://h:1");
  EXPECT_EQ(config->token, "first");
  EXPECT_TRUE(absl::IsNotFound(LoadKubeconfig(home_ + "/missing", "").status()));
}

TEST_F(ConfigTest, ReadsPlugins) {
  const auto config = LoadKubeconfig(WithUser(R"(
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/plugin
      args: [get-token, --cluster, "a b"]
      env: [{name: REGION, value: eu}]
      provideClusterInfo: true
      interactiveMode: IfAvailable
)"),
                                     "");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->exec.command, home_ + "/bin/plugin");
  EXPECT_THAT(config->exec.args, ElementsAre("get-token", "--cluster", "a b"));
  EXPECT_EQ(config->exec.env.at("REGION"), "eu");
  EXPECT_TRUE(config->exec.provide_cluster_info);
}

TEST_F(ConfigTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"    client-certificate: nowhere.pem\n", "client-certificate cannot be read"},
      {"    client-key-data: '%%%'\n", "client-key-data is not base64"},
      {"    client-key-data: S0VZ\n", "belong together"},
      {"    token: {a: b}\n", "token must be text, not a mapping"},
      {"    auth-provider: {name: gcp}\n", "auth-provider is not supported"},
      {"    as: admin\n", "as is not supported"},
      {"    exec: {apiVersion: client.authentication.k8s.io/v1}\n", "command is missing"},
      {"    exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}\n",
       "update the plugin"},
      {"    exec: {command: x, apiVersion: client.authentication.k8s.io/v1, interactiveMode: "
       "Always}\n",
       "needs a terminal"},
  };
  for (const auto& [user, words] : table) {
    const Status said = LoadKubeconfig(WithUser(user), "").status();
    EXPECT_FALSE(said.ok()) << user;
    EXPECT_THAT(Message(said), HasSubstr(words));
    EXPECT_THAT(Message(said), HasSubstr(home_ + "/one:"));
    EXPECT_THAT(Message(said), Not(HasSubstr("S0VZ")));
  }
  const Status proxy =
      LoadKubeconfig(WithUser("    token: t\n", "    proxy-url: http://p\n"), "").status();
  EXPECT_THAT(Message(proxy), HasSubstr("proxy-url is not supported"));
  EXPECT_THAT(Message(LoadKubeconfig(Write("y", "a: [\n"), "").status()), HasSubstr("/y:"));
  EXPECT_THAT(Message(LoadKubeconfig(Write("e", ""), "").status()),
              HasSubstr("no current-context"));
}

TEST_F(ConfigTest, ReadsAServiceAccount) {
  EXPECT_TRUE(absl::IsNotFound(ServiceAccountConfig(home_, "10.0.0.1", "443").status()));
  Write("token", "secret");
  Write("ca.crt", "CA");
  Write("namespace", "team\n");
  const auto config = ServiceAccountConfig(home_, "fd00::1", "443");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->server, "https://[fd00::1]:443");
  EXPECT_EQ(config->token_file, home_ + "/token");
  EXPECT_EQ(config->ca, "CA");
  EXPECT_EQ(config->namespace_name, "team");
}

TEST(ServerTest, IsParsed) {
  const auto parse = [](const std::string& server, const std::string& name = "") {
    return ParseServer(server, name);
  };
  const auto plain = parse("https://api.example.org");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->Address(), "api.example.org:443");
  EXPECT_EQ(plain->name, "api.example.org");
  const auto prefixed = parse("https://[::1]:6443/clusters/a/", "kubernetes");
  ASSERT_TRUE(prefixed.ok()) << prefixed.status();
  EXPECT_EQ(prefixed->host, "::1");
  EXPECT_EQ(prefixed->Address(), "[::1]:6443");
  EXPECT_EQ(prefixed->prefix, "/clusters/a");
  EXPECT_EQ(prefixed->name, "kubernetes");
  EXPECT_FALSE(parse("http://h")->tls);
  for (const char* bad : {"", "api:6443", "ftp://h", "https://", "https://h:", "https://h:port",
                          "https://[::1", "https://h/a b", "https://h/\r\nX: y"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(parse(bad).status())) << bad;
  }
  const Status secret = parse("https://me:hunter2@h").status();
  EXPECT_THAT(Message(secret), Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace shirabe::kube
