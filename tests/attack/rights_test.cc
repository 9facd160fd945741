// Every method of gRPC and every route, called by those who have no right to it: without a token,
// with one that nobody knows, with one that has the shape of a trial's, with that of the user of
// another namespace. What a trial's own token opens, and what not.
#include <grpcpp/generic/generic_stub.h>

#include <map>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/dynamic_message.h"
#include "service/common/authorization.h"
#include "service/http/route_table.h"
#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using service::RightsOf;

constexpr char kRightsUnknown[] = "x";
constexpr char kShapedLikeATrials[] = "0123456789abcdef0123456789abcdef";

// Everything in it that names something names trial 1 of red/secret.
void PointAtSecret(Message& message, int depth) {
  const Descriptor& type = *message.GetDescriptor();
  const auto& reflection = *message.GetReflection();
  const std::map<std::string, std::string> texts = {
      {"namespace", "red"}, {"name", "secret"},  {"experiment", "secret"},
      {"value", "1"},       {"caller", "thief"}, {"trial_name", "red/secret-1"},
      {"objective", "{}"},  {"parameters", "[]"}};
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth > 0) {
      if (field->is_map() || field->containing_oneof() != nullptr) continue;
      if (absl::StartsWith(field->message_type()->full_name(), "google.")) continue;
      PointAtSecret(field->is_repeated() ? *reflection.AddMessage(&message, field)
                                         : *reflection.MutableMessage(&message, field),
                    depth - 1);
    } else if (field->is_repeated()) {
      continue;
    } else if (const auto text = texts.find(field->name());
               text != texts.end() && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.SetString(&message, field, text->second);
    } else if (field->name() == "phase") {
      reflection.SetEnumValue(&message, field, v1::TRIAL_SUCCEEDED);
    } else if (field->name() == "number" && field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      reflection.SetInt64(&message, field, 1);
    } else if (field->name() == "attempt" && field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection.SetInt32(&message, field, 1);
    }
  }
}

class RightsTest : public AttackTest {
 protected:
  void ServeSecret() {
    Serve();
    ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "secret"), kRedToken), 300);
    v1::AskRequest request;
    request.mutable_experiment()->set_namespace_("red");
    request.mutable_experiment()->set_name("secret");
    request.set_caller("honest");
    request.mutable_patience()->set_seconds(20);
    const grpc::Status asked = Shirabe()->Ask(As(kRedToken).get(), request, &asked_);
    ASSERT_TRUE(asked.ok()) << asked.error_message();
    ASSERT_EQ(asked_.trial().number(), 1);
  }
  std::string OwnToken() const { return absl::BytesToHexString(asked_.token()); }

  static std::vector<std::string> Methods() {
    std::vector<std::string> methods;
    for (const char* service : {"shirabe.v1.Shirabe", "shirabe.v1.Pods", "api.v1.beta1.Suggestion",
                                "api.v1.beta1.EarlyStopping", "api.v1.beta1.DBManager"}) {
      const auto* found = DescriptorPool::generated_pool()->FindServiceByName(service);
      for (int i = 0; i < found->method_count(); ++i) {
        methods.push_back(absl::StrCat(service, "/", found->method(i)->name()));
      }
    }
    return methods;
  }

  // What a call with everything in it about red/secret ends with.
  grpc::Status Call(const std::string& method, const std::string& token) {
    const std::vector<std::string> words = absl::StrSplit(method, '/');
    const MethodDescriptor* known =
        DescriptorPool::generated_pool()->FindServiceByName(words[0])->FindMethodByName(words[1]);
    google::protobuf::DynamicMessageFactory factory;
    const std::unique_ptr<Message> request(factory.GetPrototype(known->input_type())->New());
    PointAtSecret(*request, 4);
    const grpc::Slice slice(request->SerializeAsString());
    const auto context = As(token);
    grpc::CompletionQueue queue;
    const auto call =
        grpc::GenericStub(Channel(grpc_)).PrepareCall(context.get(), "/" + method, &queue);
    const auto done = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    if (done()) {
      call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
      (void)done();
    }
    grpc::ByteBuffer reply;
    do {
      call->Read(&reply, nullptr);
    } while (done());
    grpc::Status status;
    call->Finish(&status, nullptr);
    (void)done();
    return status;
  }

  v1::AskReply asked_;
};

