// Printing is the reverse of reading.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "experiment/spec/parse_spec.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The first line that differs; the whole would be unreadable.
testing::AssertionResult Same(const v1::Experiment& a, const v1::Experiment& b) {
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(a, b)) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << differences.substr(0, std::min<size_t>(500, differences.find('\n')));
}

testing::AssertionResult ReadsBack(const std::string& text, const v1::Experiment& experiment) {
  const auto read = ParseExperiments(text);
  if (read.size() != 1) return testing::AssertionFailure() << read.size() << " documents";
  return Same(experiment, read[0].experiment);
}

TEST(Print, JsonIsYaml) {
  const v1::Experiment experiment = ParseOnly(kGood);
  EXPECT_TRUE(ReadsBack(ToJson(experiment), experiment));
  EXPECT_TRUE(ReadsBack(ToJson(experiment, 2), experiment));
}

TEST(Print, LooksLikeKubectl) {
  EXPECT_EQ(ToYaml(ParseOnly(kGood).spec().trial_template()),
            R"(trialSpec:
  apiVersion: batch/v1
  kind: Job
  spec:
    template:
      spec:
        containers:
        - args:
          - ${trialParameters.batch}
          - ${trialParameters.optimizer}
          command:
          - fit
          - ${trialParameters.lr}
          - ${trialParameters.units}
          image: python:3.11
          name: training-container
trialParameters:
- name: lr
  reference: lr
- name: units
  reference: units
- name: batch
  reference: batch
- name: optimizer
  reference: optimizer
primaryContainerName: training-container
successCondition: status.conditions.#(type=="Complete")#|#(status=="True")#
failureCondition: status.conditions.#(type=="Failed")#|#(status=="True")#
)");
}

TEST(Print, NumbersThatKatibQuotesAreQuoted) {
  const std::string yaml = ToYaml(ParseOnly(kGood));
  EXPECT_THAT(yaml, HasSubstr("min: \"0.001\""));
  EXPECT_THAT(yaml, HasSubstr("- \"16\""));
  EXPECT_THAT(yaml, HasSubstr("maxTrialCount: 10\n"));
  EXPECT_THAT(yaml, HasSubstr("parameterType: discrete"));
  EXPECT_THAT(yaml, Not(HasSubstr("numbers")));
}

TEST(Print, StatusIsShapedAsKatibs) {
  v1::Experiment experiment;
  auto& best = *experiment.mutable_status()->mutable_current_optimal_trial();
  best.set_best_trial_name("good-7");
  best.set_objective(0.25);
  auto& assignment = *best.add_parameter_assignments();
  assignment.set_name("lr");
  assignment.set_number(1e-5);
  auto& metric = *best.mutable_observation()->add_metrics();
  metric.set_name("loss");
  metric.set_min(0.25);
  metric.set_latest(std::numeric_limits<double>::quiet_NaN());
  experiment.mutable_status()->mutable_start_time()->set_seconds(1795249800);
  experiment.mutable_status()->mutable_shirabe()->set_memo("\x01\xFF");
  EXPECT_EQ(ToYaml(experiment), R"(status:
  currentOptimalTrial:
    bestTrialName: good-7
    parameterAssignments:
    - name: lr
      value: "1e-05"
    observation:
      metrics:
      - name: loss
        min: "0.25"
        latest: NaN
  startTime: "2026-11-21T08:30:00Z"
  shirabe: {}
)");
  EXPECT_EQ(ToJson(assignment), R"({"name":"lr","value":"1e-05"})");
}

TEST(Print, AnEmptyMessageIsAnEmptyMapping) {
  EXPECT_EQ(ToYaml(v1::Experiment()), "{}\n");
  EXPECT_EQ(ToJson(v1::Experiment()), "{}");
}

