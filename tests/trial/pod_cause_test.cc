#include "trial/kubernetes/pod_verdict.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_io.h"
#include "experiment/state/retry_policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/paths.h"
#include "tests/trial/pod_samples.h"

namespace shirabe::trial {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Phase = PodVerdict::Phase;
using Node = PodFacts::Node;

PodFacts Facts(bool spot = false) { return {.primary = "main", .spot = spot}; }

std::string PhaseWord(Phase phase) {
  switch (phase) {
    case Phase::kWaiting: return "waiting";
    case Phase::kRunning: return "running";
    case Phase::kEnded: return "ended";
    case Phase::kLost: return "lost";
  }
  return "?";
}

// What goes into the ledger for it.
std::string Cause(const PodVerdict& verdict) {
  const v1::Cause cause = experiment::Classify({}, {.platform = verdict.cause,
                                                    .lost = verdict.phase == Phase::kLost,
                                                    .exit_code = verdict.exit_code,
                                                    .signal = verdict.signal,
                                                    .out_of_memory = verdict.out_of_memory});
  return experiment::CauseWord(cause);
}

// "ended app-error": both, as the tests below compare them.
std::string ReadPodCause(const Json& pod, const PodFacts& facts = Facts()) {
  const PodVerdict verdict = ReadPod(pod, facts);
  const bool over = verdict.phase == Phase::kEnded || verdict.phase == Phase::kLost;
  return over ? PhaseWord(verdict.phase) + " " + Cause(verdict) : PhaseWord(verdict.phase);
}

// ---- the matrix ---------------------------------------------------------------------------------

struct Exit {
  int code;
  const char* reason;
};

std::string Row(const Exit& exit, const char* notice, bool deleted) {
  PodSample sample;
  sample.Ended(exit.code, exit.reason);
  if (notice[0] != '\0') sample.Disrupted(notice);
  if (deleted) sample.Deleted();
  return absl::StrFormat("%4d %-22s %-22s %-7s  %-26s %s\n", exit.code, exit.reason,
                         notice[0] == '\0' ? "-" : notice, deleted ? "deleted" : "-",
                         ReadPodCause(sample.pod, Facts(/*spot=*/false)),
                         ReadPodCause(sample.pod, Facts(/*spot=*/true)));
}

std::string Matrix() {
  std::string table =
      "exit reason                 DisruptionTarget       pod      on-demand node             "
      "spot node\n";
  for (const Exit& exit : std::vector<Exit>{{0, "Completed"},
                                            {1, "Error"},
                                            {2, "Error"},
                                            {42, "Error"},
                                            {75, "Error"},
                                            {126, "Error"},
                                            {127, "Error"},
                                            {128, "StartError"},
                                            {134, "Error"},
                                            {137, "OOMKilled"},
                                            {137, "Error"},
                                            {137, "ContainerStatusUnknown"},
                                            {139, "Error"},
                                            {143, "Error"},
                                            {255, "Error"}}) {
    for (const char* notice : {"", "DeletionByTaintManager", "TerminationByKubelet"}) {
      for (const bool deleted : {false, true}) table += Row(exit, notice, deleted);
    }
  }
  return table;
}

TEST(PodCause, MatrixIsAsWrittenDown) {
  const auto golden = ReadFile(SourceDir() + "/tests/testdata/pod_causes.golden");
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_TRUE(Matrix() == *golden) << "the table as it is now:\n" << Matrix();
}

// ---- pods of a real cluster ---------------------------------------------------------------------

Json RealPods() {
  const auto text = ReadFile(SourceDir() + "/tests/testdata/real_pods.json");
  EXPECT_TRUE(text.ok()) << text.status();
  return Json::parse(text.value_or("{}"))["pods"];
}

// As Kubernetes 1.34 with containerd showed them, each brought about on purpose.
TEST(PodCause, RealPods) {
  const std::map<std::string, std::string> expected = {
      {"exit1", "ended app-error"},
      {"oom", "ended oom"},
      {"starterror", "ended app-error"},
      {"init", "ended app-error"},
      {"outofcpu", "ended never-ran"},
      {"pending", "ended never-ran"},
      {"disk", "ended app-error"},
      {"disk, and its node tainted later", "ended app-error"},
      {"deadline", "ended app-error"},
      {"deadline, and its node tainted later", "ended app-error"},
      {"deleted", "ended unknown"},
      {"deleted, and its node tainted later", "ended preempted-node"},
      {"evicted", "ended preempted-eviction"},
      {"evicted, and its node tainted later", "ended preempted-node"},
      {"low", "ended preempted-scheduler"},
      {"tainted", "ended preempted-node"},
      {"being evicted", "running"},
      {"gated", "waiting"},
      {"never", "waiting"},
      {"noclaim", "waiting"},
      {"noconfig", "waiting"},
      {"nomount", "waiting"},
      {"nopull", "waiting"}};
  const Json pods = RealPods();
  EXPECT_EQ(pods.size(), expected.size());
  for (const auto& [name, pod] : pods.items()) {
    const auto found = expected.find(name);
    ASSERT_NE(found, expected.end()) << name;
    EXPECT_EQ(ReadPodCause(pod), found->second) << name << ": " << ReadPod(pod, Facts()).message;
  }
  EXPECT_TRUE(ReadPod(pods["being evicted"], Facts()).ending);
  EXPECT_FALSE(ReadPod(pods["starterror"], Facts()).start.has_value());
}

// ---- the reasons --------------------------------------------------------------------------------

std::string Disrupted(const char* reason, bool spot) {
  return ReadPodCause(PodSample().Ended(143, "Error").Disrupted(reason).Deleted().pod, Facts(spot));
}

TEST(PodCause, ReasonsMapAsTheDesignSays) {
  for (const bool spot : {false, true}) {
    EXPECT_EQ(Disrupted("PreemptionByScheduler", spot), "ended preempted-scheduler");
    EXPECT_EQ(Disrupted("EvictionByEvictionAPI", spot), "ended preempted-eviction");
    EXPECT_EQ(Disrupted("SomethingNew", spot), "ended infrastructure");
    for (const char* node : {"DeletionByTaintManager", "DeletionByPodGC", "TerminationByKubelet"}) {
      EXPECT_EQ(Disrupted(node, spot), spot ? "ended preempted-spot" : "ended preempted-node");
    }
  }
}

TEST(PodCause, MessagesCarryThePlatformsWords) {
  const Json pod = PodSample().Ended(143, "Error").Disrupted("PreemptionByScheduler").Deleted().pod;
  EXPECT_THAT(ReadPod(pod, Facts()).message,
              AllOf(HasSubstr("preempted by the scheduler"), HasSubstr("as the platform says")));
}

// F9: the condition was written, the delete never came, and the program failed by itself.
TEST(PodCause, AStaleDisruptionIsNoExcuse) {
  for (const char* reason :
       {"PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager"}) {
    EXPECT_EQ(ReadPodCause(PodSample().Ended(1, "Error").Disrupted(reason).pod), "ended app-error");
    EXPECT_EQ(ReadPodCause(PodSample().Running().Disrupted(reason).pod), "running");
  }
}

TEST(PodCause, ADisruptionThatWasClearedIsNone) {
  Json pod = PodSample().Ended(1, "Error").Disrupted("EvictionByEvictionAPI").Deleted().pod;
  pod["status"]["conditions"][0]["status"] = "False";
  EXPECT_EQ(ReadPodCause(pod), "ended unknown");  // deleted all the same, and nobody says why
}

TEST(PodCause, AProgramThatEndedBeforeItWasEvictedEndedByItself) {
  PodSample sample;
  sample.Ended(1, "Error").Disrupted("EvictionByEvictionAPI").Deleted();
  Json& ended = sample.pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"];
  ended = "2026-11-21T11:59:30Z";
  EXPECT_EQ(ReadPodCause(sample.pod), "ended app-error");
  // Deleted without grace: the kubelet does that too, some time after the end.
  sample.pod["status"].erase("conditions");
  sample.pod["metadata"]["deletionGracePeriodSeconds"] = 0;
  EXPECT_EQ(ReadPodCause(sample.pod), "ended unknown");
  ended = "2026-11-21T11:58:30Z";
  EXPECT_EQ(ReadPodCause(sample.pod), "ended app-error");
}

// The kubelet writes its condition while or after it ends the containers: an end before the
// condition's time is one that the kubelet brought about.
TEST(PodCause, TheKubeletsOwnConditionComesAfterTheEndThatItMade) {
  for (const bool deleted : {false, true}) {
    PodSample sample;
    sample.Ended(143, "Error").Disrupted("TerminationByKubelet");
    if (deleted) sample.Deleted();
    sample.pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] =
        "2026-11-21T11:59:30Z";
    EXPECT_EQ(ReadPodCause(sample.pod), "ended preempted-node") << deleted;
  }
}

