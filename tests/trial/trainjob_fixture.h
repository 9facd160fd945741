// What tests of trials that are TrainJobs share: a cluster in memory, and pods as Trainer and
// JobSet make them of the object.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "experiment/observation_ingest.h"
#include "tests/trial/kubernetes_fixture.h"
#include "tests/trial/pod_built.h"

namespace shirabe::trial {

inline constexpr char kTrainJob[] = R"json({
  "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
  "spec": {"runtimeRef": {"name": "torch-distributed"},
           "runtimePatches": [{"manager": "team.example/user", "trainingRuntimeSpec": {
             "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {
               "template": {"spec": {"containers": [{"name": "node"}]}}}}}]}}}}],
           "trainer": {"image": "train:1", "command": ["python3", "train.py"], "numNodes": 1,
                       "resourcesPerNode": {"requests": {"cpu": "2"}}}}})json";
inline constexpr char kNodeLabel[] = "jobset.sigs.k8s.io/replicatedjob-name";

inline AttemptRequest TrainRequest(const std::string& object = kTrainJob) {
  AttemptRequest request = Request(object);
  request.primary_container = "node";
  (*request.cluster.trial_template.mutable_primary_pod_labels())[kNodeLabel] = "node";
  return request;
}

class TrainJobTest : public KubernetesTest {
 protected:
  TrainJobTest() {
    cluster_.AddKind(kResource);
    OpenWithStatus();
  }

  // A new executor, as after a restart, which takes what is reported in the object.
  void OpenWithStatus(const PodTimeouts& times = Impatient()) {
    executor_.reset();
    ExecutorOptions options;
    options.home = home_;
    options.clock = RealClock();
    options.pods = std::make_shared<PodOptions>(
        PodOptions{.client = &cluster_, .image = "shirabe:test", .server = "shirabe.lab:7450"});
    options.status_handlers = experiment::TrainerStatusHandlers();
    executor_ = std::make_unique<KubernetesExecutor>(options, times);
  }

  static AttemptRequest RequestOf(const AttemptKey& key) {
    AttemptRequest request = TrainRequest();
    request.key = key;
    v1::TrialTemplate& trial = request.cluster.trial_template;
    trial.set_success_condition(R"(status.conditions.#(type=="Complete")#|#(status=="True")#)");
    trial.set_failure_condition(R"(status.conditions.#(type=="Failed")#|#(status=="True")#)");
    return request;
  }

  void Start() {
    const Status started = executor().Start(RequestOf(Nth(1)));
    ASSERT_TRUE(started.ok()) << started;
  }

  kube::Ref ObjectRef() const { return {kResource, kTuning.ns, kTrial}; }
  kube::Ref MadeRef() const { return {Pods(), kTuning.ns, kTrial + "-node-0-0-x7f2k"}; }

  void Change(const std::function<void(Json&)>& edit) {
    Json object = *cluster_.Get(ObjectRef());
    edit(object);
    cluster_.Put(kResource, object);
  }

  // As a Trainer older than 2.3 and JobSet make it: nothing of the patches is in it.
  Json MadePod(const std::string& created = "2026-01-01T00:00:05Z") const {
    const std::string set = kTrial;
    const Json running = {{"running", {{"startedAt", "2026-01-01T00:00:10Z"}}}};
    return {{"metadata",
             {{"name", MadeRef().name},
              {"namespace", kTuning.ns},
              {"creationTimestamp", created},
              {"labels",
               {{"jobset.sigs.k8s.io/jobset-name", set},
                {kNodeLabel, "node"},
                {"batch.kubernetes.io/job-name", set + "-node-0"},
                {"batch.kubernetes.io/job-completion-index", "0"}}},
              {"ownerReferences",
               {{{"apiVersion", "batch/v1"},
                 {"kind", "Job"},
                 {"name", set + "-node-0"},
                 {"uid", "uid-of-job"},
                 {"controller", true}}}}}},
            {"spec", {{"nodeName", "node-0"}, {"containers", {{{"name", "node"}}}}}},
            {"status",
             {{"phase", "Running"}, {"containerStatuses", Json::array({State("node", running)})}}}};
  }

  Json EndedPod(int code) const {
    Json pod = MadePod();
    const Json ended = {{"terminated",
                         {{"exitCode", code},
                          {"reason", code == 0 ? "Completed" : "Error"},
                          {"startedAt", "2026-01-01T00:00:10Z"},
                          {"finishedAt", "2026-01-01T00:00:40Z"}}}};
    pod["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
    pod["status"]["containerStatuses"] = Json::array({State("node", ended)});
    return pod;
  }

  void Say(const std::string& condition) {
    Change([&](Json& object) {
      object["status"]["conditions"] = {{{"type", condition}, {"status", "True"}}};
    });
  }

  void Report(const std::string& time, const std::string& loss) {
    Change([&](Json& object) {
      object["status"]["trainerStatus"] = {{"lastUpdatedTime", time},
                                           {"metrics", {{{"name", "loss"}, {"value", loss}}}}};
    });
  }

  void Run() {
    Start();
    cluster_.SetLog(MadeRef().name, "node", "loss=0.5\n");
    cluster_.Put(Pods(), MadePod());
    ASSERT_TRUE(Await([&] { return See(Nth(1)).placement.has_start_time(); }));
  }

  std::string Metrics() {
    return ReadFile(executor().Paths(Nth(1)).metrics_file).value_or("(none)");
  }

  const std::string kTrial = TrialName(Nth(1).trial);  // of all of its attempts
  const kube::Resource kResource{"trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"};
};

}  // namespace shirabe::trial
