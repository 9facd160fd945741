// Attempts of the executor `kubernetes` on a real API server with real kubelets, for tests: one
// namespace each, emptied at the end. Skipped where SHIRABE_TEST_KUBECONFIG names no cluster;
// tests/cluster/run.sh does. The image is tests/cluster/images/tiny, started without a command, so
// that nothing of ours is needed in it.
#pragma once

#include <stdlib.h>

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "trial/kubernetes/kubernetes_executor.h"

namespace shirabe::trial {

inline const kube::Resource kNamespaces{"", "v1", "namespaces", "Namespace", /*namespaced=*/false};
inline const kube::Resource kQuotas{"", "v1", "resourcequotas", "ResourceQuota"};

// What sidecars call, as the server serves it.
class PodsEndpoint : public v1::Pods::Service {
 public:
  // On the address that pods reach the API server at: this process is beside it.
  explicit PodsEndpoint(const std::string& server_url) {
    std::string host = server_url.substr(server_url.find("//") + 2);
    host.resize(host.find(':'));
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(host + ":0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address = host + ":" + std::to_string(port);
  }
  ~PodsEndpoint() override { server_->Shutdown(); }

  grpc::Status Sync(grpc::ServerContext* context, const v1::SyncRequest* request,
                    v1::SyncReply* reply) override {
    std::lock_guard lock(mutex_);
    if (executor_ == nullptr) return {grpc::StatusCode::UNAVAILABLE, "closed"};
    const auto shown = context->client_metadata().find("authorization");
    const std::string bearer =
        shown == context->client_metadata().end()
            ? ""
            : std::string(shown->second.data(), shown->second.size()).substr(sizeof "Bearer");
    auto answer = executor_->Sync(*request, bearer);
    if (answer.ok()) *reply = *std::move(answer);
    return {static_cast<grpc::StatusCode>(answer.status().code()), Message(answer.status())};
  }

  void Open(Executor* executor) {
    std::lock_guard lock(mutex_);
    executor_ = executor;
  }

  std::string address;

 private:
  std::mutex mutex_;
  Executor* executor_ = nullptr;  // guarded by mutex_
  std::unique_ptr<grpc::Server> server_;
};

class KubernetesCluster : public testing::Test {
 protected:
  void SetUp() override {
    const char* kubeconfig = getenv("SHIRABE_TEST_KUBECONFIG");
    if (kubeconfig == nullptr) GTEST_SKIP() << "SHIRABE_TEST_KUBECONFIG names no cluster";
    const auto config = kube::FindConfig(kubeconfig, "");
    ASSERT_TRUE(config.ok()) << config.status();
    client_ = *kube::Client::Create(*config, RealClock());
    pods_endpoint_ = std::make_unique<PodsEndpoint>(config->server);
    std::string path = testing::TempDir() + "shirabe-cluster-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    home_ = path;
    experiment_ = {"attempts-" + std::to_string(absl::ToUnixMicros(RealClock()->Now())), "tuning"};
    const Json made = {
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", experiment_.ns}}}};
    ASSERT_TRUE(client_->Create(kNamespaces, made).ok());
    Reopen();
  }

  void TearDown() override {
    if (client_ == nullptr) return;
    executor_->RemoveFiles(experiment_, 0).IgnoreError();
    for (const AttemptStatus& observed : executor_->Observe(experiment_)) {
      executor_->Stop(observed.key, v1::USER, absl::ZeroDuration()).IgnoreError();
      executor_->Forget(observed.key);
    }
    EXPECT_TRUE(Await([&] { return Pods().empty(); })) << "pods are held";
    pods_endpoint_.reset();
    executor_.reset();
    client_->Delete({kNamespaces, "", experiment_.ns}, {}).IgnoreError();
    EXPECT_TRUE(RemoveAll(home_).ok());
  }

  void Reopen() {
    pods_endpoint_->Open(nullptr);
    executor_.reset();
    ExecutorOptions options;
    options.home = home_;
    options.clock = RealClock();
    const char* image = getenv("SHIRABE_TEST_IMAGE");
    options.pods = std::make_shared<PodOptions>(
        PodOptions{.client = for_executor_ == nullptr ? client_.get() : for_executor_,
                   .image = image == nullptr ? "localhost/none:1" : image,
                   .image_pull_policy = "Never",
                   .server = pods_endpoint_->address,
                   .host_paths = {"/tmp"}});
    options.on_change = [this](const ExperimentKey&) {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    };
    times_.ask_events = absl::Seconds(1);
    times_.events_again = absl::Seconds(2);
    executor_ = std::make_unique<KubernetesExecutor>(options, times_);
    pods_endpoint_->Open(executor_.get());
  }

  AttemptKey Nth(int64_t trial) const { return {{experiment_, trial}, 1}; }

  // `fields` are merged into the container, or, under "pod", into the pod's specification.
  Status Start(const AttemptKey& key, const std::string& script, const Json& fields = {}) {
    return executor_->Start(RequestFor(key, script, fields));
  }

  AttemptRequest RequestFor(const AttemptKey& key, const std::string& script,
                            const Json& fields = {}) {
    Json container = {{"name", "main"},
                      {"image", "localhost/tiny:1"},
                      {"imagePullPolicy", "Never"},
                      {"args", {"sh", "-c", script}}};
    // Not where kwok plays the kubelet.
    const Json real = {{"key", "type"}, {"operator", "NotIn"}, {"values", {"kwok"}}};
    const Json terms = Json::array({{{"matchExpressions", Json::array({real})}}});
    Json pod = {{"restartPolicy", "Never"}};
    pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
        {"nodeSelectorTerms", terms}};
    for (const auto& [name, value] : fields.items()) {
      if (name == "pod") pod.merge_patch(value);
      if (name != "pod") container[name] = value;
    }
    pod["containers"] = Json::array({container});
    const Json job = {
        {"apiVersion", "batch/v1"}, {"kind", "Job"}, {"spec", {{"template", {{"spec", pod}}}}}};
    AttemptRequest request;
    request.key = key;
    request.token = "secret";
    request.primary_container = "main";
    request.grace = absl::Seconds(5);
    request.parameters_json = "{}";
    request.cluster.trial_template.set_primary_container_name("main");
    CHECK(google::protobuf::util::JsonStringToMessage(job.dump(), &request.trial_spec).ok());
    return request;
  }

