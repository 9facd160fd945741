#include "absl/strings/str_cat.h"
#include "tests/support/parse_struct.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

StatusOr<Command> Read(const std::string& spec_json,
                       const std::map<std::string, std::string>& environment = {}) {
  return ReadCommand(ParseStruct(spec_json), "main", environment);
}

// A Job whose primary container has these further fields.
StatusOr<Command> ReadContainer(const std::string& fields,
                                const std::map<std::string, std::string>& environment = {}) {
  return Read(absl::StrCat(R"({"kind": "Job", "spec": {"template": {"spec": {"containers": [)",
                           R"({"name": "sidecar", "command": ["no"]}, {"name": "main", )", fields,
                           "}]}}}}"),
              environment);
}

void ExpectInvalid(const StatusOr<Command>& command, const std::string& part) {
  EXPECT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(command.status()), HasSubstr(part));
}

TEST(ReadCommand, ReadsAJob) {
  const auto command = ReadContainer(R"("command": ["python3", "train.py"], "args": ["--lr=1"],
      "env": [{"name": "A", "value": "1"}, {"name": "B"}], "workingDir": "src",
      "resources": {"limits": {"nvidia.com/gpu": 2, "cpu": "4"}})");
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv, ElementsAre("python3", "train.py", "--lr=1"));
  EXPECT_THAT(command->env, ElementsAre(Pair("A", "1"), Pair("B", "")));
  EXPECT_EQ(command->working_dir, "src");
  EXPECT_EQ(command->gpus, 2);
}

