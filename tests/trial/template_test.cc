#include "trial/inactive_parameters.h"
#include "trial/trial_template.h"

#include <cmath>
#include <limits>

#include "base/text/number.h"
#include "tests/support/parse_struct.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const TrialKey kTrial{{"team", "digits"}, 7};

v1::Assignment Number(const std::string& name, double value) {
  v1::Assignment assignment;
  assignment.set_name(name);
  assignment.set_number(value);
  return assignment;
}

v1::Assignment Category(const std::string& name, const std::string& value) {
  v1::Assignment assignment;
  assignment.set_name(name);
  assignment.set_category(value);
  return assignment;
}

// A template over `spec_json` with (name, reference) trial parameters.
v1::TrialTemplate Template(const std::string& spec_json,
                           const std::vector<std::pair<std::string, std::string>>& parameters) {
  v1::TrialTemplate result;
  *result.mutable_trial_spec() = ParseStruct(spec_json);
  for (const auto& [name, reference] : parameters) {
    auto* parameter = result.add_trial_parameters();
    parameter->set_name(name);
    parameter->set_reference(reference);
  }
  return result;
}

// Renders {"x": text} and returns the text.
StatusOr<std::string> RenderText(const std::string& text, const v1::TrialTemplate& parameters,
                                 const std::vector<v1::Assignment>& assignments) {
  v1::TrialTemplate with_text = parameters;
  (*with_text.mutable_trial_spec()->mutable_fields())["x"].set_string_value(text);
  ASSIGN_OR_RETURN(auto rendered, Render(with_text, kTrial, assignments));
  return rendered.fields().at("x").string_value();
}

TEST(FormatAssignment, WritesTheShortestTextThatReadsBack) {
  EXPECT_EQ(FormatAssignment(Number("lr", 0.001)), "0.001");
  EXPECT_EQ(FormatAssignment(Number("lr", 1e-5)), "1e-05");
  EXPECT_EQ(FormatAssignment(Number("momentum", 1)), "1");
  v1::Assignment layers;
  layers.set_integer(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(FormatAssignment(layers), "9223372036854775807");
  EXPECT_EQ(FormatAssignment(Category("optimizer", "adam")), "adam");
  EXPECT_EQ(FormatAssignment(v1::Assignment()), "");
}

TEST(FormatAssignment, EveryDoubleSurvives) {
  for (double value : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, -2.5, 123456789.125}) {
    EXPECT_EQ(ParseNumber(FormatAssignment(Number("x", value))), value);
  }
}

TEST(ReferencedParameters, AreFoundAnywhereSortedAndOnce) {
  const auto spec = ParseStruct(R"({
    "a": "--lr=${trialParameters.lr} ${trialParameters.lr}",
    "b": [{"c": ["x", "${trialParameters.batch-size}"]}, 3, null, true],
    "${trialParameters.key}": "keys are not substituted"})");
  EXPECT_THAT(ReferencedParameters(spec), ElementsAre("batch-size", "lr"));
}

TEST(ReferencedParameters, IgnoresWhatIsNoReference) {
  const auto spec = ParseStruct(R"({"a": "${trialParameters.} $trialParameters.x ${trialSpec.Name}",
                                    "b": "${trialParameters.open"})");
  EXPECT_THAT(ReferencedParameters(spec), IsEmpty());
}

TEST(IsMetadataReference, KnowsKatibsSix) {
  for (const char* good :
       {"${trialSpec.Name}", "${trialSpec.Namespace}", "${trialSpec.Kind}",
        "${trialSpec.APIVersion}", "${trialSpec.Annotations[a.b/c]}", "${trialSpec.Labels[app]}"}) {
    EXPECT_TRUE(IsMetadataReference(good)) << good;
  }
  for (const char* bad :
       {"", "lr", "${trialSpec.", "${trialSpec.}", "${trialSpec.name}", "${trialSpec.Labels}",
        "${trialSpec.Labels[]}", "${trialSpec.Labels[a}", "${trialSpec.Name", "trialSpec.Name",
        "${trialSpec.Name}x", "${trialParameters.lr}"}) {
    EXPECT_FALSE(IsMetadataReference(bad)) << bad;
  }
}

TEST(Render, SubstitutesInsideStringsOnly) {
  const auto from = Template(
      R"({"command": ["train", "--lr=${trialParameters.rate}", "${trialParameters.rate}"],
          "replicas": 2, "on": true, "nothing": null})",
      {{"rate", "lr"}});
  const auto rendered = Render(from, kTrial, {Number("lr", 0.25)});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  const auto& argv = rendered->fields().at("command").list_value();
  EXPECT_EQ(argv.values(1).string_value(), "--lr=0.25");
  // A string that is only one reference stays a string.
  EXPECT_EQ(argv.values(2).kind_case(), google::protobuf::Value::kStringValue);
  EXPECT_EQ(rendered->fields().at("replicas").number_value(), 2);
  EXPECT_TRUE(rendered->fields().at("on").bool_value());
  EXPECT_EQ(rendered->fields().at("nothing").kind_case(), google::protobuf::Value::kNullValue);
}

TEST(Render, NoValueCanChangeTheStructureOrBeExpandedAgain) {
  const auto parameters = Template("{}", {{"a", "a"}, {"b", "b"}});
  const std::vector<v1::Assignment> hostile = {
      Category("a", "\", \"evil\": \"${trialParameters.b}$(B)\n- x: {"), Category("b", "secret")};
  EXPECT_EQ(*RenderText("${trialParameters.a}|${trialParameters.b}", parameters, hostile),
            "\", \"evil\": \"${trialParameters.b}$(B)\n- x: {|secret");
}

