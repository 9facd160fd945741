// What is said of the fields that only a cluster can mean.
#include "trial/local/ineffective_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/parse_struct.h"

namespace shirabe::trial {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Idle(const std::string& spec_json) {
  std::vector<std::string> lines;
  for (const IneffectiveField& idle : FindIneffectiveFields(ParseStruct(spec_json), "main")) {
    lines.push_back(idle.path + ": " + idle.message);
  }
  return lines;
}

std::vector<std::string> IdleOfJob(const std::string& job, const std::string& pod,
                                   const std::string& container) {
  return Idle(absl::StrCat(R"({"kind": "Job", "spec": {)", job,
                           R"("template": {"metadata": {"labels": {}}, "spec": {)", pod,
                           R"("containers": [{"name": "main", "command": ["a"], "image": "b")",
                           container, "}]}}}}"));
}

TEST(IdleFieldsTest, WhatIsDoneIsNotMentioned) {
  EXPECT_THAT(IdleOfJob(R"("backoffLimit": 2, "activeDeadlineSeconds": 3, "completions": 1,)",
                        R"("restartPolicy": "Never", "activeDeadlineSeconds": 3,
                   "initContainers": [{"name": "i", "command": ["a"]}],)",
                        R"(, "args": [], "env": [], "workingDir": "d", "imagePullPolicy": "Always",
                   "resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": 1}})"),
              IsEmpty());
}

TEST(IdleFieldsTest, EachPartSaysAllThatDoesNothing) {
  EXPECT_THAT(
      IdleOfJob(R"("suspend": true, "ttlSecondsAfterFinished": 5,)",
                R"("volumes": [], "securityContext": {}, "nodeSelector": {"a": "b"},
                   "terminationGracePeriodSeconds": 60,)",
                R"(, "volumeMounts": [], "resources": {"limits": {"memory": "1Gi"}})"),
      ElementsAre(
          AllOf(HasSubstr("trialSpec.spec: suspend and ttlSecondsAfterFinished do nothing"),
                HasSubstr("on this machine")),
          HasSubstr("spec.template.spec: nodeSelector, securityContext, "
                    "terminationGracePeriodSeconds and volumes do nothing"),
          HasSubstr("containers[0]: resources.limits[\"memory\"] and volumeMounts do nothing")));
  EXPECT_THAT(IdleOfJob("", "", R"(, "lifecycle": {})"),
              ElementsAre(HasSubstr("containers[0]: lifecycle does nothing")));
}

TEST(IdleFieldsTest, OtherContainersDoNotRun) {
  EXPECT_THAT(Idle(R"({"kind": "Pod", "spec": {"containers": [{"name": "main"},
                                                              {"name": "proxy"}],
                       "initContainers": [{"name": "i", "volumeMounts": []}]}})"),
              ElementsAre(HasSubstr("spec.containers[1]: container \"proxy\" does not run"),
                          HasSubstr("spec.initContainers[0]: volumeMounts does nothing")));
}

TEST(IdleFieldsTest, WhatIsNoTemplateIsForOthersToSay) {
  EXPECT_THAT(Idle("{}"), IsEmpty());
  EXPECT_THAT(Idle(R"({"kind": "Pod", "spec": {"containers": [{"name": "x"}]}})"), IsEmpty());
}

}  // namespace
}  // namespace shirabe::trial