TEST(Print, DoublesAreShortestAndIntegersStayIntegers) {
  google::protobuf::Struct object;
  auto& fields = *object.mutable_fields();
  fields["a"].set_number_value(0.1);
  fields["b"].set_number_value(32);
  fields["c"].set_number_value(1e300);
  fields["d"].set_number_value(-0.0);
  fields["e"].set_number_value(9007199254740992.0);
  fields["f"].set_number_value(std::numeric_limits<double>::infinity());
  v1::TrialTemplate trial;
  *trial.mutable_trial_spec() = object;
  EXPECT_EQ(ToJson(trial), R"({"trialSpec":{"a":0.1,"b":32,"c":1e+300,"d":-0.0,)"
                           R"("e":9007199254740992,"f":"Infinity"}})");
}

// Text that some reader might take for something else.
const std::string kTexts[] = {
    "",
    " ",
    "a",
    "true",
    "no",
    "y",
    "~",
    "null",
    "12",
    "1e5",
    "0x1F",
    "1_0",
    "1:30",
    ".5",
    ".inf",
    "2026-11-21",
    "a: b",
    "a:",
    "a #b",
    "#a",
    "- a",
    "-",
    "--",
    "---",
    "--- x",
    "...",
    "-a",
    "--a=b",
    "?",
    "? a",
    "!a",
    "&a",
    "*a",
    "[a]",
    "{a}",
    "{{a}}",
    "%a",
    "@a",
    "`a`",
    "|",
    ">",
    "'a'",
    "\"a\"",
    "a'b",
    "a\\b",
    " a",
    "a ",
    "a\tb",
    "\ta",
    "a\n",
    "a\nb",
    "a\nb\n",
    "a\n\nb\n",
    "a\n\n",
    "\na",
    "  a\nb",
    "a \nb",
    "a\n  b\n",
    "a\r\nb",
    "a\rb",
    "調べ",
    "é\nè",
    "\x7F",
    "\xC2\x85",
    "\xE2\x80\xA8",
    "\xEF\xBB\xBF",
    "\xEF\xBF\xBD",
    "\xF0\x9F\x8E\xAF",
    std::string("a\0b", 3),
    "<<",
    "=",
    "a,b",
    "k: [v",
    "#",
    "a\n#b\n",
    "a\n- b\n",
    "a\n---\n",
    std::string(3000, 'x'),
    "x: |\n  y\n",
};

TEST(Print, EveryTextSurvives) {
  v1::Experiment experiment = ParseOnly(kGood);
  auto& object = *experiment.mutable_spec()->mutable_trial_template()->mutable_trial_spec();
  auto& list = *(*object.mutable_fields())["texts"].mutable_list_value();
  auto& keys = *(*object.mutable_fields())["keys"].mutable_struct_value()->mutable_fields();
  for (const std::string& text : kTexts) {
    list.add_values()->set_string_value(text);
    list.add_values()->mutable_list_value()->add_values()->set_string_value(text);
    (*list.add_values()->mutable_struct_value()->mutable_fields())["k"].set_string_value(text);
    keys[text].set_string_value(text);
  }
  EXPECT_TRUE(ReadsBack(ToYaml(experiment), experiment));
}

TEST(Print, KatibsShapesSurvive) {
  for (const std::string& name : KatibFiles()) {
    SCOPED_TRACE(name);
    const v1::Experiment experiment = ParseOnly(ReadTestFile(name));
    EXPECT_TRUE(ReadsBack(ToYaml(experiment), experiment));
    EXPECT_TRUE(ReadsBack(ToJson(experiment), experiment));
  }
}

// Fills every field of a message with something at random, some of them not at all.
class RandomMessage {
 public:
  explicit RandomMessage(uint64_t seed) : rng_(seed) {}