TEST(PodCause, TheSupervisorKnowsWhetherItWasToldToEnd) {
  const Json pod = PodSample().Ended(1, "Error").Disrupted("EvictionByEvictionAPI").Deleted().pod;
  PodFacts facts = Facts();
  facts.stop_requested = false;
  EXPECT_EQ(ReadPodCause(pod, facts), "ended app-error");
  facts.stop_requested = true;
  EXPECT_EQ(ReadPodCause(pod, facts), "ended preempted-eviction");
}

// ---- nodes --------------------------------------------------------------------------------------

TEST(PodCause, NodeShutdownWithoutACondition) {
  Json pod = PodSample().Ended(143, "Error").pod;
  pod["status"]["reason"] = "Terminated";
  pod["status"]["message"] = "Pod was terminated in response to imminent node shutdown.";
  EXPECT_EQ(ReadPodCause(pod), "ended preempted-node");
  EXPECT_EQ(ReadPodCause(pod, Facts(/*spot=*/true)), "ended preempted-spot");
}

// F10: its node is gone, and nobody told how the program ended.
TEST(PodCause, ANodeThatIsGoneTakesItsPodsAlong) {
  PodFacts facts = Facts();
  facts.node = Node::kDead;
  EXPECT_EQ(ReadPodCause(PodSample().Running().pod, facts), "lost preempted-node");
  facts.spot = true;
  EXPECT_EQ(ReadPodCause(PodSample().Running().pod, facts), "lost preempted-spot");
  facts.vanished = true;
  EXPECT_EQ(ReadPodCause(PodSample().Running().pod, facts), "lost preempted-spot");
  EXPECT_EQ(ReadPodCause(PodSample().Scheduled().pod, facts), "ended never-ran");
}

