// What tests of the executor `kubernetes` share: a cluster in memory, played by the test, which
// makes and ends pods as a Job controller and a kubelet would; short patience; bounded waits.
#pragma once

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "artifacts/store_table.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/trial/fake_cluster.h"
#include "tests/trial/saved.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {

inline const ExperimentKey kTuning{"lab", "tuning"};

inline AttemptKey Nth(int64_t trial, int32_t number = 1) { return {{kTuning, trial}, number}; }

inline PodTimeouts Impatient() {
  PodTimeouts times;
  times.start = absl::Seconds(20);
  times.silence = absl::Milliseconds(300);
  times.unseen = absl::Milliseconds(300);
  times.final_sync = absl::Milliseconds(300);
  times.collector = absl::Seconds(30);
  times.stop_ack_timeout = absl::Milliseconds(200);
  times.ask_events = absl::Milliseconds(20);
  times.events_again = absl::Milliseconds(50);
  times.retry = times.gather = absl::Milliseconds(30);
  times.sync = absl::Milliseconds(100);
  times.orphan = absl::Seconds(2);
  times.prune = absl::Milliseconds(100);
  times.logs = absl::Milliseconds(50);
  times.succession = absl::Seconds(20);
  return times;
}

inline AttemptRequest PodRequestFor(const AttemptKey& key, const std::string& token = "secret") {
  AttemptRequest request;
  request.key = key;
  request.token = token;
  request.primary_container = "training-container";
  request.grace = absl::Seconds(15);
  request.parameters_json = R"({"lr": 0.5})";
  request.environment = {{"SHIRABE_TRIAL", TrialName(key.trial)}};
  request.cluster.trial_template.set_primary_container_name("training-container");
  request.cluster.volume.set_claim("checkpoints");
  const auto parsed = google::protobuf::util::JsonStringToMessage(R"({
    "apiVersion": "batch/v1", "kind": "Job",
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{
      "name": "training-container", "image": "trainer:1",
      "command": ["python3", "train.py"]}]}}}})",
                                                                  &request.trial_spec);
  CHECK(parsed.ok());
  return request;
}

inline v1::Attempt RecordOf(const AttemptKey& key, const std::string& token = "secret") {
  v1::Attempt attempt;
  attempt.set_namespace_(key.trial.experiment.ns);
  attempt.set_experiment(key.trial.experiment.name);
  attempt.set_trial(key.trial.number);
  attempt.set_number(key.number);
  attempt.set_token(token);
  return attempt;
}

class KubernetesTest : public testing::Test {
 protected:
  KubernetesTest() {
    std::string path = testing::TempDir() + "shirabe-kubernetes-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    home_ = path;
    Reopen();
    PutNode("node-0");
    PutNamed(Claims(), "checkpoints");
  }
  ~KubernetesTest() override {
    executor_.reset();
    EXPECT_TRUE(RemoveAll(home_).ok());
  }

  // A new executor over the same home and cluster, as after a restart.
  void Reopen(const PodTimeouts& times = Impatient()) {
    executor_.reset();
    ExecutorOptions options;
    options.home = home_;
    options.clock = RealClock();
    options.pods = std::make_shared<PodOptions>(
        PodOptions{.client = &cluster_, .image = "shirabe:test", .server = "shirabe.lab:7450"});
    options.pools = pools_;
    options.stores = stores_;
    options.on_change = [this](const ExperimentKey& key) {
      std::lock_guard lock(mutex_);
      ++changes_;
      last_change_ = key;
      changed_.notify_all();
    };
    options.on_output = [this](const ExperimentKey& key) {
      if (key == kTuning) ++outputs_;
    };
    executor_ = std::make_unique<KubernetesExecutor>(options, times);
  }

  KubernetesExecutor& executor() { return *executor_; }

  // A bucket that pods may be given URLs of; nothing answers there.
  void OpenStore(const std::string& name) {
    const std::string credentials = home_ + "-credentials";
    ASSERT_TRUE(WriteFileAtomic(credentials, "access\nsecret\n").ok());
    ASSERT_EQ(chmod(credentials.c_str(), 0600), 0);
    v1::ArtifactStores entries;
    v1::ArtifactStore& entry = *entries.add_stores();
    entry.set_name(name);
    entry.set_type("s3");
    entry.add_namespaces("*");
    entry.set_endpoint("http://127.0.0.1:1");
    entry.set_bucket("bucket");
    entry.mutable_credentials()->set_file(credentials);
    auto table = artifacts::StoreTable::Create(entries);
    ASSERT_TRUE(table.ok()) << table.status();
    stores_ = *std::move(table);
    unlink(credentials.c_str());
    Reopen();
  }

  // ---- the cluster, played --------------------------------------------------------------------

  kube::Ref JobRef(const AttemptKey& key) { return {Jobs(), kTuning.ns, AttemptName(key)}; }
  kube::Ref PodRef(const AttemptKey& key) {
    return {Pods(), kTuning.ns, AttemptName(key) + "-pod"};
  }
  Json PodOf(const AttemptKey& key) { return cluster_.Get(PodRef(key)).value_or(Json()); }
  bool HasJob(const AttemptKey& key) { return cluster_.Get(JobRef(key)).ok(); }

