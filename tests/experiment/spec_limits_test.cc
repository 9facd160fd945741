#include "experiment/spec/spec_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace shirabe::experiment {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Broken(const std::function<void(v1::Experiment&)>& change) {
  v1::Experiment experiment;
  change(experiment);
  Findings findings;
  CheckSpecLimits(experiment, findings);
  std::vector<std::string> texts;
  for (const Finding& finding : findings.Sorted()) texts.push_back(InWords(finding));
  return texts;
}

TEST(LimitsTest, AnEmptyOneIsWithinThem) {
  EXPECT_THAT(Broken([](v1::Experiment&) {}), IsEmpty());
}

TEST(LimitsTest, EachNamesItsFieldTheNumberAndTheLimit) {
  const auto values = [](int count) {
    return [count](v1::Experiment& e) {
      auto& space = *e.mutable_spec()->add_parameters()->mutable_feasible_space();
      for (int i = 0; i < count; ++i) space.add_list("v");
    };
  };
  EXPECT_THAT(Broken(values(kMaxListValues)), IsEmpty());
  EXPECT_THAT(Broken(values(kMaxListValues + 1)),
              Contains("spec.parameters[0].feasibleSpace.list: has 10001 items, and at most 10000 "
                       "are taken: give fewer"));
  EXPECT_THAT(Broken([](v1::Experiment& e) {
                for (int i = 0; i <= kMaxParameters; ++i) e.mutable_spec()->add_parameters();
              }),
              Contains(HasSubstr("spec.parameters: has 1001 items, and at most 1000")));
  EXPECT_THAT(Broken([](v1::Experiment& e) {
                e.mutable_spec()->add_parameters()->set_name(std::string(kMaxNameBytes + 1, 'n'));
              }),
              Contains(HasSubstr("spec.parameters[0].name: has 513 bytes, and at most 512")));
  EXPECT_THAT(Broken([](v1::Experiment& e) {
                for (int i = 0; i <= kMaxStartPoints; ++i) {
                  e.mutable_spec()->mutable_shirabe()->add_start();
                }
              }),
              Contains(HasSubstr("spec.shirabe.start: has 1001 items")));
  EXPECT_THAT(Broken([](v1::Experiment& e) {
                for (int i = 0; i <= kMaxLabels; ++i) {
                  (*e.mutable_metadata()->mutable_labels())[absl::StrCat(i)] = "";
                }
              }),
              Contains(HasSubstr("metadata.labels: has 1001 items")));
  EXPECT_THAT(Broken([](v1::Experiment& e) {
                (*e.mutable_metadata()->mutable_annotations())["a"] =
                    std::string(kMaxSpecBytes, 'x');
              }),
              Contains(HasSubstr("spec: has 10")));
}

TEST(LimitsTest, UnknownEnumsAreErrorsOfTheirField) {
  EXPECT_THAT(Broken([](v1::Experiment& e) {
                e.mutable_spec()->set_resume_policy(static_cast<v1::ResumePolicy>(9));
              }),
              Contains(HasSubstr("spec.resumePolicy: 9 is not a value of ResumePolicy")));
}

// Rules that take time in proportion are not looked at where there is too much of anything, and
// mistakes without number are not all written down.
TEST(LimitsTest, FindingsAreBounded) {
  Findings findings;
  const std::string text(100'000, 'x');
  for (int i = 0; i < 100'000; ++i) findings.Error(ItemPath("a", i), text);
  EXPECT_EQ(findings.errors(), 100'000);
  const auto found = findings.Sorted();
  ASSERT_EQ(found.size(), Findings::kMaxFindings + 1);
  EXPECT_LT(found[0].message.size(), 3000);
  EXPECT_THAT(found.back().message, HasSubstr("there are more"));
  EXPECT_FALSE(found.back().warning);
}

TEST(LimitsTest, AMessageHasTheFirstErrorsAndHowManyMore) {
  std::vector<Finding> findings = {{.warning = true, .path = "w", .message = "is odd"}};
  EXPECT_TRUE(JoinErrors(findings).ok());
  findings.push_back({.path = "a", .message = "is bad"});
  findings.push_back({.path = "b", .message = "is worse"});
  EXPECT_EQ(JoinErrors(findings),
            absl::InvalidArgumentError("error: a: is bad\nerror: b: is worse"));
  findings.resize(21, {.path = "c", .message = "is bad"});  // 20 errors
  EXPECT_THAT(JoinErrors(findings).message(), Not(HasSubstr("more")));
  findings.resize(26, {.path = "last", .message = "is bad"});
  EXPECT_THAT(std::string(JoinErrors(findings).message()),
              EndsWith("error: c: is bad\nand 5 more"));
}

TEST(LimitsTest, PathsOfLongKeysAreShort) {
  const std::string key(100'000, 'k');
  EXPECT_LT(ChildPath("spec", key).size(), 400);
  EXPECT_NE(ChildPath("spec", key + "a"), ChildPath("spec", key + "b"));
}

}  // namespace
}  // namespace shirabe::experiment
