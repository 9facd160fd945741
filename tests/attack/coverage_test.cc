// Every door has an attack: each gRPC method that the server says it has (by reflection), each
// route of the HTTP table and each field of an Experiment that is text must be named by a line
// `// attacks: …` above a test of this folder. Whoever adds a door is told here.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/shirabe/v1/field.pb.h"
#include "service/http/route_table.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/paths.h"

namespace shirabe::attack {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownFieldSet;
using ::testing::IsEmpty;

// What the tests say they attack: "gRPC shirabe.v1.Shirabe/Ask", "HTTP GET /livez", "CRD spec.…".
std::set<std::string> Attacked() {
  std::set<std::string> attacked;
  const std::string folder = SourceDir() + "/tests/attack";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::string before;
    for (std::string line; std::getline(file, line);) {
      constexpr char kMark[] = "// attacks: ";
      // A long route stands in a line of its own.
      const bool rest = absl::StartsWith(line, "// /") && absl::StartsWith(before, kMark);
      if (rest) line = absl::StrCat(before, line.substr(2));
      before = line;
      if (!absl::StartsWith(line, kMark)) continue;
      for (const auto item : absl::StrSplit(line.substr(sizeof kMark - 1), ", ")) {
        attacked.emplace(absl::StripAsciiWhitespace(item));
      }
    }
  }
  return attacked;
}

std::vector<std::string> Missing(const std::vector<std::string>& listen_options) {
  const std::set<std::string> attacked = Attacked();
  std::vector<std::string> missing;
  for (const std::string& door : listen_options) {
    if (attacked.count(door) == 0) missing.push_back(door);
  }
  return missing;
}

// The texts and messages under a field of a serialized message, whatever else it holds.
std::vector<std::string> Under(const std::string& bytes, int number) {
  UnknownFieldSet fields;
  EXPECT_TRUE(fields.ParseFromString(bytes));
  std::vector<std::string> found;
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() != number) continue;
    found.push_back(fields.field(i).length_delimited());
  }
  return found;
}

// The names of the services, from the answer of grpc.reflection.v1alpha to list_services.
std::vector<std::string> ServicesIn(const std::string& answer) {
  constexpr int kListServicesResponse = 6, kService = 1, kName = 1;
  std::vector<std::string> names;
  for (const std::string& list : Under(answer, kListServicesResponse)) {
    for (const std::string& service : Under(list, kService)) {
      for (const std::string& name : Under(service, kName)) names.push_back(name);
    }
  }
  return names;
}

std::string AnswerText(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

class CoverageTest : public AttackTest {
 protected:
  // One message to a method with streams both ways, and the first that comes back.
  std::string Exchange(const std::string& method, const std::string& request) {
    grpc::GenericStub stub(Channel(grpc_));
    grpc::CompletionQueue queue;
    const auto context = As(kAdminToken);
    const auto call = stub.PrepareCall(context.get(), method, &queue);
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    EXPECT_TRUE(next());
    const grpc::Slice slice(request);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    EXPECT_TRUE(next());
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);
    EXPECT_TRUE(next());
    context->TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    return AnswerText(reply);
  }
};

TEST_F(CoverageTest, EveryGrpcMethodIsAttacked) {
  Serve();
  const std::string list_services("\x3a\x00", 2);  // field 7, an empty text
  const auto services = ServicesIn(
      Exchange("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", list_services));
  ASSERT_GE(services.size(), 5) << absl::StrJoin(services, " ");
  std::vector<std::string> methods;
  for (const std::string& name : services) {
    const auto* service = DescriptorPool::generated_pool()->FindServiceByName(name);
    if (absl::StartsWith(name, "grpc.")) continue;  // gRPC's own: reflection, health
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i) {
      methods.push_back("gRPC " + name + "/" + service->method(i)->name());
    }
  }
  EXPECT_GE(methods.size(), 25);
  EXPECT_THAT(Missing(methods), IsEmpty());
}

TEST(Coverage, EveryRouteIsAttacked) {
  std::vector<std::string> routes;
  for (const service::Route& route : service::Routes()) {
    routes.push_back("HTTP " + route.method + " " + route.path);
  }
  EXPECT_GE(routes.size(), 40);
  EXPECT_THAT(Missing(routes), IsEmpty());
}

// For people only, whatever they hold.
bool IsProse(const std::string& path) {
  static const std::set<std::string> kProse = {"spec.trialTemplate.trialParameters.description",
                                               "spec.shirabe.budget.currency"};
  return kProse.count(path) > 0;
}

void AddTexts(const Descriptor& message, const std::string& path, std::vector<std::string>* texts) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const auto& options = field.options().GetExtension(v1::field);
    if (options.internal() || options.ignored()) continue;
    const std::string name = path + "." + field.json_name();
    const bool open =
        field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        (field.is_map() || absl::StartsWith(field.message_type()->full_name(), "google.protobuf."));
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING || open) {
      if (!IsProse(name)) texts->push_back(name);
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddTexts(*field.message_type(), name, texts);
    }
  }
}

// Names, paths, addresses, expressions and free objects.
TEST(Coverage, EveryTextOfAnExperimentIsAttacked) {
  std::vector<std::string> fields;
  AddTexts(*v1::ExperimentSpec::descriptor(), "spec", &fields);
  for (std::string& field : fields) field = "CRD " + field;
  EXPECT_GE(fields.size(), 30);
  EXPECT_THAT(Missing(fields), IsEmpty());
}

// But for the experiment that it starts, whose texts are attacked above.
TEST(Coverage, EveryTextOfAScheduleIsAttacked) {
  std::vector<std::string> fields;
  AddTexts(*v1::ScheduledExperimentSpec::descriptor(), "spec", &fields);
  std::erase_if(fields, [](const std::string& field) {
    return absl::StartsWith(field, "spec.experimentTemplate.spec.");
  });
  for (std::string& field : fields) field = "CRD ScheduledExperiment " + field;
  EXPECT_GE(fields.size(), 4);
  EXPECT_THAT(Missing(fields), IsEmpty());
}

}  // namespace
}  // namespace shirabe::attack
