// `shirabe controller` as a process of its own, in front of a real cluster, with a wire between the
// two that a test cuts, holds and slows down. One namespace and one home a test. Skipped where
// SHIRABE_TEST_KUBECONFIG names no cluster; tests/cluster/run.sh does.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/cli.h"
#include "tests/integration/kubernetes_census.h"
#include "tests/kube/fault_proxy.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {

inline const kube::Resource kExperiments{"kubeflow.org", "v1beta1", "experiments", "Experiment"};
inline const kube::Resource kNamespaces{"", "v1", "namespaces", "Namespace", /*namespaced=*/false};

class ControllerCluster : public testing::Test {
 protected:
  void SetUp() override {
    const char* kubeconfig = std::getenv("SHIRABE_TEST_KUBECONFIG");
    if (kubeconfig == nullptr) GTEST_SKIP() << "SHIRABE_TEST_KUBECONFIG names no cluster";
    const std::string apply = absl::StrCat(
        "kubectl apply --server-side -k ", SourceDir(),
        "/deploy/kubernetes/crds >/dev/null && "
        "kubectl wait --for=condition=Established --timeout=30s crd/experiments.kubeflow.org "
        "crd/trials.kubeflow.org crd/suggestions.kubeflow.org >/dev/null");
    ASSERT_EQ(std::system(apply.c_str()), 0);
    const auto config = kube::FindConfig(kubeconfig, "");
    ASSERT_TRUE(config.ok()) << config.status();
    config_ = *config;
    client_ = *kube::Client::Create(config_, RealClock());
    const kube::Json made = {
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns_}}}};
    ASSERT_TRUE(client_->Create(kNamespaces, made).ok());
    proxy_ = std::make_unique<kube::FaultProxy>(config_);
    census_ = std::make_unique<trial::Census>(client_.get(), ns_);
  }

  void TearDown() override {
    if (client_ == nullptr) return;
    if (HasFailure() && proxy_ != nullptr) {
      std::cerr << proxy_->Story() << '\n';
      if (controller_ != nullptr) std::cerr << controller_->Err() << '\n';
    }
    controller_.reset();
    census_.reset();
    proxy_.reset();
    (void)client_->Delete({kNamespaces, "", ns_}, {});
  }

  // A controller behind that wire. Once it answers, or, of two, at once.
  std::unique_ptr<Running> Launch(const kube::FaultProxy& proxy,
                                  const std::vector<std::string>& more = {}) {
    const std::string kubeconfig = cli_.Write(
        absl::StrCat("kubeconfig", ++launched_),
        kube::Dump(
            {{"apiVersion", "v1"},
             {"kind", "Config"},
             {"clusters", {{{"name", "t"}, {"cluster", {{"server", proxy.config().server}}}}}},
             {"users", {{{"name", "t"}, {"user", kube::Json::object()}}}},
             {"contexts", {{{"name", "t"}, {"context", {{"cluster", "t"}, {"user", "t"}}}}}},
             {"current-context", "t"}}));
    // Pods reach it: this machine's address in the cluster's network, where nobody else listens.
    const std::string address = absl::StrCat("10.99.0.1:", 20000 + getpid() % 10000 + launched_);
    const char* image = std::getenv("SHIRABE_TEST_IMAGE");
    std::vector<std::string> words = {"controller",
                                      "--kubeconfig=" + kubeconfig,
                                      absl::StrCat("--image=", image == nullptr ? "none" : image),
                                      "--grpc=" + address,
                                      "--advertise=" + address,
                                      "--http=127.0.0.1:0",
                                      "--ready-file=" + ReadyFile(),
                                      "-n",
                                      ns_};
    words.insert(words.end(), more.begin(), more.end());
    return cli_.Start(words);
  }
  std::string ReadyFile() const { return cli_.Path(absl::StrCat("ready", launched_)); }

  void StartController() {
    controller_ = Launch(*proxy_);
    const std::string ready = ReadyFile();
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << controller_->Err();
  }
  // As if its machine had lost its power.
  void KillController() {
    controller_->Signal(SIGKILL);
    EXPECT_EQ(controller_->Wait().code, 128 + SIGKILL);
    controller_.reset();
  }

  // All trials at once, each a shell that prints its loss after `seconds`. With a command of its
  // own it gets our containers; without, its log is read from the pod.
  void Apply(const std::string& name, int trials, int seconds, bool instrumented = false) {
    const std::string script = absl::StrCat("trap 'exit 1' TERM; sleep ", seconds,
                                            " & wait; echo loss=${trialParameters.lr}");
    kube::Json experiment = SmallObject({ns_, name}, trials,
                                        {{"image", "localhost/tiny:1"},
                                         {"imagePullPolicy", "Never"},
                                         {instrumented ? "command" : "args", {"sh", "-c", script}}},
                                        {{"restartPolicy", "Never"}});
    experiment["spec"]["maxFailedTrialCount"] = 0;
    const auto made = client_->Create(kExperiments, experiment);
    ASSERT_TRUE(made.ok()) << made.status();
  }

  int RunningPods() {
    const auto pods = client_->List({trial::Pods(), ns_, "", "status.phase=Running"});
    return pods.ok() ? static_cast<int>(pods->at("items").size()) : 0;
  }

  bool Has(const std::string& name, const std::string& condition) {
    const auto object = client_->Get({kExperiments, ns_, name});
    if (!object.ok()) return false;
    const kube::Json* conditions = FindAt(*object, {"status", "conditions"});
    if (conditions == nullptr) return false;
    for (const kube::Json& one : *conditions) {
      if (one.value("type", "") == condition) return one.value("status", "") == "True";
    }
    return false;
  }

  // It succeeds, and its books say: so many trials, each with one attempt, which completed.
  void ExpectGoodEnd(const std::string& name, int trials) {
    ASSERT_TRUE(Eventually([&] { return Has(name, "Succeeded"); }, absl::Minutes(2))) << name;
    for (const std::string what : {"attempts", "trials"}) {
      const Outcome books = cli_.Run({"get", what, name, "-n", ns_, "-o", "json"});
      ASSERT_EQ(books.code, 0) << books.err;
      cli_.Write(what + ".json", books.out);
    }
    const std::string check = absl::StrCat("python3 ", SourceDir(), "/tests/cluster/ledger.py ",
                                           cli_.Path("attempts.json"), " ",
                                           cli_.Path("trials.json"), " ", trials, " >&2");
    EXPECT_EQ(std::system(check.c_str()), 0) << name;
    int made = 0;
    for (const auto& [job, uids] : census_->made()) made += job.starts_with(name + "-") ? 1 : 0;
    EXPECT_EQ(made, trials) << "Jobs of " << name;
    EXPECT_EQ(census_->Doubles(), "");
  }

  const std::string ns_ = absl::AsciiStrToLower(
      absl::StrCat(testing::UnitTest::GetInstance()->current_test_info()->name(), "-", getpid()));
  Cli cli_;
  kube::Config config_;
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<kube::FaultProxy> proxy_;
  std::unique_ptr<trial::Census> census_;
  std::unique_ptr<Running> controller_;
  int launched_ = 0;
};

}  // namespace shirabe::cmd