TEST(ReadCommand, ReadsAPodAndAnOperatorsObject) {
  const char* container = R"({"containers": [{"name": "main", "command": ["true"]}]})";
  for (const std::string& spec :
       {absl::StrCat(R"({"kind": "Pod", "spec": )", container, "}"),
        absl::StrCat(R"({"kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {"Master":
                         {"replicas": 1, "template": {"spec": )",
                     container, "}}}}}"),
        absl::StrCat(R"({"kind": "JobSet", "spec": {"replicatedJobs": [{"name": "w", "template":
                         {"spec": {"template": {"spec": )",
                     container, "}}}}]}}")}) {
    const auto command = Read(spec);
    ASSERT_TRUE(command.ok()) << command.status() << spec;
    EXPECT_THAT(command->argv, ElementsAre("true"));
    EXPECT_EQ(command->gpus, 0);
    EXPECT_THAT(command->env, IsEmpty());
  }
}

TEST(ReadCommand, NamesTheContainersThereAre) {
  const auto command = ReadCommand(
      ParseStruct(R"({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})"), "main", {});
  ExpectInvalid(command,
                "\"main\" is not a container of the trial's object, which has: \"a\", \"b\"");
  ExpectInvalid(ReadCommand({}, "main", {}), "holds no containers");
  ExpectInvalid(Read(R"({"kind": "TrainJob", "spec": {"runtimeRef": {"name": "torch"}}})"),
                "is a TrainJob, whose containers are in a runtime of a cluster");
}

TEST(ReadCommand, RefusesSeveralPodsWithThatContainer) {
  ExpectInvalid(Read(R"({"spec": {
      "Master": {"template": {"spec": {"containers": [{"name": "main", "command": ["a"]}]}}},
      "Worker": {"template": {"spec": {"containers": [{"name": "main", "command": ["b"]}]}}}}})"),
                "spec.Worker.template.spec.containers[0]: a second container named \"main\"");
}

TEST(ReadCommand, RefusesWhatOnlyAClusterKnows) {
  ExpectInvalid(ReadContainer(R"("image": "x", "args": ["a"])"),
                "containers[1].command: is missing");
  ExpectInvalid(ReadContainer(R"("command": [])"), "is missing");
  ExpectInvalid(ReadContainer(R"("command": [""])"), "command[0]: is empty");
  ExpectInvalid(ReadContainer(R"("command": ["a"],
      "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])"),
                "env[0].valueFrom: can be resolved only in a cluster");
  ExpectInvalid(ReadContainer(R"("command": ["a"], "envFrom": [{"configMapRef": {"name": "c"}}])"),
                "envFrom");
}

TEST(ReadCommand, RefusesWrongTypes) {
  ExpectInvalid(ReadContainer(R"("command": "python3 train.py")"), "must be a list of texts");
  ExpectInvalid(ReadContainer(R"("command": ["sleep", 10])"), "command[1]: is a number");
  ExpectInvalid(ReadContainer(R"("command": ["a"], "args": [null])"), "args[0]: is nothing");
  ExpectInvalid(ReadContainer(R"("command": ["a\u0000b"])"), "NUL");
  ExpectInvalid(ReadContainer(R"("command": ["a"], "env": {"A": "b"})"), "env: must be a list");
  ExpectInvalid(ReadContainer(R"("command": ["a"], "env": [{"name": "A=B"}])"), "env[0].name");
  ExpectInvalid(ReadContainer(R"("command": ["a"], "env": [{"value": "b"}])"), "env[0].name");
  ExpectInvalid(ReadContainer(R"("command": ["a"], "env": [{"name": "A", "value": true}])"),
                "env[0].value: is true or false");
}

TEST(ReadCommand, ReadsGpusOfLimitsThenRequests) {
  const auto gpus = [](const std::string& resources) {
    return ReadContainer(absl::StrCat(R"("command": ["a"], "resources": )", resources));
  };
  EXPECT_EQ(gpus(R"({"requests": {"nvidia.com/gpu": "3"}})")->gpus, 3);
  EXPECT_EQ(gpus(R"({"limits": {"nvidia.com/gpu": 1}, "requests": {"nvidia.com/gpu": 1}})")->gpus,
            1);
  EXPECT_EQ(gpus(R"({"limits": {"cpu": 1}})")->gpus, 0);
  EXPECT_EQ(gpus("null")->gpus, 0);
  for (const char* bad : {"-1", "0.5", "\"two\"", "1e30", "{}"}) {
    ExpectInvalid(gpus(absl::StrCat(R"({"limits": {"nvidia.com/gpu": )", bad, "}}")),
                  "resources.limits[\"nvidia.com/gpu\"]: must be a whole number");
  }
}

TEST(ReadCommand, ExpandsVariablesAsAPodDoes) {
  const std::map<std::string, std::string> environment = {{"SHIRABE_SEED", "7"}, {"A", "old"}};
  const auto command = ReadContainer(
      R"json("command": ["$(A)", "$(SHIRABE_SEED)", "$$(A)", "$(UNKNOWN)", "$(A", "$", "$$", "a$b"],
         "args": ["x$(A)y$(B)"],
         "env": [{"name": "A", "value": "new-$(SHIRABE_SEED)"}, {"name": "B", "value": "<$(A)>"},
                 {"name": "C", "value": "$(D)"}, {"name": "D", "value": "late"}])json",
      environment);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv, ElementsAre("new-7", "7", "$(A)", "$(UNKNOWN)", "$(A", "$", "$", "a$b",
                                         "xnew-7y<new-7>"));
  EXPECT_THAT(command->env, ElementsAre(Pair("A", "new-7"), Pair("B", "<new-7>"), Pair("C", "$(D)"),
                                        Pair("D", "late")));
}

TEST(ReadCommand, NeverExpandsTwice) {
  const auto command =
      ReadContainer(R"json("command": ["$(A)"], "env": [{"name": "A", "value": "$$(B)"},
                                        {"name": "B", "value": "no"}])json");
  EXPECT_THAT(command->argv, ElementsAre("$(B)"));
}

TEST(ReadCommand, PassesShellSyntaxAsItIs) {
  const auto command =
      ReadContainer(R"("command": ["sh", "-c", "echo `id`; $x > 'a b' && \"$y\""])");
  EXPECT_THAT(command->argv, ElementsAre("sh", "-c", "echo `id`; $x > 'a b' && \"$y\""));
}

// ---- the pod and its Job ------------------------------------------------------------------------

// A Job with these further fields, whose pod has these.
StatusOr<Command> ReadJob(const std::string& job, const std::string& pod,
                          const std::map<std::string, std::string>& environment = {}) {
  return Read(absl::StrCat(R"({"kind": "Job", "spec": {)", job, R"("template": {"spec": {)", pod,
                           R"("containers": [{"name": "main", "command": ["run"],
                               "env": [{"name": "A", "value": "of main"}]}]}}}})"),
              environment);
}