  std::vector<Json> Pods() {
    kube::Query query;
    query.resource = trial::Pods();
    query.namespace_name = experiment_.ns;
    query.label_selector = kAttemptLabel;  // a Job that cleaned a volume stays for an hour
    const auto list = client_->List(query);
    if (!list.ok()) return {Json::object()};
    return {(*list)["items"].begin(), (*list)["items"].end()};
  }

  AttemptStatus See(const AttemptKey& key) {
    for (AttemptStatus& observed : executor_->Observe(experiment_)) {
      if (observed.key == key) return std::move(observed);
    }
    return {};
  }

  bool Await(const std::function<bool()>& condition) {
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(150);
    while (!condition()) {
      if (RealClock()->Monotonic() > deadline) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(50));
    }
    return true;
  }

  void AwaitRunning(const AttemptKey& key) {
    ASSERT_TRUE(Await([&] { return See(key).placement.has_start_time(); })) << See(key).waiting;
    EXPECT_EQ(See(key).state, AttemptStatus::State::kRunning);
  }

  bool AwaitWaiting(const AttemptKey& key, const std::string& words) {
    const bool said = Await([&] { return See(key).waiting.find(words) != std::string::npos; });
    EXPECT_TRUE(said) << See(key).waiting;
    return said;
  }

  AttemptStatus AwaitEnd(const AttemptKey& key) {
    AttemptStatus last;
    EXPECT_TRUE(Await([&] {
      last = See(key);
      return last.key == key && last.state != AttemptStatus::State::kRunning;
    })) << last.waiting;
    return last;
  }

  std::string LogOf(const AttemptKey& key) {
    return ReadFile(executor_->Paths(key).log).value_or("(no log)");
  }

  std::unique_ptr<kube::Client> client_;
  kube::Client* for_executor_ = nullptr;  // that it uses instead, from the next Reopen on
  PodTimeouts times_;
  std::string home_;
  ExperimentKey experiment_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<PodsEndpoint> pods_endpoint_;
  std::unique_ptr<KubernetesExecutor> executor_;
};

}  // namespace shirabe::trial