TEST(PodCause, WhatEndedBeforeTheNodeWasLostCounts) {
  PodFacts facts = Facts();
  facts.node = Node::kDead;
  EXPECT_EQ(ReadPodCause(PodSample().Ended(0, "Completed").pod, facts), "ended completed");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(1, "Error").pod, facts), "ended app-error");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(137, "Error").pod, facts), "ended preempted-node");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(137, "OOMKilled").pod, facts), "ended oom");
}

TEST(PodCause, GarbageCollectedWithItsContainersStillRunning) {
  Json pod = PodSample().Running().Disrupted("DeletionByPodGC").pod;
  pod["status"]["phase"] = "Failed";
  EXPECT_EQ(ReadPodCause(pod), "lost preempted-node");
}

TEST(PodCause, APodThatVanishedWithoutAWord) {
  PodFacts facts = Facts();
  facts.vanished = true;
  EXPECT_EQ(ReadPodCause(PodSample().Running().pod, facts), "lost unknown");
  EXPECT_EQ(ReadPodCause(PodSample().Scheduled().pod, facts), "ended never-ran");
  EXPECT_EQ(ReadPodCause(PodSample().pod, facts), "ended never-ran");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(0, "Completed").pod, facts), "ended completed");
}

// ---- the kubelet's evictions --------------------------------------------------------------------

Json Evicted(const std::string& message) {
  Json pod = PodSample().Ended(137, "Error").pod;
  pod["status"]["reason"] = "Evicted";
  pod["status"]["message"] = message;
  return pod;
}

TEST(PodCause, NodePressureIsThePlatforms) {
  const std::string words =
      "The node was low on resource: memory. Threshold quantity: 100Mi, available: 84Mi. Container "
      "main was using 5Gi, request is 1Gi, has larger consumption of memory.";
  EXPECT_EQ(ReadPodCause(Evicted(words)), "ended preempted-node");
  EXPECT_THAT(ReadPod(Evicted(words), Facts()).message, HasSubstr("request is 1Gi"));
}

TEST(PodCause, ADiskLimitOfItsOwnIsTheProgramsFault) {
  for (const char* words :
       {"Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
        "Container main exceeded its local ephemeral storage limit \"1Gi\".",
        "Usage of EmptyDir volume \"scratch\" exceeds the limit \"1Gi\"."}) {
    EXPECT_EQ(ReadPodCause(Evicted(words)), "ended app-error") << words;
    EXPECT_THAT(ReadPod(Evicted(words), Facts()).message, HasSubstr("ephemeral-storage"));
  }
}