TEST(ReadCommand, ReadsInitContainersInOrder) {
  const auto command = ReadJob("", R"json("initContainers": [
      {"name": "fetch", "command": ["get", "$(SEED)"], "args": ["$(A)"], "workingDir": "data",
       "env": [{"name": "A", "value": "<$(SEED)>"}], "image": "busybox"},
      {"command": ["unpack", "$(A)"]}],)json",
                               {{"SEED", "7"}});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->argv, ElementsAre("run"));
  ASSERT_EQ(command->init.size(), 2u);
  const InitCommand& fetch = command->init[0];
  EXPECT_EQ(fetch.name, "fetch");
  EXPECT_THAT(fetch.command.argv, ElementsAre("get", "7", "<7>"));
  EXPECT_THAT(fetch.command.env, ElementsAre(Pair("A", "<7>")));
  EXPECT_EQ(fetch.command.working_dir, "data");
  EXPECT_EQ(command->init[1].name, "initContainers[1]");
  EXPECT_THAT(command->init[1].command.argv, ElementsAre("unpack", "$(A)"))
      << "the program's own variables are not theirs";
}

TEST(ReadCommand, AnInitContainerThatCannotRunHereIsNamed) {
  const std::string at = "spec.template.spec.initContainers[0]";
  ExpectInvalid(ReadJob("", R"("initContainers": [{"name": "a"}],)"), at + ".command: is missing");
  ExpectInvalid(ReadJob("", R"("initContainers": [{"name": "proxy", "command": ["a"],
                               "restartPolicy": "Always"}],)"),
                at + ".restartPolicy: Always makes it a sidecar");
  ExpectInvalid(ReadJob("", R"("initContainers": [{"command": ["a"], "envFrom": []}],)"),
                at + ".envFrom: can be resolved only in a cluster");
}

TEST(ReadCommand, TheLeastOfTwoDeadlinesIsTheLimit) {
  const auto limit = [](const std::string& job, const std::string& pod) {
    const auto command = ReadJob(job, pod);
    EXPECT_TRUE(command.ok()) << command.status();
    return command.ok() ? command->limit : std::nullopt;
  };
  const std::string two = R"("activeDeadlineSeconds": 2,)";
  const std::string nine = R"("activeDeadlineSeconds": 9,)";
  EXPECT_FALSE(limit("", "").has_value());
  EXPECT_EQ(limit(two, "")->time, absl::Seconds(2));
  EXPECT_TRUE(limit(two, "")->of_job);
  EXPECT_EQ(limit("", two)->time, absl::Seconds(2));
  EXPECT_FALSE(limit("", two)->of_job);
  EXPECT_EQ(limit(nine, two)->time, absl::Seconds(2));
  EXPECT_FALSE(limit(nine, two)->of_job);
  EXPECT_TRUE(limit(two, nine)->of_job);
  EXPECT_TRUE(limit(two, two)->of_job) << "then the Job has failed for good";
  for (const char* bad : {"0", "-1", "2.5", "\"2\"", "1e12", "[2]", "true"}) {
    ExpectInvalid(ReadJob(absl::StrCat(R"("activeDeadlineSeconds": )", bad, ","), ""),
                  "trialSpec.spec.activeDeadlineSeconds: must be a whole number of seconds");
    ExpectInvalid(ReadJob("", absl::StrCat(R"("activeDeadlineSeconds": )", bad, ",")),
                  "spec.template.spec.activeDeadlineSeconds: must be a whole number");
  }
}

TEST(ReadCommand, SeveralPodsNeedACluster) {
  for (const char* field : {"completions", "parallelism", "replicas"}) {
    for (const char* count : {"2", "0", "\"1\""}) {
      ExpectInvalid(ReadJob(absl::StrCat("\"", field, "\": ", count, ","), ""),
                    absl::StrCat("trialSpec.spec.", field, ": is not 1"));
    }
    EXPECT_TRUE(ReadJob(absl::StrCat("\"", field, "\": 1,"), "").ok());
    EXPECT_TRUE(ReadJob(absl::StrCat("\"", field, "\": null,"), "").ok());
  }
}

}  // namespace
}  // namespace shirabe::trial
