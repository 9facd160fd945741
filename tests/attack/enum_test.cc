// Enums of protobuf are open: a message may hold any number where the .proto lists a few. Every one
// of them, in every request of every service, is refused by name, and the server lives.
#include <google/protobuf/dynamic_message.h>

#include <set>

#include "tests/attack/attacked_server.h"
#include "tests/attack/raw_call.h"
#include "tests/support/small_spec.h"

namespace shirabe::attack {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr int kUnknown = 4711;  // no value of any of our enums

// The ways from a message to each enum in it; a type that is on its way already is not entered.
using Way = std::vector<const FieldDescriptor*>;
void CollectWays(const Descriptor& type, Way& way, std::set<const Descriptor*>& above,
                 std::vector<Way>& ways) {
  if (!above.insert(&type).second) return;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    way.push_back(&field);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) ways.push_back(way);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CollectWays(*field.message_type(), way, above, ways);
    }
    way.pop_back();
  }
  above.erase(&type);
}

std::vector<Way> WaysToEnums(const Descriptor& type) {
  Way way;
  std::set<const Descriptor*> above;
  std::vector<Way> ways;
  CollectWays(type, way, above, ways);
  return ways;
}

// Sets the enum at the end of the way, and what lies on it.
void SetUnknown(const Way& way, Message& request) {
  Message* at = &request;
  for (size_t i = 0; i + 1 < way.size(); ++i) {
    const auto& reflection = *at->GetReflection();
    at = way[i]->is_repeated() ? reflection.AddMessage(at, way[i])
                               : reflection.MutableMessage(at, way[i]);
  }
  const FieldDescriptor* last = way.back();
  if (last->is_repeated()) return at->GetReflection()->AddEnumValue(at, last, kUnknown);
  at->GetReflection()->SetEnumValue(at, last, kUnknown);
}

std::string NameOf(const Way& way) {
  std::string name;
  for (const FieldDescriptor* field : way) name += "." + field->name();
  return name;
}

class EnumTest : public AttackTest {
 protected:
  grpc::Status Send(const MethodDescriptor& method, const std::string& bytes,
                    const std::string& token) {
    return CallWithBytes(Channel(grpc_), *As(token),
                         "/" + method.service()->full_name() + "/" + method.name(), bytes);
  }
};

std::vector<const MethodDescriptor*> MethodsOf(const std::vector<const char*>& services) {
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  std::vector<const MethodDescriptor*> methods;
  for (const char* name : services) {
    const auto* service = pool.FindServiceByName(name);
    EXPECT_NE(service, nullptr) << name;
    for (int i = 0; service != nullptr && i < service->method_count(); ++i) {
      methods.push_back(service->method(i));
    }
  }
  return methods;
}

// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/Suggest
// attacks: gRPC shirabe.v1.Shirabe/SendIntent, gRPC shirabe.v1.Shirabe/Tell
// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment
TEST_F(EnumTest, UnknownValuesOfEveryEnumAreRefused) {
  Serve();
  int tried = 0;
  for (const MethodDescriptor* method : MethodsOf({"shirabe.v1.Shirabe"})) {
    for (const Way& way : WaysToEnums(*method->input_type())) {
      google::protobuf::DynamicMessageFactory factory;
      const std::unique_ptr<Message> request(factory.GetPrototype(method->input_type())->New());
      SetUnknown(way, *request);
      const grpc::Status status = Send(*method, request->SerializeAsString(), kRedToken);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
          << method->full_name() << NameOf(way) << ": " << status.error_message();
      EXPECT_THAT(status.error_message(), testing::HasSubstr("4711 is not a value of "))
          << method->full_name() << NameOf(way);
      ++tried;
    }
  }
  EXPECT_GT(tried, 20);
  ExpectAlive();
}

// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
// attacks: gRPC api.v1.beta1.Suggestion/ValidateAlgorithmSettings
// attacks: gRPC api.v1.beta1.EarlyStopping/GetEarlyStoppingRules, gRPC shirabe.v1.Pods/Sync
TEST_F(EnumTest, UnknownValuesOnKatibsWireAndFromPodsEndNothing) {
  Serve();
  int tried = 0;
  for (const MethodDescriptor* method :
       MethodsOf({"api.v1.beta1.Suggestion", "api.v1.beta1.EarlyStopping", "api.v1.beta1.DBManager",
                  "shirabe.v1.Pods"})) {
    for (const Way& way : WaysToEnums(*method->input_type())) {
      google::protobuf::DynamicMessageFactory factory;
      const std::unique_ptr<Message> request(factory.GetPrototype(method->input_type())->New());
      SetUnknown(way, *request);
      const grpc::Status status = Send(*method, request->SerializeAsString(), kRedToken);
      EXPECT_FALSE(status.ok()) << method->full_name() << NameOf(way);
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE)
          << method->full_name() << NameOf(way) << ": " << status.error_message();
      ++tried;
    }
  }
  EXPECT_GT(tried, 5);
  ExpectAlive();
}

