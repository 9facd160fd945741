// Every text of an Experiment, one after another, with what no text should hold: a NUL, a way out
// of a directory, a megabyte, what a terminal obeys, references and commands. It is refused by name
// or it is harmless: the server lives on, and what it prints of it cannot be obeyed.
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/field.pb.h"
#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const std::vector<std::string>& HostileTexts() {
  static const std::vector<std::string> texts = {
      std::string("a\0b", 3),           "../../../../etc/passwd",         std::string(1 << 20, 'x'),
      "\x1b[2J\x07\r\nHTTP/1.1 200 OK", "${trialSpec.Name}$(reboot)`id`", "\xff\xfe"};
  return texts;
}

// Whether a protobuf text can hold it at all: gRPC's own parser refuses what is not UTF-8.
bool IsUtf8(const std::string& text) { return text.find('\xff') == std::string::npos; }

void SetStruct(google::protobuf::Struct* object, const std::string& text) {
  (*object->mutable_fields())[text].set_string_value(text);
  (*object->mutable_fields())["spec"].set_string_value(text);
}

// Calls `visit` for each field of text below `message`, with a way to set it; the messages and
// elements on the way are made where there are none.
using Set = std::function<void(const std::string& text)>;
using Visit = std::function<void(const std::string& path, const Set& set)>;

void VisitTexts(Message* message, const std::string& path, const Visit& visit);

void VisitOpen(Message* message, const FieldDescriptor& field, const std::string& path,
               const Visit& visit) {
  const Reflection& reflection = *message->GetReflection();
  visit(path, [&, message](const std::string& text) {
    Message* value = field.is_repeated() ? reflection.AddMessage(message, &field)
                                         : reflection.MutableMessage(message, &field);
    if (field.is_map()) {
      value->GetReflection()->SetString(value, field.message_type()->field(0), text);
      value->GetReflection()->SetString(value, field.message_type()->field(1), text);
    } else if (auto* object = dynamic_cast<google::protobuf::Struct*>(value)) {
      SetStruct(object, text);
    } else if (auto* any = dynamic_cast<google::protobuf::Value*>(value)) {
      any->set_string_value(text);
    }
  });
}

void VisitField(Message* message, const FieldDescriptor& field, const std::string& path,
                const Visit& visit) {
  const Reflection& reflection = *message->GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    visit(path, [&, message](const std::string& text) {
      if (!field.is_repeated()) return reflection.SetString(message, &field, text);
      if (reflection.FieldSize(*message, &field) == 0) reflection.AddString(message, &field, text);
      reflection.SetRepeatedString(message, &field, 0, text);
    });
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    const bool open =
        field.is_map() || field.message_type()->full_name().rfind("google.protobuf.", 0) == 0;
    if (open) return VisitOpen(message, field, path, visit);
    if (!field.is_repeated())
      return VisitTexts(reflection.MutableMessage(message, &field), path, visit);
    if (reflection.FieldSize(*message, &field) == 0) reflection.AddMessage(message, &field);
    VisitTexts(reflection.MutableRepeatedMessage(message, &field, 0), path, visit);
  }
}

void VisitTexts(Message* message, const std::string& path, const Visit& visit) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message->GetDescriptor()->field(i);
    const auto& options = field.options().GetExtension(v1::field);
    if (options.internal() || options.ignored()) continue;
    VisitField(message, field, path + "." + field.json_name(), visit);
  }
}

// The paths of all texts of a spec.
std::vector<std::string> Paths() {
  std::vector<std::string> paths;
  v1::ExperimentSpec spec;
  VisitTexts(&spec, "spec", [&](const std::string& path, const Set&) { paths.push_back(path); });
  return paths;
}

class SpecTextsTest : public AttackTest {
 protected:
  // Submits an honest experiment with `text` in the place of one of its texts.
  grpc::Status SubmitWith(const std::string& wanted, const std::string& text) {
    v1::SubmitRequest request = Honest();
    v1::ExperimentSpec& spec = *request.mutable_experiment()->mutable_spec();
    AddResults(wanted, *spec.mutable_shirabe());
    const v1::ExperimentSpec before = spec;
    Set chosen;
    v1::ExperimentSpec scratch = before;
    VisitTexts(&scratch, "spec", [&](const std::string& path, const Set& set) {
      if (path == wanted) set(text);
    });
    spec = scratch;
    Prune(before, &spec, wanted);
    v1::SubmitReply reply;
    return Shirabe()->SubmitExperiment(As(kBlueToken).get(), request, &reply);
  }