  void PutNode(const std::string& name, const std::string& ready = "True",
               const Json& taints = Json::array(), const Json& labels = Json::object()) {
    cluster_.Put(Nodes(), {{"metadata", {{"name", name}, {"labels", labels}}},
                           {"spec", {{"taints", taints}}},
                           {"status",
                            {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}}},
                             {"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}});
  }

  // What pods may name.
  void PutNamed(const kube::Resource& resource, const std::string& name,
                const Json& metadata = Json::object()) {
    Json object = {{"metadata", metadata}};
    object["metadata"]["name"] = name;
    object["metadata"]["namespace"] = kTuning.ns;
    cluster_.Put(resource, object);
  }

  // As the Job controller does; the pod is not scheduled yet.
  void MakePod(const AttemptKey& key) {
    const Json job = *cluster_.Get(JobRef(key));
    Json pod = job["spec"]["template"];
    pod["metadata"]["name"] = PodRef(key).name;
    pod["metadata"]["namespace"] = kTuning.ns;
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
    pod["metadata"]["ownerReferences"] = {
        {{"kind", "Job"}, {"name", NameOf(job)}, {"uid", UidOf(job)}, {"controller", true}}};
    pod["status"] = {{"phase", "Pending"}};
    cluster_.Put(Pods(), pod);
  }

  void Edit(const AttemptKey& key, const std::function<void(Json&)>& edit) {
    Json pod = PodOf(key);
    ASSERT_TRUE(pod.is_object());
    edit(pod);
    cluster_.Put(Pods(), pod);
  }

  static Json State(const std::string& name, const Json& state) {
    return {{"name", name}, {"state", state}};
  }

  void RunPod(const AttemptKey& key, const std::string& node = "node-0") {
    Edit(key, [&](Json& pod) {
      const Json running = {{"running", {{"startedAt", "2026-01-01T00:00:10Z"}}}};
      pod["spec"]["nodeName"] = node;
      pod["status"]["phase"] = "Running";
      pod["status"]["containerStatuses"] = Json::array({State("training-container", running)});
      pod["status"]["initContainerStatuses"] = Json::array({State("shirabe-sidecar", running)});
    });
  }

  // The program ends; the pod does with its sidecar, unless `sidecar_goes_on`.
  void EndPod(const AttemptKey& key, int code, bool sidecar_goes_on = false) {
    Edit(key, [&](Json& pod) {
      const Json ended = {{"terminated",
                           {{"exitCode", code},
                            {"reason", code == 0 ? "Completed" : "Error"},
                            {"startedAt", "2026-01-01T00:00:10Z"},
                            {"finishedAt", "2026-01-01T00:00:40Z"}}}};
      pod["status"]["containerStatuses"] = Json::array({State("training-container", ended)});
      if (sidecar_goes_on) return;
      pod["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
      pod["status"]["initContainerStatuses"] = Json::array({State("shirabe-sidecar", ended)});
    });
  }

  // A running attempt, as far as the cluster shows it.
  void Run(const AttemptKey& key, const std::string& node = "node-0") {
    const Status started = executor_->Start(PodRequestFor(key));
    ASSERT_TRUE(started.ok()) << started;
    MakePod(key);
    RunPod(key, node);
    ASSERT_TRUE(Await([&] { return See(key).placement.has_start_time(); }));
  }

  // ---- its sidecar, played --------------------------------------------------------------------

  v1::SyncRequest Request(const AttemptKey& key, const std::string& token = "secret") {
    v1::SyncRequest request;
    request.set_namespace_(key.trial.experiment.ns);
    request.set_experiment(key.trial.experiment.name);
    request.set_trial(key.trial.number);
    request.set_attempt(key.number);
    request.set_token(token);
    return request;
  }

  v1::SyncRequest WithLog(v1::SyncRequest request, int64_t offset, const std::string& data) {
    v1::FilePiece& piece = *request.add_files();
    piece.set_name("log");
    piece.set_offset(offset);
    piece.set_data(data);
    piece.set_size(offset + static_cast<int64_t>(data.size()));
    return request;
  }

  // ---- what is seen ---------------------------------------------------------------------------

  AttemptStatus See(const AttemptKey& key) {
    for (AttemptStatus& observed : executor_->Observe(key.trial.experiment)) {
      if (observed.key == key) return std::move(observed);
    }
    return {};
  }

  AttemptStatus AwaitEnd(const AttemptKey& key) {
    AttemptStatus last;
    EXPECT_TRUE(Await([&] {
      last = See(key);
      return last.key == key && last.state != AttemptStatus::State::kRunning;
    })) << AttemptName(key);
    return last;
  }

  bool Await(const std::function<bool()>& condition) {
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
    while (!condition()) {
      if (RealClock()->Monotonic() > deadline) return false;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    return true;
  }

  int Changes() {
    std::lock_guard lock(mutex_);
    return changes_;
  }

  std::string LogOf(const AttemptKey& key) {
    return ReadFile(executor_->Paths(key).log).value_or("(no log)");
  }

  std::shared_ptr<const artifacts::StoreTable> stores_;  // shared: with the executor
  std::string home_;
  kube::FakeCluster cluster_;
  v1::NodePools pools_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int changes_ = 0;
  std::atomic<int> outputs_ = 0;  // of kTuning
  std::optional<ExperimentKey> last_change_;
  std::unique_ptr<KubernetesExecutor> executor_;
};

}  // namespace shirabe::trial
