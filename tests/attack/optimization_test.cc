// What an OptimizationJob object may say, from a user who may write those in one namespace, and who
// annotates them for Shirabe: annotations, names, lists, numbers and templates of an attacker. The
// API server here refuses nothing. After each the controller lives and serves others, and nothing
// has been made in another namespace.
#include "absl/strings/match.h"
#include "tests/attack/attacked_cluster.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kManager[] = "shirabe.dev/managed-by";

class OptimizationAttackTest : public ControllerAttackTest {
 protected:
  void SetUp() override {
    ControllerAttackTest::SetUp();
    cluster_.kinds = {
        {{"name", "optimizationjobs"}, {"kind", "OptimizationJob"}, {"namespaced", true}},
        {{"name", "trainjobs"}, {"kind", "TrainJob"}, {"namespaced", true}}};
  }

  static Json Job(const std::string& name) {
    return {
        {"apiVersion", "trainer.kubeflow.org/v1alpha1"},
        {"kind", "OptimizationJob"},
        {"metadata",
         {{"name", name}, {"namespace", "red"}, {"annotations", {{kManager, "shirabe"}}}}},
        {"spec",
         {{"objectives", {{{"metric", "loss"}}}},
          {"parameters",
           {{{"name", "lr"}, {"searchSpace", {{"uniform", {{"min", "0.1"}, {"max", "0.9"}}}}}}}},
          {"numTrials", 2},
          {"parallelTrials", 2},
          {"trainJobTemplate", {{"spec", {{"runtimeRef", {{"name", "plain"}}}}}}}}}};
  }
  void Put(const Json& job) {
    cluster_.Put("/apis/trainer.kubeflow.org/v1alpha1/namespaces/red/optimizationjobs", job);
  }
  // "Failed InvalidSpec: MESSAGE" of all its conditions.
  std::string Conditions(const std::string& name) const {
    const Json object = cluster_.Find(
        "/apis/trainer.kubeflow.org/v1alpha1/namespaces/red/optimizationjobs/" + name);
    std::string text;
    const Json* conditions = FindAt(object, {"status", "conditions"});
    if (conditions == nullptr) return text;
    for (const Json& one : *conditions) {
      absl::StrAppend(&text, Text(one, {"type"}), "=", Text(one, {"status"}), " ",
                      Text(one, {"reason"}), ": ", Text(one, {"message"}), "\n");
    }
    return text;
  }
  std::string Await(const std::string& name) const {
    EXPECT_TRUE(Eventually([&] { return !Conditions(name).empty(); })) << controller_->Err();
    return Conditions(name);
  }
  // Nothing is made for any of them, and it is said why, with these words.
  void ExpectRefused(const std::vector<std::pair<Json, std::string>>& jobs) {
    for (const auto& [job, words] : jobs) Put(job);
    for (const auto& [job, words] : jobs) {
      const std::string name = kube::NameOf(job);
      EXPECT_THAT(Await(name), AllOf(HasSubstr("Created=False"), HasSubstr(words)));
      EXPECT_LT(Conditions(name).size(), 20'000u);
      EXPECT_TRUE(cluster_.Find(CollectionOf("red") + "/" + name).is_null()) << name;
    }
  }
  void ExpectNothingElsewhere() {
    for (const std::string& request : cluster_.requests()) {
      EXPECT_THAT(request, Not(AnyOf(HasSubstr("/secrets"), HasSubstr("kube-system"),
                                     HasSubstr("clusterrole"), HasSubstr(".."))));
    }
    for (const char* plural : {"experiments", "trainjobs"}) {
      for (const Json& object : cluster_.All(plural)) {
        if (!absl::StartsWith(kube::NameOf(object), "honest")) {
          EXPECT_EQ(kube::NamespaceOf(object), "red") << object;
        }
      }
    }
  }
};

// attacks: CRD OptimizationJob metadata.annotations
TEST_F(OptimizationAttackTest, AnnotationsOfAnAttackerAreNamedAndMakeNothing) {
  StartController();
  const std::vector<std::vector<std::string>> all = {
      {"num-trials", "1e999", "num-trials"},
      {"num-trials", "-1", "num-trials"},
      {"num-trials", "99999999999999999999", "num-trials"},
      {"num-trials", "NaN", "num-trials"},
      {"max-failed-trials", "0x", "max-failed-trials"},
      {"algorithm", "../../etc/passwd", "shirabe.dev/algorithm"},
      {"algorithm", std::string(100'000, 'a'), "shirabe.dev/algorithm"},
      {"algorithm", "${trialParameters.lr}", "shirabe.dev/algorithm"},
      {"algorithm-settings", "=", "algorithm-settings"},
      {"algorithm-settings", std::string(50'000, ','), "algorithm-settings"},
      {"early-stopping", "\x1b[31m", "early-stopping"},
      {"early-stopping-settings", "a=b", "early-stopping"},
      {"host-path", "/etc", "host-path"}};
  std::vector<std::pair<Json, std::string>> jobs;
  for (const std::vector<std::string>& one : all) {
    Json job = Job("job" + std::to_string(jobs.size()));
    job["metadata"]["annotations"]["shirabe.dev/" + one[0]] = one[1];
    jobs.emplace_back(job, one[2]);
  }
  ExpectRefused(jobs);
  ExpectNothingElsewhere();
  ExpectAlive();
}

// attacks: CRD OptimizationJob spec
TEST_F(OptimizationAttackTest, SpecsThatNoApiServerWouldAcceptAreRefused) {
  StartController();
  std::vector<std::pair<Json, std::string>> jobs;
  const auto refuse = [&](const std::string& words, const std::function<void(Json&)>& change) {
    Json job = Job("spec" + std::to_string(jobs.size()));
    change(job["spec"]);
    jobs.emplace_back(job, words);
  };
  const auto range = [](Json& spec) -> Json& {
    return spec["parameters"][0]["searchSpace"]["uniform"];
  };
  refuse("finite", [&](Json& spec) { range(spec)["max"] = "1e999"; });
  refuse("finite", [&](Json& spec) { range(spec)["min"] = "-inf"; });
  refuse("must be", [&](Json& spec) { range(spec)["min"] = Json::array(); });
  refuse("lower it", [&](Json& spec) { range(spec)["min"] = "2"; });
  refuse("at most 64", [&](Json& spec) { range(spec)["min"] = std::string(65, '0'); });
  refuse("must be the spec", [](Json& spec) { spec.erase("trainJobTemplate"); });
  refuse("must be the spec", [](Json& spec) { spec["trainJobTemplate"]["spec"] = "x"; });
  refuse("cannot be set in a template", [](Json& spec) {
    spec["trainJobTemplate"]["metadata"] = {{"name", "x"}, {"namespace", "kube-system"}};
  });
  refuse("trainer must be a mapping",
         [](Json& spec) { spec["trainJobTemplate"]["spec"]["trainer"] = 3; });
  refuse("is bound by no", [](Json& spec) {
    spec["trainJobTemplate"]["spec"]["runtimeRef"]["name"] = "${trialParameters.secret}";
  });
  refuse("environment variable", [](Json& spec) { spec["parameters"][0]["name"] = "a=b"; });
  refuse("levels", [](Json& spec) {
    Json deep = 1;
    for (int i = 0; i < 200; ++i) deep = Json::array({deep});
    spec["trainJobTemplate"]["spec"]["x"] = deep;
  });
  refuse("give 1 to 100 parameters", [](Json& spec) {
    for (int i = 0; i < 5'000; ++i) {
      Json more = spec["parameters"][0];
      more["name"] = "p" + std::to_string(i);
      spec["parameters"].push_back(more);
    }
  });
  ExpectRefused(jobs);
  ExpectNothingElsewhere();
  ExpectAlive();
}

// attacks: CRD OptimizationJob metadata.name
TEST_F(OptimizationAttackTest, ANameThatIsAPathBecomesNone) {
  StartController();
  Json job = Job(std::string(250, 'z'));
  Put(job);
  EXPECT_THAT(Await(kube::NameOf(job)), HasSubstr("Created=True"));
  ExpectNothingElsewhere();
  ExpectAlive();
}

// attacks: CRD OptimizationJob metadata.annotations
TEST_F(OptimizationAttackTest, WhoMadeItIsNotBelieved) {
  StartController();
  Json job = Job("forged");
  job["metadata"]["annotations"]["shirabe.dev/created-by"] = "admin";
  Put(job);
  EXPECT_THAT(Await("forged"), HasSubstr("Created=True"));
  const Json made = cluster_.Find(CollectionOf("red") + "/forged");
  EXPECT_THAT(made.dump(), Not(HasSubstr("\"admin\"")));
  // What is not ours is not looked at, whatever it says.
  Json other = Job("others");
  other["metadata"]["annotations"] = {{kManager, "upstream"}, {"shirabe.dev/num-trials", "x"}};
  Put(other);
  ExpectAlive();
  EXPECT_EQ(Conditions("others"), "");
}

}  // namespace
}  // namespace shirabe::attack
