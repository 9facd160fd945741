// What an Experiment object may say, by somebody who may write Experiments in one namespace and
// nothing else: every field that is a name, a path, a URL or an expression, with what it should not
// be. The API server here refuses nothing. After each attack the controller lives, serves others,
// and has asked the API server for nothing that is not the attacker's.
#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "tests/attack/attacked_cluster.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class CrdAttackTest : public ControllerAttackTest {
 protected:
  // It is refused, naming the field, and nothing is made for it.
  void ExpectRefused(const Json& experiment, const std::string& field) {
    Apply(experiment);
    const std::string name = kube::NameOf(experiment);
    EXPECT_THAT(AwaitCondition("red", name), AllOf(HasSubstr("InvalidSpec: "), HasSubstr(field)));
    EXPECT_THAT(JobsOf(name), IsEmpty());
  }
  // No request has left the namespaces of the tests, or asked for what nobody may have.
  void ExpectNoOtherRequests() {
    for (const std::string& request : cluster_.requests()) {
      EXPECT_THAT(request, Not(AnyOf(HasSubstr("/secrets"), HasSubstr("/kube-system/"),
                                     HasSubstr("clusterrole"), HasSubstr(".."))));
    }
  }
};

// attacks: CRD spec.shirabe.checkpoint.volume.hostPath
TEST_F(CrdAttackTest, HostPathNamesAnyFolderOfANode) {
  StartController({"--allow-host-path=/mnt/checkpoints"});
  int number = 0;
  for (const char* path : {"/", "/etc", "/var/lib/kubelet", "/mnt/checkpoints/../../etc",
                           "/mnt/checkpoints-of-others", "/mnt/./checkpoints", "//etc"}) {
    Json experiment = Honest("red", "host" + std::to_string(++number));
    experiment["spec"]["shirabe"]["checkpoint"]["volume"]["hostPath"] = path;
    ExpectRefused(experiment, "spec.shirabe.checkpoint.volume.hostPath");
  }
  Json allowed = Honest("red", "allowed");
  allowed["spec"]["shirabe"]["checkpoint"]["volume"]["hostPath"] = "/mnt/checkpoints/red/";
  Apply(allowed);
  EXPECT_TRUE(Eventually([&] { return JobsOf("allowed").size() == 2; }));
  ExpectAlive();
}

// attacks: CRD spec.shirabe.checkpoint.volume.hostPath
TEST_F(CrdAttackTest, HostPathWithoutAnAdministratorsListIsRefused) {
  StartController();
  Json experiment = Honest("red", "host");
  experiment["spec"]["shirabe"]["checkpoint"]["volume"]["hostPath"] = "/var/lib/checkpoints";
  ExpectRefused(experiment, "--allow-host-path");
}

// On a volume that is shared a pod mounts what is its attempt's, and no secret stands in it.
// attacks: CRD spec.shirabe.checkpoint.volume.claim
TEST_F(CrdAttackTest, SharedClaimShowsAnAttemptItsOwnFoldersOnly) {
  StartController();
  cluster_.Put("/api/v1/namespaces/red/persistentvolumeclaims",
               {{"metadata", {{"name", "checkpoints"}, {"namespace", "red"}}},
                {"spec", {{"accessModes", Json::array({"ReadWriteMany"})}}}});
  Json experiment = Honest("red", "shared");
  experiment["spec"]["shirabe"]["checkpoint"]["volume"]["claim"] = "checkpoints";
  Apply(experiment);
  ASSERT_TRUE(Eventually([&] { return JobsOf("shared").size() == 2; })) << controller_->Err();
  for (const Json& job : JobsOf("shared")) {
    const Json& pod = job["spec"]["template"]["spec"];
    for (const Json& container : pod["containers"]) {
      for (const Json& mount : container["volumeMounts"]) {
        EXPECT_NE(mount["name"], "shirabe-token");
        if (mount["name"] != "shirabe-home") continue;
        EXPECT_THAT(mount.value("subPath", ""),
                    HasSubstr("trials/red/shared/" +
                              Text(job, {"metadata", "labels", "katib.kubeflow.org/trial"})));
      }
    }
    EXPECT_THAT(job.dump(), Not(HasSubstr("\\\"token\\\":")));
  }
}

