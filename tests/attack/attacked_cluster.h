// The real controller as a tenant of a cluster meets it: `shirabe controller` as a process of its
// own, before an API server in this process that keeps objects and tells watches, and checks
// nothing: what a real one would refuse arrives all the same. Nobody runs pods.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "kube/json_access.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "tests/integration/cli.h"
#include "tests/kube/fake_api_server.h"
#include "tests/support/eventually.h"
#include "tests/support/small_spec.h"

namespace shirabe::attack {

// Objects by path. Thread-safe.
class AttackedCluster {
 public:
  using Json = kube::Json;

  AttackedCluster() : server_([this](kube::FakeExchange& exchange) { Handle(exchange); }) {}

  std::string url() const { return server_.config().server; }
  // "GET /api/v1/…", in order.
  std::vector<std::string> requests() const { return server_.requests(); }

  // What somebody does with kubectl: `collection` is /apis/GROUP/VERSION/namespaces/NS/PLURAL.
  Json Put(const std::string& collection, const Json& object);
  void Remove(const std::string& path);
  Json Find(const std::string& path) const;
  // What was written, and as whom: "" as the controller itself.
  struct Written {
    std::string method;
    std::string ns;
    std::string plural;
    std::string user;
  };
  std::vector<Written> Writes() const;
  // Of all namespaces.
  std::vector<Json> All(const std::string& plural) const;

  // What each group has, as discovery lists it; set before it is asked.
  Json kinds = Json::array();

  std::atomic<bool> away = false;  // connections are reset
  // The one token that a TokenReview knows, of a person who may do everything; set before it is
  // asked.
  std::string known_token;

 private:
  struct Place {
    std::string group;  // /apis/GROUP/VERSION
    std::string ns;
    std::string plural;
    std::string name;
    std::string sub;
    bool operator<(const Place& other) const {
      return std::tie(group, plural, ns, name) <
             std::tie(other.group, other.plural, other.ns, other.name);
    }
  };
  struct Event {
    int64_t version;
    std::string type;
    Place place;
    Json object;
  };
  static Place Parse(const std::string& path);
  static bool Selects(const Place& collection, const std::string& selector, const Place& place,
                      const Json& object);
  void Handle(kube::FakeExchange& exchange);
  void List(kube::FakeExchange& exchange, const Place& place);
  void Watch(kube::FakeExchange& exchange, const Place& place);
  void Create(kube::FakeExchange& exchange, Place place);
  void Change(kube::FakeExchange& exchange, const Place& place);
  Json Store(const Place& place, Json object);  // with mutex_ held, as the next
  void Erase(const Place& place);

  mutable std::mutex mutex_;
  std::map<Place, Json> objects_;  // guarded by mutex_, as the next three
  std::vector<Event> events_;
  std::vector<Written> writes_;
  int64_t version_ = 100;
  kube::FakeApiServer server_;  // last: its threads use all of the above
};

class ControllerAttackTest : public testing::Test {
 protected:
  using Json = kube::Json;

  void SetUp() override {
    cluster_.Put("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 {{"metadata",
                   {{"name", "experiments.kubeflow.org"},
                    {"labels", {{"app.kubernetes.io/part-of", "shirabe"}}}}}});
    MakeNamespace("red", "uid-red");
    MakeNamespace("blue", "uid-blue");
  }

  void MakeNamespace(const std::string& name, const std::string& uid) {
    cluster_.Put("/api/v1/namespaces", {{"metadata", {{"name", name}, {"uid", uid}}}});
  }
  // The door of the pods.
  std::unique_ptr<v1::Pods::Stub> Pods() const {
    const nlohmann::json ready = nlohmann::json::parse(
        ReadFile(cli_.Path("ready" + std::to_string(starts_))).value_or("{}"));
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ReadFile(cli_.state() + "/tls/ca.crt").value_or("");
    return v1::Pods::NewStub(
        grpc::CreateChannel(ready.value("grpc", ""), grpc::SslCredentials(tls)));
  }
  void StartController(const std::vector<std::string>& more = {}) {
    const std::string kubeconfig = cli_.Write(
        "kubeconfig",
        kube::Dump({{"apiVersion", "v1"},
                    {"kind", "Config"},
                    {"clusters", {{{"name", "t"}, {"cluster", {{"server", cluster_.url()}}}}}},
                    {"users", {{{"name", "t"}, {"user", Json::object()}}}},
                    {"contexts", {{{"name", "t"}, {"context", {{"cluster", "t"}, {"user", "t"}}}}}},
                    {"current-context", "t"}}));
    const std::string ready = cli_.Path("ready" + std::to_string(++starts_));
    std::vector<std::string> words = {"controller",           "--kubeconfig=" + kubeconfig,
                                      "--image=shirabe:test", "--advertise=127.0.0.1:1",
                                      "--grpc=127.0.0.1:0",   "--http=127.0.0.1:0",
                                      "--ready-file=" + ready};
    words.insert(words.end(), more.begin(), more.end());
    controller_ = cli_.Start(words);
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << controller_->Err();
  }

  // Two trials at once. A test changes what it attacks.
  static Json Honest(const std::string& ns, const std::string& name) {
    return SmallObject(
        {ns, name}, 2,
        {{"image", "tiny"}, {"command", {"sh", "-c", "echo loss=${trialParameters.lr}"}}});
  }
  void Apply(const Json& experiment) {
    cluster_.Put(CollectionOf(kube::NamespaceOf(experiment)), experiment);
  }
  static std::string CollectionOf(const std::string& ns) {
    return "/apis/kubeflow.org/v1beta1/namespaces/" + ns + "/experiments";
  }

  // What its newest condition says: "REASON: MESSAGE"; "" while there is none.
  std::string ConditionOf(const std::string& ns, const std::string& name) const {
    const Json object = cluster_.Find(CollectionOf(ns) + "/" + name);
    const Json* conditions = FindAt(object, {"status", "conditions"});
    if (conditions == nullptr || conditions->empty()) return "";
    const Json& last = conditions->back();
    return absl::StrCat(last.value("reason", ""), ": ", last.value("message", ""));
  }
  std::string AwaitCondition(const std::string& ns, const std::string& name) const {
    std::string said;
    EXPECT_TRUE(Eventually([&] {
      said = ConditionOf(ns, name);
      return !said.empty();
    })) << controller_->Err();
    return said;
  }
  std::vector<Json> JobsOf(const std::string& experiment) const {
    std::vector<Json> jobs;
    for (const Json& job : cluster_.All("jobs")) {
      if (Text(job, {"metadata", "labels", "katib.kubeflow.org/experiment"}) == experiment) {
        jobs.push_back(job);
      }
    }
    return jobs;
  }
  // It lives, and an honest experiment of somebody else gets its Jobs.
  void ExpectAlive() {
    const std::string name = "honest" + std::to_string(++honest_);
    Apply(Honest("blue", name));
    EXPECT_TRUE(Eventually([&] { return JobsOf(name).size() == 2; })) << controller_->Err();
  }
  // The program, run beside the controller's database.
  cmd::Outcome Beside(const std::vector<std::string>& words) { return cli_.Run(words); }

  AttackedCluster cluster_;
  cmd::Cli cli_;
  std::unique_ptr<cmd::Running> controller_;
  int starts_ = 0;
  int honest_ = 0;
};

}  // namespace shirabe::attack