TEST(Render, KeepsTextAroundAndBrokenReferences) {
  const auto parameters = Template("{}", {{"a", "a"}});
  const std::vector<v1::Assignment> values = {Category("a", "X")};
  for (const auto& [text, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"${trialParameters.a}${trialParameters.a}", "XX"},
           {"$${trialParameters.a}}", "$X}"},
           {"${trialParameters.}${trialParameters.a}", "${trialParameters.}X"},
           {"${trialParameters.a", "${trialParameters.a"},
           {"${trialSpec.Name}", "${trialSpec.Name}"},
           {"é ${trialParameters.a} 調", "é X 調"}}) {
    EXPECT_EQ(*RenderText(text, parameters, values), wanted) << text;
  }
}

TEST(Render, ReadsMetadata) {
  const auto from = Template(
      R"({"apiVersion": "batch/v1", "kind": "Job",
          "metadata": {"labels": {"app": "web"}, "annotations": {"a.b/c": "note"}},
          "x": "${trialParameters.n} ${trialParameters.ns} ${trialParameters.k}",
          "y": "${trialParameters.v} ${trialParameters.l} ${trialParameters.a}"})",
      {{"n", "${trialSpec.Name}"},
       {"ns", "${trialSpec.Namespace}"},
       {"k", "${trialSpec.Kind}"},
       {"v", "${trialSpec.APIVersion}"},
       {"l", "${trialSpec.Labels[app]}"},
       {"a", "${trialSpec.Annotations[a.b/c]}"}});
  const auto rendered = Render(from, kTrial, {});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  EXPECT_EQ(rendered->fields().at("x").string_value(), "digits-7 team Job");
  EXPECT_EQ(rendered->fields().at("y").string_value(), "batch/v1 web note");
}

TEST(Render, NamesALabelThatIsMissing) {
  const auto rendered = Render(Template("{}", {{"l", "${trialSpec.Labels[app]}"}}), kTrial, {});
  EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(rendered.status()), HasSubstr("trialParameters[0].reference"));
  EXPECT_THAT(Message(rendered.status()), HasSubstr("metadata.labels[\"app\"]"));
}

TEST(Render, LeavesOutWhatTheTrialDoesNotHave) {
  const auto from = Template(
      R"({"command": ["train", "--m=${trialParameters.m}", "--verbose",
                      "--n", "${trialParameters.n}", "-x", "${trialParameters.lr}",
                      "--m=${trialParameters.m}"],
          "env": [{"name": "M", "value": "${trialParameters.m}"},
                  {"name": "LR", "value": "${trialParameters.lr}"}],
          "nested": [{"args": ["--n", "${trialParameters.n}"]}]})",
      {{"m", "momentum"}, {"n", "nesterov"}, {"lr", "lr"}});
  const auto own = WithoutInactive(from, {"momentum", "nesterov"});
  ASSERT_TRUE(own.ok()) << own.status();
  const auto rendered = Render(*own, kTrial, {Number("lr", 0.25)});
  ASSERT_TRUE(rendered.ok()) << rendered.status();
  const auto words = [&](const google::protobuf::Value& list) {
    std::vector<std::string> all;
    for (const auto& item : list.list_value().values()) all.push_back(item.string_value());
    return all;
  };
  EXPECT_THAT(words(rendered->fields().at("command")),
              ElementsAre("train", "--verbose", "-x", "0.25"));
  const auto& env = rendered->fields().at("env").list_value();
  ASSERT_EQ(env.values_size(), 1);
  EXPECT_EQ(env.values(0).struct_value().fields().at("value").string_value(), "0.25");
  const auto& nested = rendered->fields().at("nested").list_value().values(0).struct_value();
  EXPECT_THAT(words(nested.fields().at("args")), IsEmpty());
}

TEST(Render, SaysWhereWhatTheTrialDoesNotHaveCannotBeLeftOut) {
  for (const char* text : {"fit ${trialParameters.m}", "${trialParameters.m}",
                           "--m=${trialParameters.m},${trialParameters.m}"}) {
    const auto from =
        Template(std::string(R"({"command": ["sh", ")") + text + R"("]})", {{"m", "momentum"}});
    EXPECT_THAT(Message(WithoutInactive(from, {"momentum"}).status()),
                HasSubstr("trialSpec.command[1]: ${trialParameters.m} has no value in this trial"));
  }
}

TEST(Render, NamesAReferenceThatNothingBinds) {
  const auto rendered =
      Render(Template(R"({"a": [{"b": "--x=${trialParameters.typo}"}]})", {}), kTrial, {});
  EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(rendered.status()), HasSubstr("trialSpec.a[0].b: ${trialParameters.typo}"));
}

TEST(Render, NamesAParameterThatTheTrialLacks) {
  const auto rendered =
      Render(Template("{}", {{"rate", "lr2"}}), kTrial, {Number("lr", 1), Number("bs", 2)});
  EXPECT_EQ(rendered.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(rendered.status()), HasSubstr("\"lr2\" is not a parameter"));
  EXPECT_THAT(Message(rendered.status()), HasSubstr("bs, lr"));
}

TEST(Render, RefusesATemplateWithoutAnObject) {
  EXPECT_EQ(Render(v1::TrialTemplate(), kTrial, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Render, LeavesTheTemplateAlone) {
  const auto from = Template(R"({"a": "${trialParameters.x}"})", {{"x", "x"}});
  const auto before = from.SerializeAsString();
  ASSERT_TRUE(Render(from, kTrial, {Number("x", 1)}).ok());
  EXPECT_EQ(from.SerializeAsString(), before);
}

}  // namespace
}  // namespace shirabe::trial