// A collector of the author's own sees the processes of its pod, and mounts nothing that is ours.
// attacks: CRD spec.metricsCollectorSpec.collector.customCollector
TEST_F(CrdAttackTest, ACollectorThatMountsTheSidecarsTokenOrTheWholeVolume) {
  StartController();
  int number = 0;
  for (const char* volume : {"shirabe-token", "shirabe-home"}) {
    Json experiment = Honest("red", "collector" + std::to_string(++number));
    experiment["spec"]["shirabe"]["checkpoint"]["volume"]["claim"] = "checkpoints";
    experiment["spec"]["metricsCollectorSpec"]["collector"] = {
        {"kind", "Custom"},
        {"customCollector",
         {{"name", "csv"},
          {"image", "evil:1"},
          {"volumeMounts", {{{"name", volume}, {"mountPath", "/stolen"}}}}}}};
    Apply(experiment);
    AwaitCondition("red", kube::NameOf(experiment));
  }
  ExpectAlive();
  for (const Json& job : cluster_.All("jobs")) EXPECT_THAT(job.dump(), Not(HasSubstr("/stolen")));
}

// attacks: CRD spec.algorithm.algorithmSettings.value
TEST_F(CrdAttackTest, AFolderOfCheckpointsWhereOthersHaveTheirs) {
  StartController();
  int number = 0;
  for (const char* path : {"/", "/shirabe/home", "/var/run/secrets/shirabe", "/proc/1/root", "..",
                           "/a/../../shirabe", "/dev"}) {
    Json experiment = Honest("red", "folder" + std::to_string(++number));
    experiment["spec"]["algorithm"] = {
        {"algorithmName", "pbt"},
        {"algorithmSettings", {{{"name", "suggestion_trial_dir"}, {"value", path}}}}};
    ExpectRefused(experiment, "suggestion_trial_dir");
  }
  ExpectAlive();
}

// attacks: CRD spec.shirabe.checkpoint.volume.claim
// attacks: CRD spec.shirabe.checkpoint.volume.storageClassName
// attacks: CRD spec.shirabe.checkpoint.volume.size
TEST_F(CrdAttackTest, NamesOfClaimsThatAreNoNamesReachNoOtherPath) {
  StartController();
  int number = 0;
  for (const char* claim : {"../../../kube-system/secrets/admin", "a/b", "x?limit=1", "%2e%2e"}) {
    Json experiment = Honest("red", "claim" + std::to_string(++number));
    experiment["spec"]["shirabe"]["checkpoint"]["volume"]["claim"] = claim;
    Apply(experiment);
    AwaitCondition("red", "claim" + std::to_string(number));
  }
  ExpectNoOtherRequests();
  ExpectAlive();
}

// attacks: CRD spec.trialTemplate.configMap.configMapName
// attacks: CRD spec.trialTemplate.configMap.configMapNamespace
// attacks: CRD spec.trialTemplate.configMap.templatePath
TEST_F(CrdAttackTest, ConfigMapOfAnotherNamespaceOrNoConfigMap) {
  StartController();
  MakeNamespace("kube-system", "uid-system");
  cluster_.Put(
      "/api/v1/namespaces/blue/configmaps",
      {{"metadata", {{"name", "theirs"}}}, {"data", {{"secret", "the-password: hunter2"}}}});
  struct Attack {
    const char* name;
    const char* ns;
    const char* path;
  };
  const std::vector<Attack> attacks = {{"theirs", "blue", "secret"},
                                       {"../secrets/admin", "", "token"},
                                       {"../../kube-system/secrets/admin", "", "token"},
                                       {"x", "blue/secrets/../../red", "token"},
                                       {"theirs", "blue", "../../../../etc/passwd"}};
  int number = 0;
  for (const Attack& attack : attacks) {
    const std::string name = "map" + std::to_string(++number);
    Json experiment = Honest("red", name);
    Json& from = experiment["spec"]["trialTemplate"];
    from.erase("trialSpec");
    from["configMap"] = {{"configMapName", attack.name}, {"templatePath", attack.path}};
    if (*attack.ns != '\0') from["configMap"]["configMapNamespace"] = attack.ns;
    Apply(experiment);
    const std::string said = AwaitCondition("red", name);
    EXPECT_THAT(said, AllOf(HasSubstr("spec.trialTemplate.configMap"), Not(HasSubstr("hunter2"))));
    EXPECT_THAT(JobsOf(name), IsEmpty());
  }
  for (const std::string& request : cluster_.requests()) {
    EXPECT_THAT(request, Not(AnyOf(HasSubstr("/secrets/"), HasSubstr("/../"))));
  }
  ExpectAlive();
}