v1::SubmitRequest AskedExperiment(const std::string& name) {
  v1::SubmitRequest request;
  v1::Experiment& experiment = *request.mutable_experiment();
  experiment = SmallExperiment({"red", name});
  experiment.mutable_spec()->mutable_algorithm()->set_algorithm_name("random");
  experiment.mutable_spec()->mutable_shirabe()->set_ask_and_tell(true);
  return request;
}

// What ended the server: a good experiment, but for one number.
// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment
// attacks: CRD spec.parameters.parameterType, CRD spec.parameters.feasibleSpace.distribution
// attacks: CRD spec.metricsCollectorSpec.collector.kind
TEST_F(EnumTest, SubmitWithAnUnknownTypeOfParameterSaysWhichAreKnown) {
  Serve();
  v1::SubmitRequest type = AskedExperiment("a-type");
  type.mutable_experiment()->mutable_spec()->mutable_parameters(0)->set_parameter_type(
      static_cast<v1::ParameterType>(7));
  v1::SubmitReply reply;
  const grpc::Status refused = Shirabe()->SubmitExperiment(As(kRedToken).get(), type, &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(
      refused.error_message(),
      testing::AllOf(testing::HasSubstr("spec.parameters[0].parameterType: 7 is not a value"),
                     testing::HasSubstr("DOUBLE, INT, DISCRETE, CATEGORICAL")));

  v1::SubmitRequest distribution = AskedExperiment("a-distribution");
  distribution.mutable_experiment()
      ->mutable_spec()
      ->mutable_parameters(0)
      ->mutable_feasible_space()
      ->set_distribution(static_cast<v1::Distribution>(-3));
  EXPECT_EQ(Shirabe()->SubmitExperiment(As(kRedToken).get(), distribution, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::SubmitRequest collector = AskedExperiment("a-collector");
  collector.mutable_experiment()
      ->mutable_spec()
      ->mutable_metrics_collector_spec()
      ->mutable_collector()
      ->set_kind(static_cast<v1::CollectorKind>(99));
  EXPECT_EQ(Shirabe()->SubmitExperiment(As(kRedToken).get(), collector, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  // The same message as gRPC-Web: five bytes of a frame before it.
  const std::string bytes = type.SerializeAsString();
  std::string frame(5, '\0');
  frame[3] = static_cast<char>(bytes.size() >> 8);
  frame[4] = static_cast<char>(bytes.size() & 0xff);
  service::Wire wire(http_port_);
  wire.Send(absl::StrCat("POST /shirabe.v1.Shirabe/SubmitExperiment HTTP/1.1\r\nHost: x\r\n",
                         "Content-Type: application/grpc-web+proto\r\nAuthorization: Bearer ",
                         kRedToken, "\r\nConnection: close\r\nContent-Length: ",
                         frame.size() + bytes.size(), "\r\n\r\n", frame, bytes));
  EXPECT_TRUE(wire.ReadUntil("grpc-status:3") || wire.ReadUntil("grpc-status: 3"));
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/SendIntent
TEST_F(EnumTest, IntentsThatAreNoneAreRefused) {
  Serve();
  v1::SubmitReply made;
  const grpc::Status status =
      Shirabe()->SubmitExperiment(As(kRedToken).get(), AskedExperiment("victim"), &made);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto send = [&](const std::function<void(v1::Intent&)>& change) {
    v1::Intent intent;
    intent.set_namespace_("red");
    intent.set_experiment("victim");
    change(intent);
    v1::Done done;
    return Shirabe()->SendIntent(As(kRedToken).get(), intent, &done).error_code();
  };
  const auto invalid = grpc::StatusCode::INVALID_ARGUMENT;
  EXPECT_EQ(send([](v1::Intent&) {}), invalid);
  EXPECT_EQ(send([](v1::Intent& i) { i.set_verb(v1::Intent::ASK); }), invalid);
  EXPECT_EQ(send([](v1::Intent& i) {
              i.set_verb(v1::Intent::SCALE);
              i.set_parallel_trial_count(-5);
            }),
            invalid);
  EXPECT_EQ(send([](v1::Intent& i) {
              i.set_verb(v1::Intent::SCALE);
              i.set_max_trial_count(0);
            }),
            invalid);
  EXPECT_EQ(send([](v1::Intent& i) {
              i.set_verb(v1::Intent::SCALE);
              i.set_max_failed_trial_count(INT32_MIN);
            }),
            invalid);
  EXPECT_EQ(send([](v1::Intent& i) {
              i.set_verb(v1::Intent::SCALE);
              i.set_goal(std::numeric_limits<double>::quiet_NaN());
            }),
            invalid);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