  // Leaves of what the visit has made only the sections on the way to the text.
  static void Prune(const v1::ExperimentSpec& before, v1::ExperimentSpec* after,
                    const std::string& wanted) {
    PruneMessage(before, after, "spec", wanted);
  }
  static void PruneMessage(const Message& before, Message* after, const std::string& path,
                           const std::string& wanted) {
    const Reflection& reflection = *after->GetReflection();
    for (int i = 0; i < after->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *after->GetDescriptor()->field(i);
      const std::string name = path + "." + field.json_name();
      const bool on_the_way = wanted == name || wanted.rfind(name + ".", 0) == 0;
      const bool message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (field.is_repeated()) {
        if (!on_the_way && reflection.FieldSize(before, &field) == 0) {
          reflection.ClearField(after, &field);
        }
      } else if (message && reflection.HasField(*after, &field)) {
        if (!on_the_way && !reflection.HasField(before, &field)) {
          reflection.ClearField(after, &field);
        } else {
          PruneMessage(reflection.GetMessage(before, &field),
                       reflection.MutableMessage(after, &field), name, wanted);
        }
      }
    }
  }

  v1::SubmitRequest Honest() {
    v1::SubmitRequest request;
    v1::Experiment& experiment = *request.mutable_experiment();
    experiment = SmallExperiment({"blue", absl::StrCat("texts-", ++submitted_)});
    v1::ExperimentSpec& spec = *experiment.mutable_spec();
    spec.mutable_algorithm()->set_algorithm_name("random");
    spec.set_max_trial_count(1);
    spec.mutable_shirabe()->set_ask_and_tell(true);
    return request;
  }

  // Whole but for the name, so that it is the name that is judged.
  static void AddResults(const std::string& wanted, v1::ShirabeSpec& spec) {
    if (wanted == "spec.shirabe.additionalObjectives.metricName") {
      spec.add_additional_objectives()->set_metric_name("time");
      spec.mutable_additional_objectives(0)->set_type(v1::MINIMIZE);
    }
    if (wanted == "spec.shirabe.constraints.metricName") {
      spec.add_constraints()->set_metric_name("memory");
      spec.mutable_constraints(0)->set_max(1);
    }
  }

  int submitted_ = 0;
};

// attacks: CRD spec.parameters.name
// attacks: CRD spec.parameters.feasibleSpace.list
// attacks: CRD spec.objective.objectiveMetricName
// attacks: CRD spec.objective.additionalMetricNames
// attacks: CRD spec.objective.metricStrategies.name
// attacks: CRD spec.algorithm.algorithmName
// attacks: CRD spec.algorithm.algorithmSettings.name
// attacks: CRD spec.algorithm.algorithmSettings.value
// attacks: CRD spec.earlyStopping.algorithmName
// attacks: CRD spec.earlyStopping.algorithmSettings.name
// attacks: CRD spec.earlyStopping.algorithmSettings.value
// attacks: CRD spec.trialTemplate.trialParameters.name
// attacks: CRD spec.trialTemplate.trialParameters.reference
// attacks: CRD spec.metricsCollectorSpec.source.filter.metricsFormat
// attacks: CRD spec.metricsCollectorSpec.collector.customCollector
// attacks: CRD spec.nasConfig.operations.operationType
// attacks: CRD spec.nasConfig.operations.parameters.name
// attacks: CRD spec.nasConfig.operations.parameters.feasibleSpace.list
// attacks: CRD spec.shirabe.additionalObjectives.metricName
// attacks: CRD spec.shirabe.space.conditions.parameter
// attacks: CRD spec.shirabe.space.conditions.when
// attacks: CRD spec.shirabe.constraints.metricName
// attacks: CRD spec.shirabe.space.forbidden
// attacks: CRD spec.shirabe.space.linear.sum
// attacks: CRD spec.shirabe.space.priors
// attacks: CRD spec.shirabe.start
// attacks: CRD spec.shirabe.algorithm.endpoint
// attacks: CRD spec.shirabe.warmStart.experiments
// attacks: CRD spec.shirabe.capacity.pools
TEST_F(SpecTextsTest, NoTextOfASpecIsObeyed) {
  Serve();
  ASSERT_TRUE(SubmitWith("", "").ok()) << SubmitWith("", "").error_message();
  const std::vector<std::string> paths = Paths();
  ASSERT_GE(paths.size(), 35u);
  int refused = 0;
  for (const std::string& path : paths) {
    for (const std::string& text : HostileTexts()) {
      const grpc::Status status = SubmitWith(path, text);
      refused += !status.ok();
      ASSERT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << path << server_->Err();
      if (!IsUtf8(text)) continue;  // gRPC's words
      EXPECT_EQ(status.error_message().find('\x1b'), std::string::npos) << path;
      EXPECT_EQ(status.error_message().find('\0'), std::string::npos) << path;
      EXPECT_LT(status.error_message().size(), 20'000u) << path;
    }
  }
  EXPECT_GT(refused, static_cast<int>(paths.size()) * 4);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