// attacks: CRD spec.metricsCollectorSpec.source.httpGet.host
// attacks: CRD spec.metricsCollectorSpec.source.httpGet.path
// attacks: CRD spec.metricsCollectorSpec.source.httpGet.port
// attacks: CRD spec.metricsCollectorSpec.source.httpGet.scheme
// attacks: CRD spec.metricsCollectorSpec.source.httpGet.httpHeaders
TEST_F(CrdAttackTest, HttpGetOfTheMetadataServiceAndOthers) {
  StartController();
  const auto with = [](const std::string& name, const Json& http) {
    Json experiment = Honest("red", name);
    experiment["spec"]["metricsCollectorSpec"] = {{"collector", {{"kind", "PrometheusMetric"}}},
                                                  {"source", {{"httpGet", http}}}};
    return experiment;
  };
  int number = 0;
  for (const char* host : {"169.254.169.254", "metadata.google.internal", "10.96.0.1", "fe80::1",
                           "::ffff:169.254.169.254", "0.0.0.0", "kubernetes.default.svc"}) {
    ExpectRefused(with("host" + std::to_string(++number), {{"host", host}, {"port", 80}}),
                  "httpGet.host");
  }
  ExpectRefused(with("path", {{"port", 80}, {"path", "/x HTTP/1.1\r\nHost: a"}}), "httpGet.path");
  ExpectRefused(with("port", {{"port", "80; rm"}}), "httpGet.port");
  ExpectRefused(with("scheme", {{"port", 80}, {"scheme", "file"}}), "httpGet.scheme");
  ExpectRefused(with("headers", {{"port", 80},
                                 {"httpHeaders", {{{"name", "A: b\r\nX"}, {"value", "google"}}}}}),
                "httpGet.httpHeaders");
  ExpectAlive();
}

// The sidecar mounts the token of its pod, and sends what the collector reads to whoever may look.
// attacks: CRD spec.metricsCollectorSpec.source.fileSystemPath.path
TEST_F(CrdAttackTest, CollectorsFileIsTheSidecarsSecret) {
  StartController();
  int number = 0;
  for (const char* path :
       {"/var/run/secrets/shirabe/token", "/var/run/secrets/shirabe/../shirabe/x",
        "/var/run/secrets/shirabe/..data/token"}) {
    const std::string name = "file" + std::to_string(++number);
    Json experiment = Honest("red", name);
    experiment["spec"]["metricsCollectorSpec"] = {
        {"collector", {{"kind", "File"}}},
        {"source", {{"fileSystemPath", {{"path", path}, {"kind", "File"}}}}}};
    Apply(experiment);
    EXPECT_TRUE(Eventually([&] {
      const cmd::Outcome told = Beside({"describe", name, "-n", "red"});
      return told.out.find("a path of the sidecar's own") != told.out.npos;
    })) << Beside({"describe", name, "-n", "red"}).out;
    EXPECT_THAT(JobsOf(name), IsEmpty());
  }
  ExpectAlive();
}