  void Fill(google::protobuf::Message& message, int depth) {
    const auto& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const auto& field = *type.field(i);
      const auto& rule = field.options().GetExtension(v1::field);
      if (rule.internal() || rule.ignored() || rng_.Below(3) == 0) continue;
      const int count = field.is_repeated() ? 1 + static_cast<int>(rng_.Below(3)) : 1;
      for (int k = 0; k < count && !field.is_map(); ++k) FillField(message, field, depth);
    }
  }

 private:
  using Field = google::protobuf::FieldDescriptor;

  void FillField(google::protobuf::Message& m, const Field& f, int depth) {
    const auto& r = *m.GetReflection();
    const bool many = f.is_repeated();
    switch (f.cpp_type()) {
      case Field::CPPTYPE_STRING:
        return many ? r.AddString(&m, &f, Text()) : r.SetString(&m, &f, Text());
      case Field::CPPTYPE_DOUBLE: return r.SetDouble(&m, &f, Double());
      case Field::CPPTYPE_INT32:
        return many ? r.AddInt32(&m, &f, Int()) : r.SetInt32(&m, &f, Int());
      case Field::CPPTYPE_INT64: return r.SetInt64(&m, &f, static_cast<int64_t>(rng_.Next()));
      case Field::CPPTYPE_BOOL: return r.SetBool(&m, &f, true);
      case Field::CPPTYPE_ENUM: return FillEnum(m, f);
      case Field::CPPTYPE_MESSAGE: break;
      default: FAIL() << f.full_name();
    }
    auto& nested = many ? *r.AddMessage(&m, &f) : *r.MutableMessage(&m, &f);
    const std::string& name = nested.GetDescriptor()->full_name();
    if (name == "google.protobuf.Struct") {
      FillStruct(static_cast<google::protobuf::Struct&>(nested), depth);
    } else if (name == "google.protobuf.Value") {
      // A null is no value here: reading leaves it out.
      auto& value = static_cast<google::protobuf::Value&>(nested);
      do FillValue(value, depth);
      while (value.has_null_value());
    } else if (name == "google.protobuf.Timestamp") {
      static_cast<google::protobuf::Timestamp&>(nested).set_seconds(rng_.Below(2'000'000'000));
    } else {
      Fill(nested, depth + 1);
    }
  }

  void FillEnum(google::protobuf::Message& m, const Field& f) {
    const auto& type = *f.enum_type();
    const auto& r = *m.GetReflection();
    const auto* value = type.value(1 + static_cast<int>(rng_.Below(type.value_count() - 1)));
    f.is_repeated() ? r.AddEnum(&m, &f, value) : r.SetEnum(&m, &f, value);
  }

  void FillStruct(google::protobuf::Struct& object, int depth) {
    const int count = static_cast<int>(rng_.Below(4));
    for (int i = 0; i < count; ++i) FillValue((*object.mutable_fields())[Text()], depth + 1);
  }

  void FillValue(google::protobuf::Value& value, int depth) {
    switch (rng_.Below(depth > 12 ? 4 : 6)) {
      case 0: return value.set_null_value(google::protobuf::NULL_VALUE);
      case 1: return value.set_bool_value(rng_.Below(2) == 0);
      case 2: return value.set_number_value(rng_.Below(2) == 0 ? Double() : Int());
      case 3: return value.set_string_value(Text());
      case 4: return FillStruct(*value.mutable_struct_value(), depth);
      default: break;
    }
    auto& list = *value.mutable_list_value();
    for (int i = static_cast<int>(rng_.Below(4)); i > 0; --i)
      FillValue(*list.add_values(), depth + 1);
  }

  double Double() {
    const double scale = std::pow(10.0, static_cast<double>(rng_.Below(40)) - 20);
    return rng_.Normal() * scale;
  }
  int Int() { return static_cast<int>(rng_.Below(2'000'000)) - 1'000'000; }

  std::string Text() {
    static constexpr char kLetters[] = "ab01-_.:# ,[]{}\"'\\\n\t$%&*!|>?@~=yn";
    std::string text;
    for (size_t n = rng_.Below(8); n > 0; --n) text += kLetters[rng_.Below(sizeof kLetters - 1)];
    return text;
  }

  Rng rng_;
};

TEST(Print, AnyExperimentSurvives) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    v1::Experiment experiment;
    RandomMessage(seed).Fill(experiment, 0);
    experiment.set_api_version("kubeflow.org/v1beta1");
    experiment.set_kind("Experiment");
    SetDefaults(experiment);
    EXPECT_TRUE(ReadsBack(ToYaml(experiment), experiment));
    EXPECT_TRUE(ReadsBack(ToJson(experiment), experiment));
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
}

}  // namespace
}  // namespace shirabe::experiment