// attacks: gRPC shirabe.v1.Shirabe/GetExperiment, gRPC shirabe.v1.Shirabe/ListExperiments
// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/SendIntent
// attacks: gRPC shirabe.v1.Shirabe/DeleteExperiment, gRPC shirabe.v1.Shirabe/GetTrial
// attacks: gRPC shirabe.v1.Shirabe/ListTrials, gRPC shirabe.v1.Shirabe/ListAttempts
// attacks: gRPC shirabe.v1.Shirabe/ListCheckpoints, gRPC shirabe.v1.Shirabe/ListObservations
// attacks: gRPC shirabe.v1.Shirabe/ListEvents, gRPC shirabe.v1.Shirabe/AwaitChange
// attacks: gRPC shirabe.v1.Shirabe/ListChanges, gRPC shirabe.v1.Shirabe/GetHolder
// attacks: gRPC shirabe.v1.Shirabe/ReadLog, gRPC shirabe.v1.Shirabe/Suggest
// attacks: gRPC shirabe.v1.Shirabe/Ask, gRPC shirabe.v1.Shirabe/Tell
// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment, gRPC shirabe.v1.Pods/Sync
// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
// attacks: gRPC api.v1.beta1.Suggestion/ValidateAlgorithmSettings
// attacks: gRPC api.v1.beta1.EarlyStopping/GetEarlyStoppingRules
// attacks: gRPC api.v1.beta1.EarlyStopping/ValidateEarlyStoppingSettings
// attacks: gRPC api.v1.beta1.EarlyStopping/SetTrialStatus
// attacks: gRPC api.v1.beta1.DBManager/ReportObservationLog
// attacks: gRPC api.v1.beta1.DBManager/GetObservationLog
// attacks: gRPC api.v1.beta1.DBManager/DeleteObservationLog
TEST_F(RightsTest, EveryGrpcMethodIsClosedToThoseWithoutARight) {
  ServeSecret();
  int closed = 0;
  for (const std::string& method : Methods()) {
    const v1::Rights right = RightsOf(method);
    if (right.audience() == v1::Rights::PODS) {  // its token is in the message: there is none
      EXPECT_FALSE(Call(method, "").ok()) << method;
      EXPECT_FALSE(Call(method, kBlueToken).ok()) << method;
      continue;
    }
    ++closed;
    EXPECT_EQ(Call(method, "").error_code(), grpc::StatusCode::UNAUTHENTICATED) << method;
    EXPECT_EQ(Call(method, kRightsUnknown).error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << method;
    EXPECT_EQ(Call(method, kShapedLikeATrials).error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << method << " " << Call(method, kShapedLikeATrials).error_message();
    if (right.audience() == v1::Rights::CALLERS) continue;
    EXPECT_EQ(Call(method, kBlueToken).error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << method << " " << Call(method, kBlueToken).error_message();
  }
  EXPECT_GT(closed, 25);
}

// attacks: gRPC shirabe.v1.Shirabe/GetTrial, gRPC shirabe.v1.Shirabe/GetExperiment
// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
TEST_F(RightsTest, ATrialsOwnTokenOpensATrialsMethodsOnly) {
  ServeSecret();
  for (const std::string& method : Methods()) {
    const v1::Rights right = RightsOf(method);
    if (right.audience() == v1::Rights::PODS) continue;
    const grpc::Status status = Call(method, OwnToken());
    const bool denied = status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
    EXPECT_EQ(denied, right.audience() != v1::Rights::TRIALS) << method << status.error_message();
  }
  // Not of another trial, though it is of the same experiment.
  v1::TrialRef other;
  other.set_namespace_("red");
  other.set_experiment("secret");
  other.set_number(2);
  v1::Trial trial;
  EXPECT_EQ(Shirabe()->GetTrial(As(OwnToken()).get(), other, &trial).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

// attacks: gRPC shirabe.v1.Shirabe/Tell
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:tell
TEST_F(RightsTest, WhoMayOnlyTellDoesNotAskByIt) {
  ServeSecret();
  v1::TellRequest tell;
  tell.mutable_trial()->set_namespace_("red");
  tell.mutable_trial()->set_experiment("secret");
  tell.mutable_trial()->set_number(1);
  tell.set_end(v1::TellRequest::FAILED);
  tell.set_next_for("more");
  v1::TellReply told;
  EXPECT_EQ(Shirabe()->Tell(As(OwnToken()).get(), tell, &told).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const service::WireReply reply =
      Http("POST /api/v1/namespaces/red/experiments/secret/trials/1:tell", OwnToken(),
           R"({"end": "failed", "nextFor": "more"})");
  EXPECT_EQ(reply.status, 403) << reply.body;
  // Nothing of it was done; without that it may.
  v1::Trial trial;
  const auto found = Shirabe()->GetTrial(As(kRedToken).get(), tell.trial(), &trial);
  ASSERT_TRUE(found.ok()) << found.error_message();
  EXPECT_EQ(trial.phase(), v1::TRIAL_RUNNING);
  tell.set_next_for(std::string(200'000, 'x'));
  EXPECT_EQ(Shirabe()->Tell(As(kRedToken).get(), tell, &told).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  tell.clear_next_for();
  EXPECT_TRUE(Shirabe()->Tell(As(OwnToken()).get(), tell, &told).ok());
  EXPECT_FALSE(told.has_next());
  ExpectAlive();
}

std::string TargetOf(const service::Route& route) {
  const bool experiment = absl::StrContains(route.path, "{namespace}");
  return absl::StrReplaceAll(route.path, {{"{namespace}", "red"},
                                          {"{name}", experiment ? "secret" : "tpe"},
                                          {"{trial}", "1"},
                                          {"{attempt}", "1"},
                                          {"{step}", "1"}});
}

// attacks: HTTP GET /livez
// attacks: HTTP GET /readyz
// attacks: HTTP GET /version
// attacks: HTTP GET /metrics
// attacks: HTTP GET /openapi.json
// attacks: HTTP POST /api/v1/validate
// attacks: HTTP GET /api/v1/algorithms
// attacks: HTTP GET /api/v1/algorithms/{name}
// attacks: HTTP GET /api/v1/stoppers
// attacks: HTTP GET /api/v1/stoppers/{name}
// attacks: HTTP GET /api/v1/experiments
// attacks: HTTP POST /api/v1/experiments
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}
// attacks: HTTP PUT /api/v1/namespaces/{namespace}/experiments/{name}
// attacks: HTTP PATCH /api/v1/namespaces/{namespace}/experiments/{name}
// attacks: HTTP DELETE /api/v1/namespaces/{namespace}/experiments/{name}
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:pause
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:resume
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:stop
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:cancel
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:scale
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:retry
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:stop
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:annotate
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:try
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:annotate
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/trials
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/attempts
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/attempts
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/checkpoints
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/observations
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/events
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/events
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:ask
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:tell
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/suggestions
// attacks: HTTP POST /api/v1/suggest
// attacks: HTTP GET /api/v1/watch
// attacks: HTTP GET /api/v1/namespaces/{namespace}/watch
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/watch
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/export
TEST_F(RightsTest, EveryRouteIsClosedToThoseWithoutARight) {
  ServeSecret();
  for (const service::Route& route : service::Routes()) {
    const v1::Rights& right = route.rights;
    ASSERT_NE(right.audience(), v1::Rights::NO_CALLER) << route.id << " has no rights";
    if (right.audience() == v1::Rights::ANYONE) continue;
    const std::string line = route.method + " " + TargetOf(route);
    const std::string body = route.request == nullptr ? "" : Spec(kAskedSpec, "red", "secret");
    EXPECT_EQ(Http(line, "", body).status, 401) << line;
    EXPECT_EQ(Http(line, kRightsUnknown, body).status, 401) << line;
    EXPECT_EQ(Http(line, kShapedLikeATrials, body).status, 403) << line;
    if (right.audience() != v1::Rights::TRIALS) {
      EXPECT_EQ(Http(line, OwnToken(), body).status, 403) << line;
    }
    if (right.audience() == v1::Rights::CALLERS) continue;
    EXPECT_EQ(Http(line, kBlueToken, body).status, 403) << line;
  }
}

// attacks: HTTP GET /metrics
TEST_F(RightsTest, MetricsAreForTheAdministrator) {
  ServeSecret();
  EXPECT_EQ(Http("GET /metrics", "").status, 401);
  EXPECT_EQ(Http("GET /metrics", kRedToken).status, 403);
  const service::WireReply admin = Http("GET /metrics", kAdminToken);
  EXPECT_EQ(admin.status, 200);
  EXPECT_THAT(admin.body, testing::HasSubstr("shirabe_build_info"));
}

// A page of another site in the browser of a user of this machine.
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
// attacks: HTTP DELETE /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RightsTest, PagesOfOtherSitesAreRefused) {
  ServeSecret();
  const auto status = [this](const std::string& line, const std::string& origin) {
    service::Wire wire(http_port_);
    wire.Send(line + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(http_port_) + "\r\nOrigin: " +
              origin + "\r\nAuthorization: Bearer " + kRedToken + "\r\nContent-Length: 0\r\n\r\n");
    return wire.ReadReply().status;
  };
  const std::string one = "/api/v1/namespaces/red/experiments/secret";
  for (const char* origin : {"https://evil.example", "null", "http://127.0.0.1.evil.example"}) {
    EXPECT_EQ(status("POST " + one + ":stop", origin), 403) << origin;
    EXPECT_EQ(status("DELETE " + one, origin), 403) << origin;
    EXPECT_EQ(status("POST /shirabe.v1.Shirabe/DeleteExperiment", origin), 403) << origin;
  }
  EXPECT_EQ(status("GET " + one, "http://127.0.0.1:" + std::to_string(http_port_)), 200);
}

// A token that is longer than anything, and others that are nearly one.
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RightsTest, OddTokensAreUnknown) {
  ServeSecret();
  const std::string one = "GET /api/v1/namespaces/red/experiments/secret";
  for (const std::string& token :
       {std::string(6000, 'f'), std::string(31, 'f'), std::string(33, 'f'), std::string("Bearer"),
        std::string(kRedToken) + "x", std::string(kRedToken).substr(1),
        absl::AsciiStrToUpper(kRedToken)}) {
    EXPECT_EQ(Http(one, token).status, 401) << token.substr(0, 40);
  }
  EXPECT_EQ(Http(one, kRedToken).status, 200);
}

}  // namespace
}  // namespace shirabe::attack