// attacks: CRD spec.trialTemplate.successCondition
// attacks: CRD spec.trialTemplate.failureCondition
TEST_F(CrdAttackTest, ConditionsThatAreNoExpressionsOrEndlessOnes) {
  StartController();
  std::string deep = "a", wide = "status.conditions";
  for (int i = 0; i < 20'000; ++i) deep += ".#(a";
  for (int i = 0; i < 5'000; ++i) wide += "|@this";
  const std::vector<std::string> attacks = {
      deep,
      wide,
      "status.conditions.#(type%\"" + std::string(20'000, '*') + "x\")#|#(status==1)#",
      "#(#(#(#(a)#)#)#)#",
      "@reverse|@pretty:{\"x\":1}",
      std::string("a\0b", 3),
      "\xff\xfe"};
  int number = 0;
  for (const std::string& attack : attacks) {
    for (const char* field : {"successCondition", "failureCondition"}) {
      Json experiment = Honest("red", "gjson" + std::to_string(++number));
      experiment["spec"]["trialTemplate"][field] = attack;
      Apply(experiment);
    }
  }
  ExpectAlive();
}

// attacks: CRD metadata.name
// attacks: CRD metadata.namespace
TEST_F(CrdAttackTest, NamesThatAreNoNames) {
  StartController();
  const std::string outside = cli_.Path("outside");
  for (const std::string& name : {std::string("../../../outside"), std::string("a/b"),
                                  std::string("A"), std::string("a\0b", 3), std::string(300, 'a'),
                                  std::string("x\n"), std::string("-"), std::string("")}) {
    Apply(Honest("red", name));
  }
  ExpectAlive();
  EXPECT_FALSE(std::filesystem::exists(outside));
  EXPECT_THAT(cluster_.All("jobs"), SizeIs(2)) << "those of the honest one";
}

// attacks: CRD spec.trialTemplate.trialSpec.kind
// attacks: CRD spec.trialTemplate.trialSpec.apiVersion
// attacks: CRD spec.trialTemplate.trialSpec.metadata.namespace
// attacks: CRD spec.trialTemplate.trialSpec.metadata.name
TEST_F(CrdAttackTest, TemplateOfAnotherKindOrForAnotherNamespace) {
  StartController();
  Json moved = Honest("red", "moved");
  moved["spec"]["trialTemplate"]["trialSpec"]["metadata"] = {
      {"namespace", "kube-system"}, {"name", "../../x"}, {"generateName", "y"}};
  Apply(moved);
  ASSERT_TRUE(Eventually([&] {
    return JobsOf("moved").size() == 2 || !ConditionOf("red", "moved").empty();
  })) << controller_->Err();
  for (const Json& job : JobsOf("moved")) {
    EXPECT_EQ(kube::NamespaceOf(job), "red");
    EXPECT_THAT(kube::NameOf(job), HasSubstr("moved-"));
  }
  for (const auto& [group, kind] :
       {std::pair("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        std::pair("../../api/v1", "Secret"), std::pair("v1/namespaces/kube-system", "Secret"),
        std::pair("batch/v1", "../jobs")}) {
    Json experiment = Honest("red", absl::StrCat("kind", ++honest_));
    experiment["spec"]["trialTemplate"]["trialSpec"]["apiVersion"] = group;
    experiment["spec"]["trialTemplate"]["trialSpec"]["kind"] = kind;
    Apply(experiment);
  }
  ExpectAlive();
  EXPECT_THAT(cluster_.All("clusterrolebindings"), IsEmpty());
  EXPECT_THAT(cluster_.All("secrets"), IsEmpty());
}

// Whose rights a trial is made with follows from the namespace of its experiment alone.
// attacks: CRD spec.trialTemplate.trialSpec.metadata.namespace
TEST_F(CrdAttackTest, TrialsThatWouldBeMadeWithTheRightsOfAnotherNamespace) {
  StartController({"--trial-account=shirabe-trials"});
  Json moved = Honest("red", "moved");
  const Json annotations = {{"shirabe.dev/trial-account", "system:masters"},
                            {"Impersonate-User", "system:admin"}};
  moved["metadata"]["annotations"] = annotations;
  Json& spec = moved["spec"]["trialTemplate"]["trialSpec"];
  spec["metadata"] = {{"namespace", "blue"}, {"annotations", annotations}};
  spec["spec"]["template"]["spec"]["serviceAccountName"] = "blue:shirabe-trials";
  Apply(moved);
  ASSERT_TRUE(Eventually([&] {
    return JobsOf("moved").size() == 2 || !ConditionOf("red", "moved").empty();
  })) << controller_->Err();
  for (const std::string ns : {"red\r\nImpersonate-Group: system:masters", "red:x", "blue "}) {
    Apply(Honest(ns, "odd"));
  }
  ExpectAlive();
  for (const auto& [method, ns, plural, user] : cluster_.Writes()) {
    const std::string as = "system:serviceaccount:" + ns + ":shirabe-trials";
    EXPECT_EQ(user, plural == "jobs" ? as : "") << method << " of " << plural << " in " << ns;
  }
  for (const Json& job : cluster_.All("jobs")) {
    EXPECT_EQ(kube::NamespaceOf(job), kube::NameOf(job).starts_with("honest") ? "blue" : "red");
  }
  EXPECT_EQ(Beside({"controller", "--advertise=x:1", "--trial-account=a\r\nX: y"}).code, 2);
}

// attacks: CRD spec.trialTemplate.primaryContainerName
// attacks: CRD spec.trialTemplate.primaryPodLabels
TEST_F(CrdAttackTest, PrimaryContainerAndLabelsOfOurs) {
  StartController();
  for (const char* name : {"shirabe-sidecar", "shirabe-init", "shirabe-folders", "../x"}) {
    Json experiment = Honest("red", absl::StrCat("primary", ++honest_));
    Json& from = experiment["spec"]["trialTemplate"];
    from["primaryContainerName"] = name;
    from["primaryPodLabels"] = {{"shirabe.dev/attempt", "99"},
                                {"katib.kubeflow.org/experiment", "../../x"}};
    from["trialSpec"]["spec"]["template"]["spec"]["containers"][0]["name"] = name;
    Apply(experiment);
    const std::string job = kube::NameOf(experiment);
    EXPECT_TRUE(Eventually([&] {
      return !Beside({"get", "experiment", job, "-n", "red"}).out.empty() ||
             !ConditionOf("red", job).empty();
    }));
  }
  ExpectAlive();
  for (const Json& job : cluster_.All("jobs")) {
    for (const Json& container : job["spec"]["template"]["spec"]["containers"]) {
      EXPECT_THAT(container.value("name", ""), Not(HasSubstr("shirabe-")));
    }
  }
}

// Objects of others with the labels that ours have.
// attacks: CRD Trial metadata.labels
// attacks: CRD Trial spec
// attacks: CRD Suggestion spec
// attacks: CRD metadata.labels
// attacks: CRD metadata.finalizers
TEST_F(CrdAttackTest, ObjectsThatPretendToBeOurs) {
  StartController();
  Apply(Honest("blue", "victim"));
  ASSERT_TRUE(Eventually([&] { return JobsOf("victim").size() == 2; }));
  const Json labels = {{"app.kubernetes.io/managed-by", "shirabe"},
                       {"katib.kubeflow.org/experiment", "victim"},
                       {"katib.kubeflow.org/trial", "victim-1"},
                       {"shirabe.dev/attempt", "1"}};
  for (const char* plural : {"trials", "suggestions", "experiments"}) {
    cluster_.Put(absl::StrCat("/apis/kubeflow.org/v1beta1/namespaces/red/", plural),
                 {{"metadata", {{"name", "victim-1"}, {"namespace", "red"}, {"labels", labels}}},
                  {"spec", Json::array()}});
  }
  for (const std::string& name : {std::string("../../x"), std::string("UPPER"), std::string(""),
                                  std::string(400, 'x'), std::string("a\0b", 3)}) {
    Json odd = labels;
    odd["katib.kubeflow.org/experiment"] = name;
    cluster_.Put("/apis/kubeflow.org/v1beta1/namespaces/red/trials",
                 {{"metadata", {{"name", "odd"}, {"namespace", "red"}, {"labels", odd}}}});
  }
  cluster_.Put("/apis/batch/v1/namespaces/red/jobs",
               {{"metadata", {{"name", "victim-1-a1"}, {"namespace", "red"}, {"labels", labels}}}});
  cluster_.Put("/api/v1/namespaces/red/pods",
               {{"metadata",
                 {{"name", "p"},
                  {"namespace", "red"},
                  {"labels", labels},
                  {"finalizers", {"shirabe.dev/log", "red/never"}}}}});
  ExpectAlive();
  EXPECT_EQ(JobsOf("victim").size(), 3u) << "two of the victim, one of the pretender";
  EXPECT_THAT(Beside({"get", "trials", "victim", "-n", "blue", "-o", "name"}).out,
              HasSubstr("victim-1"));
}

// Whoever reaches the door of the pods, and knows the names of all attempts.
// attacks: gRPC shirabe.v1.Pods/Sync
TEST_F(CrdAttackTest, PodThatIsNoneOrAnothers) {
  StartController();
  Apply(Honest("red", "victim"));
  ASSERT_TRUE(Eventually([&] { return JobsOf("victim").size() == 2; }));
  const auto stub = Pods();
  const std::string claims = R"({"kubernetes.io": {"pod": {"uid": "uid-101"}}})";
  const std::vector<std::string> tokens = {
      "",
      "x",
      "Bearer",
      "a.b.c",
      "e30." + absl::WebSafeBase64Escape(claims) + ".forged",
      "e30." + absl::WebSafeBase64Escape(std::string(12'000, '[')) + ".x",
      std::string(30'000, 'a')};
  int asked = 0;
  for (const std::string& name : {std::string("victim"), std::string("../../red/victim"),
                                  std::string("a\0b", 3), std::string(5000, 'x')}) {
    for (const std::string& token : tokens) {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
      if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
      v1::SyncRequest request;
      request.set_namespace_("red");
      request.set_experiment(name);
      request.set_trial(1);
      request.set_attempt(1);
      request.mutable_state()->set_complete(true);
      v1::SyncReply reply;
      const grpc::Status status = stub->Sync(&context, request, &reply);
      EXPECT_FALSE(status.ok()) << name << " " << token.substr(0, 40);
      EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      ++asked;
    }
  }
  EXPECT_EQ(asked, 28);
  for (const std::string& request : cluster_.requests()) {
    EXPECT_THAT(request, Not(HasSubstr("tokenreviews"))) << "nothing is asked for them";
  }
  ExpectAlive();
}

// A namespace is made anew under the name of one that was deleted: what was of the old one is not
// the new one's.
// attacks: CRD metadata.namespace
TEST_F(CrdAttackTest, NamespaceOfTheSameNameShowsNothingOfTheOldOne) {
  StartController();
  Apply(Honest("red", "secret"));
  ASSERT_TRUE(Eventually([&] { return JobsOf("secret").size() == 2; }));
  // As the cluster does it; the Experiment object and the pods went with it.
  cluster_.Remove("/api/v1/namespaces/red");
  cluster_.Remove(CollectionOf("red") + "/secret");
  for (const Json& job : JobsOf("secret")) {
    cluster_.Remove("/apis/batch/v1/namespaces/red/jobs/" + kube::NameOf(job));
  }
  MakeNamespace("red", "uid-of-another");
  EXPECT_TRUE(Eventually([&] {
    return Beside({"get", "experiment", "secret", "-n", "red"}).code == 3;
  })) << Beside({"describe", "secret", "-n", "red"}).out
      << controller_->Err();
  Apply(Honest("red", "secret"));
  EXPECT_TRUE(Eventually([&] { return JobsOf("secret").size() == 2; }))
      << ConditionOf("red", "secret") << controller_->Err();
}

// One that was made through the API has no object that could be seen to go.
// attacks: CRD metadata.namespace
TEST_F(CrdAttackTest, ExperimentsWithoutAnObjectGoWithTheirNamespace) {
  StartController();
  Json spec = Honest("red", "asked");
  spec["spec"].erase("trialTemplate");
  spec["spec"]["shirabe"]["askAndTell"] = true;
  const nlohmann::json ready =
      nlohmann::json::parse(ReadFile(cli_.Path("ready" + std::to_string(starts_))).value_or("{}"));
  const std::vector<std::string> server = {"--server",     "tls://" + ready.value("grpc", ""),
                                           "--ca",         cli_.state() + "/tls/ca.crt",
                                           "--token-file", ready.value("tokenFile", "")};
  std::vector<std::string> words = {"apply", "-f", cli_.Write("asked.json", spec.dump())};
  words.insert(words.end(), server.begin(), server.end());
  const cmd::Outcome made = Beside(words);
  ASSERT_EQ(made.code, 0) << made.err;
  cluster_.Remove("/api/v1/namespaces/red");
  MakeNamespace("red", "uid-of-another");
  EXPECT_TRUE(Eventually([&] {
    return Beside({"get", "experiment", "asked", "-n", "red"}).code == 3;
  })) << controller_->Err();
}

}  // namespace
}  // namespace shirabe::attack