TEST(PodCause, DeadlineIsTheUsersOwn) {
  Json pod = PodSample().Ended(143, "Error").pod;
  pod["status"]["reason"] = "DeadlineExceeded";
  EXPECT_EQ(ReadPodCause(pod), "ended app-error");
  EXPECT_EQ(ReadPod(pod, Facts()).overdue, AttemptStatus::Overdue::kPod);
  Json pending = PodSample().Scheduled().pod;
  pending["status"] = {{"phase", "Failed"}, {"reason", "DeadlineExceeded"}};
  EXPECT_EQ(ReadPodCause(pending), "ended app-error");
  EXPECT_EQ(ReadPod(pending, Facts()).overdue, AttemptStatus::Overdue::kPod);
}

// ---- pods that never ran (F20) ------------------------------------------------------------------

TEST(PodCause, WhatNeverStartedCostsNothing) {
  for (const char* reason : {"UnexpectedAdmissionError", "OutOfcpu", "OutOfmemory", "OutOfpods",
                             "NodeAffinity", "TopologyAffinityError", "Evicted"}) {
    Json pod = PodSample().Scheduled().pod;
    pod["status"] = {{"phase", "Failed"}, {"reason", reason}, {"message", "Node had no room"}};
    EXPECT_EQ(ReadPodCause(pod), "ended never-ran") << reason;
    EXPECT_THAT(ReadPod(pod, Facts()).message, HasSubstr("Node had no room"));
  }
}

TEST(PodCause, DeletedWhilePending) {
  Json pod = PodSample().Scheduled().Deleted().pod;
  EXPECT_EQ(ReadPodCause(pod), "waiting");  // the kubelet has yet to let go
  EXPECT_TRUE(ReadPod(pod, Facts()).ending);
  pod["status"]["phase"] = "Failed";
  pod["status"]["reason"] = "Deleted";
  pod["status"]["message"] = "Deleted while pending";
  EXPECT_EQ(ReadPodCause(pod), "ended never-ran");
  EXPECT_EQ(ReadPodCause(PodSample().Deleted().pod), "ended never-ran");  // there is no kubelet
}

TEST(PodCause, FailedInitContainers) {
  EXPECT_EQ(ReadPodCause(PodSample().InitFailed("download", 1).pod), "ended app-error");
  EXPECT_EQ(ReadPodCause(PodSample().InitFailed("shirabe-init", 1).pod), "ended infrastructure");
  EXPECT_EQ(ReadPodCause(PodSample().InitFailed("shirabe-init", 65).pod), "ended app-error")
      << "its code is not to be had";
  EXPECT_THAT(ReadPod(PodSample().InitFailed("download", 3).pod, Facts()).message,
              AllOf(HasSubstr("download"), HasSubstr("exit code 3"), HasSubstr("no such bucket")));
  EXPECT_EQ(
      ReadPodCause(
          PodSample().InitFailed("download", 143).Disrupted("EvictionByEvictionAPI").Deleted().pod),
      "ended never-ran");
  EXPECT_EQ(ReadPodCause(PodSample().InitFailed("download", 143).Deleted().pod), "ended never-ran")
      << "deleted, and nobody says why: its init container was killed for that";
}

TEST(PodCause, SidecarsMayFailAsTheyLike) {
  Json pod = PodSample().Ended(0, "Completed").pod;
  pod["spec"]["initContainers"] =
      Json::array({Json{{"name", "shirabe-sidecar"}, {"restartPolicy", "Always"}}});
  pod["status"]["initContainerStatuses"] = Json::array(
      {Json{{"name", "shirabe-sidecar"}, {"state", {{"terminated", {{"exitCode", 137}}}}}}});
  pod["status"]["phase"] = "Failed";
  EXPECT_EQ(ReadPodCause(pod), "ended completed");
}

// ---- memory -------------------------------------------------------------------------------------

TEST(PodCause, OutOfMemoryIsSaidWithTheFix) {
  const PodVerdict verdict = ReadPod(PodSample().Ended(137, "OOMKilled").pod, Facts());
  EXPECT_TRUE(verdict.out_of_memory);
  EXPECT_EQ(verdict.signal, 9);
  EXPECT_THAT(verdict.message, HasSubstr("resources.limits.memory"));
}

