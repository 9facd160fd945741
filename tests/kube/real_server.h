// A real API server for a test: the one of $SHIRABE_TEST_KUBECONFIG, which tests/cluster/run.sh
// sets, with a namespace of the test's own. Skipped where there is none.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kube/api_client.h"

namespace shirabe::kube {

inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline const Resource kPods{"", "v1", "pods", "Pod"};
inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};

class RealServer : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("SHIRABE_TEST_KUBECONFIG");
    if (path == nullptr) {
      GTEST_SKIP() << "there is no cluster here: tests/cluster/run.sh brings one";
    }
    const auto config = LoadKubeconfig(path, "");
    ASSERT_TRUE(config.ok()) << config.status();
    config_ = *config;
    client_ = Make();
    const auto made = client_->Create(
        kNamespaces,
        {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", namespace_}}}});
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void TearDown() override {
    if (client_ != nullptr) (void)client_->Delete({kNamespaces, "", namespace_}, {});
  }

  std::unique_ptr<Client> Make(const ClientOptions& options = {}) {
    auto client = Client::Create(config_, RealClock(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  Json Map(const std::string& name, const std::string& value) const {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"namespace", namespace_}, {"name", name}, {"labels", {{"t", "k1"}}}}},
            {"data", {{"value", value}}}};
  }
  Ref At(const std::string& name) const { return {kConfigMaps, namespace_, name}; }
  Query Maps() const { return {kConfigMaps, namespace_, "t=k1", ""}; }

  // One for each test: what is deleted is there for a while.
  const std::string namespace_ = absl::AsciiStrToLower(
      absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "-", getpid()));
  Config config_;
  std::unique_ptr<Client> client_;
};

}  // namespace shirabe::kube