// A child was killed, and the program went on and ended well.
TEST(PodCause, AProgramThatSurvivedItsChildIsNotOutOfMemory) {
  EXPECT_EQ(ReadPodCause(PodSample().Ended(0, "OOMKilled").pod), "ended completed");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(75, "OOMKilled").pod), "ended yielded");
}

// ---- suspension (F22) ---------------------------------------------------------------------------

TEST(PodCause, ASuspendedJobWasPreempted) {
  PodFacts facts = Facts();
  facts.suspended = true;
  EXPECT_EQ(ReadPodCause(PodSample().Ended(143, "Error").Deleted().pod, facts), "ended suspended");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(0, "Completed").Deleted().pod, facts),
            "ended suspended");
  EXPECT_EQ(ReadPodCause(PodSample().Ended(0, "Completed").pod, facts), "ended completed");
  facts.vanished = true;
  EXPECT_EQ(ReadPodCause(PodSample().Running().pod, facts), "lost suspended");
  EXPECT_EQ(ReadPodCause(PodSample().pod, facts), "ended suspended");
}

TEST(PodCause, Jobs) {
  EXPECT_TRUE(ReadJob(Json::parse(R"({"spec": {"suspend": true}})")).suspended);
  const Json late = Json::parse(R"({"status": {"conditions": [{"type": "Failed", "status": "True",
      "reason": "DeadlineExceeded", "message": "Job was active too long"}]}})");
  EXPECT_EQ(ReadJob(late).cause, v1::APP_ERROR);
  EXPECT_THAT(ReadJob(late).message, HasSubstr("activeDeadlineSeconds"));
  EXPECT_TRUE(ReadJob(late).overdue);
  EXPECT_TRUE(ReadJob(Json::parse(R"({"spec": {"activeDeadlineSeconds": 6}})")).limited);
  EXPECT_EQ(ReadJob(Json()).cause, v1::CAUSE_NONE);
}

// ---- phases and times ---------------------------------------------------------------------------

TEST(PodCause, PhasesAndTimes) {
  EXPECT_EQ(ReadPodCause(PodSample().pod), "waiting");
  EXPECT_EQ(ReadPodCause(PodSample().Scheduled().pod), "waiting");
  const PodVerdict running = ReadPod(PodSample().Running().pod, Facts());
  EXPECT_EQ(running.phase, Phase::kRunning);
  EXPECT_EQ(running.node, "node-0");
  ASSERT_TRUE(running.start.has_value());
  EXPECT_FALSE(running.end.has_value());
  const PodVerdict ended = ReadPod(PodSample().Ended(0, "Completed").pod, Facts());
  EXPECT_EQ(*ended.end - *ended.start, absl::Seconds(10));
}

TEST(PodCause, AnyShapeIsRead) {
  const std::pair<const char*, const char*> shapes[] = {
      {"null", "waiting"},
      {"[]", "waiting"},
      {"\"a pod\"", "waiting"},
      {R"({"status": 7})", "waiting"},
      {R"({"status": {"phase": 7, "containerStatuses": {"name": "main"}}})", "waiting"},
      {R"({"status": {"phase": "Failed"}})", "ended never-ran"},
      {R"({"status": {"containerStatuses": [1, {"name": "main"}]}})", "waiting"},
      {R"({"status": {"phase": "Running", "containerStatuses": [
           {"name": "main", "state": {"running": {"startedAt": 12}}}]}})",
       "running"},
      {R"({"metadata": {"deletionTimestamp": "soon"}, "status": {"phase": "Failed",
           "conditions": [7, {"type": "DisruptionTarget", "status": true}],
           "containerStatuses": [
           {"name": "main", "state": {"terminated": {"exitCode": 1}}}]}})",
       "ended unknown"},
      {R"({"status": {"phase": "Failed", "containerStatuses": [
           {"name": "main", "state": {"terminated": {"exitCode": "x"}}}]}})",
       "ended completed"}};
  for (const auto& [text, as] : shapes) {
    EXPECT_EQ(ReadPodCause(Json::parse(text)), as) << text;
    const JobVerdict job = ReadJob(Json::parse(text));
    EXPECT_FALSE(job.suspended) << text;
    EXPECT_EQ(job.cause, v1::CAUSE_NONE) << text;
  }
  for (const char* text : {R"({"spec": {"suspend": "true"}})", R"({"spec": {"suspend": 1}})"}) {
    EXPECT_FALSE(ReadJob(Json::parse(text)).suspended) << text;
  }
}

}  // namespace
}  // namespace shirabe::trial
