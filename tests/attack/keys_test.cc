// Keys that no record can have, at every method that takes one: a path into other directories, a
// NUL that ends it for the system, an empty or an endless name, numbers that are none.
#include <fstream>
#include <functional>
#include <utility>

#include "base/text/grpc_web_frames.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

constexpr char kKeysSecret[] = "nobody-outside-may-read-this";

std::vector<std::string> HostileNames() {
  return {"",         "..",   "../red", "a/b", std::string("a\0b", 3), "/etc/passwd",
          "A",        "a\nb", "-a",     "%2e", std::string(64, 'x'),   std::string(5000, 'x'),
          "\xff\xfe", "a_b",  "a b"};
}

class KeysAttack : public AttackTest {
 protected:
  // A trial of the namespace has run here, so that its directory is there.
  void ServeWithTrials() {
    Serve();
    ASSERT_LT(Create("red", Spec(kHonestSpec, "red", "ran"), kAdminToken), 300);
    ASSERT_TRUE(Eventually([&] { return HasSucceeded("red", "ran"); })) << server_->Err();
    std::ofstream(cli_.Path("secret")) << kKeysSecret;
  }

  // Leads from the trials of red to the file, and ends there.
  std::string PathToSecret() const {
    const std::string up = "../../../../../../../../../../../../../..";
    return absl::StrCat(up, cli_.Path("secret"), std::string(1, '\0'));
  }

  v1::ReadLogRequest SecretLog() const {
    v1::ReadLogRequest request;
    request.mutable_trial()->set_namespace_("red");
    request.mutable_trial()->set_experiment(PathToSecret());
    request.mutable_trial()->set_number(1);
    request.set_attempt(1);
    request.set_max_bytes(1000);
    return request;
  }
};

// attacks: gRPC shirabe.v1.Shirabe/ReadLog
TEST_F(KeysAttack, ReadLogOfAPathReadsNoFileOfTheServer) {
  ServeWithTrials();
  v1::LogChunk chunk;
  const auto status = Shirabe()->ReadLog(As(kRedToken).get(), SecretLog(), &chunk);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_EQ(chunk.text(), "");
  ExpectAlive();
}

// attacks: gRPC-Web shirabe.v1.Shirabe/ReadLog, HTTP POST /shirabe.v1.Shirabe/{method}
TEST_F(KeysAttack, ReadLogByGrpcWebReadsNoFileOfTheServer) {
  ServeWithTrials();
  const std::string body = MessageFrame(SecretLog().SerializeAsString());
  service::Wire wire(http_port_);
  wire.Send(absl::StrCat("POST /shirabe.v1.Shirabe/ReadLog HTTP/1.1\r\nHost: localhost\r\n",
                         "Authorization: Bearer ", kRedToken, "\r\n",
                         "Content-Type: ", kGrpcWebType, "\r\nContent-Length: ", body.size(),
                         "\r\nConnection: close\r\n\r\n", body));
  EXPECT_TRUE(wire.ReadToEnd());
  EXPECT_THAT(wire.data(), testing::HasSubstr("grpc-status:"));
  EXPECT_THAT(wire.data(), testing::Not(testing::HasSubstr(kKeysSecret)));
}

using Call =
    std::function<grpc::Status(v1::Shirabe::Stub&, grpc::ClientContext*, const v1::ExperimentRef&)>;

v1::TrialRef TrialOf(const v1::ExperimentRef& key) {
  v1::TrialRef trial;
  trial.set_namespace_(key.namespace_());
  trial.set_experiment(key.name());
  trial.set_number(1);
  return trial;
}

template <class Reply, class Reader>
grpc::Status ReadAll(Reader reader) {
  Reply reply;
  while (reader->Read(&reply)) {
  }
  return reader->Finish();
}

using Calls = std::vector<std::pair<std::string, Call>>;
using Stub = v1::Shirabe::Stub;
using Context = grpc::ClientContext*;
using Key = v1::ExperimentRef;

// The methods that read what belongs to an experiment.
Calls Readings() {
  return {
      {"GetExperiment",
       [](Stub& stub, Context context, const Key& key) {
         v1::Experiment reply;
         return stub.GetExperiment(context, key, &reply);
       }},
      {"GetHolder",
       [](Stub& stub, Context context, const Key& key) {
         v1::Text reply;
         return stub.GetHolder(context, key, &reply);
       }},
      {"GetTrial",
       [](Stub& stub, Context context, const Key& key) {
         v1::Trial reply;
         return stub.GetTrial(context, TrialOf(key), &reply);
       }},
      {"ListTrials",
       [](Stub& stub, Context context, const Key& key) {
         v1::ListTrialsRequest request;
         *request.mutable_experiment() = key;
         return ReadAll<v1::Trial>(stub.ListTrials(context, request));
       }},
      {"ListAttempts",
       [](Stub& stub, Context context, const Key& key) {
         v1::ListAttemptsRequest request;
         *request.mutable_experiment() = key;
         return ReadAll<v1::Attempt>(stub.ListAttempts(context, request));
       }},
      {"ListCheckpoints",
       [](Stub& stub, Context context, const Key& key) {
         return ReadAll<v1::Checkpoint>(stub.ListCheckpoints(context, TrialOf(key)));
       }},
      {"ListObservations",
       [](Stub& stub, Context context, const Key& key) {
         v1::ListObservationsRequest request;
         *request.mutable_trial() = TrialOf(key);
         return ReadAll<v1::ObservationBlock>(stub.ListObservations(context, request));
       }},
      {"ListEvents",
       [](Stub& stub, Context context, const Key& key) {
         v1::ListEventsRequest request;
         *request.mutable_experiment() = key;
         return ReadAll<v1::Event>(stub.ListEvents(context, request));
       }},
      {"ReadLog",
       [](Stub& stub, Context context, const Key& key) {
         v1::ReadLogRequest request;
         v1::LogChunk reply;
         *request.mutable_trial() = TrialOf(key);
         request.set_attempt(1);
         return stub.ReadLog(context, request, &reply);
       }},
  };
}

// Those that change something, or compute.
Calls Changes() {
  return {
      {"SendIntent",
       [](Stub& stub, Context context, const Key& key) {
         v1::Intent request;
         v1::Done reply;
         request.set_namespace_(key.namespace_());
         request.set_experiment(key.name());
         request.set_verb(v1::Intent::PAUSE);
         return stub.SendIntent(context, request, &reply);
       }},
      {"DeleteExperiment",
       [](Stub& stub, Context context, const Key& key) {
         v1::DeleteRequest request;
         v1::Done reply;
         *request.mutable_experiment() = key;
         return stub.DeleteExperiment(context, request, &reply);
       }},
      {"Suggest",
       [](Stub& stub, Context context, const Key& key) {
         v1::SuggestRequest request;
         v1::SuggestReply reply;
         request.mutable_experiment()->mutable_metadata()->set_namespace_(key.namespace_());
         request.mutable_experiment()->mutable_metadata()->set_name(key.name());
         request.set_count(1);
         return stub.Suggest(context, request, &reply);
       }},
      {"Ask",
       [](Stub& stub, Context context, const Key& key) {
         v1::AskRequest request;
         v1::AskReply reply;
         *request.mutable_experiment() = key;
         request.set_caller("somebody");
         return stub.Ask(context, request, &reply);
       }},
      {"Tell",
       [](Stub& stub, Context context, const Key& key) {
         v1::TellRequest request;
         v1::TellReply reply;
         *request.mutable_trial() = TrialOf(key);
         return stub.Tell(context, request, &reply);
       }},
      {"ImportExperiment",
       [](Stub& stub, Context context, const Key& key) {
         v1::ImportRequest request;
         v1::ImportReply reply;
         request.set_namespace_(key.namespace_());
         request.set_name(key.name());
         request.set_objective("{}");
         request.set_parameters("[]");
         return stub.ImportExperiment(context, request, &reply);
       }},
      {"SubmitExperiment",
       [](Stub& stub, Context context, const Key& key) {
         v1::SubmitRequest request;
         v1::SubmitReply reply;
         request.mutable_experiment()->mutable_metadata()->set_namespace_(key.namespace_());
         request.mutable_experiment()->mutable_metadata()->set_name(key.name());
         request.mutable_experiment()->mutable_spec()->mutable_shirabe()->set_ask_and_tell(true);
         return stub.SubmitExperiment(context, request, &reply);
       }},
  };
}

// Every method that carries the key of an experiment.
Calls AllCalls() {
  Calls all = Readings();
  for (auto& call : Changes()) all.push_back(std::move(call));
  return all;
}

bool IsText(const std::string& name) { return name.find('\xff') == std::string::npos; }

// attacks: gRPC shirabe.v1.Shirabe/GetExperiment, gRPC shirabe.v1.Shirabe/GetHolder
// attacks: gRPC shirabe.v1.Shirabe/SendIntent, gRPC shirabe.v1.Shirabe/DeleteExperiment
// attacks: gRPC shirabe.v1.Shirabe/GetTrial, gRPC shirabe.v1.Shirabe/ListTrials
// attacks: gRPC shirabe.v1.Shirabe/ListAttempts, gRPC shirabe.v1.Shirabe/ListCheckpoints
// attacks: gRPC shirabe.v1.Shirabe/ListObservations, gRPC shirabe.v1.Shirabe/ListEvents
// attacks: gRPC shirabe.v1.Shirabe/ReadLog, gRPC shirabe.v1.Shirabe/Suggest
// attacks: gRPC shirabe.v1.Shirabe/Ask, gRPC shirabe.v1.Shirabe/Tell
// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment, gRPC shirabe.v1.Shirabe/SubmitExperiment
TEST_F(KeysAttack, EveryMethodRefusesNamesOfExperimentsThatAreNone) {
  Serve();
  const auto stub = Shirabe();
  for (const std::string& name : HostileNames()) {
    if (!IsText(name)) continue;  // a client cannot send it: see below
    for (const auto& [method, call] : AllCalls()) {
      v1::ExperimentRef key;
      key.set_namespace_("red");
      key.set_name(name);
      const grpc::Status status = call(*stub, As(kRedToken).get(), key);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
          << method << " of " << name.substr(0, 100) << ": " << status.error_message();
      EXPECT_LT(status.error_message().size(), 4000u) << method;
    }
  }
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ListExperiments
TEST_F(KeysAttack, EveryMethodRefusesNamespacesThatAreNone) {
  Serve();
  const auto stub = Shirabe();
  for (const std::string& ns : HostileNames()) {
    if (!IsText(ns)) continue;
    for (const auto& [method, call] : AllCalls()) {
      v1::ExperimentRef key;
      key.set_namespace_(ns);
      key.set_name("digits");
      EXPECT_EQ(call(*stub, As(kAdminToken).get(), key).error_code(),
                grpc::StatusCode::INVALID_ARGUMENT)
          << method << " of " << ns.substr(0, 100);
    }
    v1::ExperimentRef all;
    all.set_namespace_(ns);
    const auto listed = ReadAll<v1::Experiment>(stub->ListExperiments(As(kAdminToken).get(), all));
    EXPECT_EQ(listed.ok(), ns.empty()) << ns.substr(0, 100);
  }
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ReadLog, gRPC shirabe.v1.Shirabe/GetTrial
TEST_F(KeysAttack, NumbersOfTrialsAndAttemptsAreFromOne) {
  Serve();
  for (const int64_t number : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    v1::ReadLogRequest request = SecretLog();
    request.mutable_trial()->set_experiment("digits");
    request.mutable_trial()->set_number(number);
    v1::LogChunk chunk;
    EXPECT_EQ(Shirabe()->ReadLog(As(kRedToken).get(), request, &chunk).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    v1::Trial trial;
    EXPECT_EQ(Shirabe()->GetTrial(As(kRedToken).get(), request.trial(), &trial).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    request.mutable_trial()->set_number(1);
    request.set_attempt(static_cast<int32_t>(std::max<int64_t>(number, INT32_MIN)));
    EXPECT_EQ(Shirabe()->ReadLog(As(kRedToken).get(), request, &chunk).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}
// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/attempts/{attempt}/log
TEST_F(KeysAttack, HttpPathsOfOtherNamesAreRefused) {
  ServeWithTrials();
  const std::string red = "GET /api/v1/namespaces/red/experiments/";
  const std::string up = "..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2f..";
  std::string secret = absl::StrReplaceAll(cli_.Path("secret"), {{"/", "%2f"}});
  for (const std::string& name : {up + secret + "%00", std::string("%2e%2e"), std::string("a%00b"),
                                  std::string("A"), std::string(300, 'x')}) {
    for (const char* rest : {"", "/trials", "/trials/1/attempts/1/log"}) {
      const auto reply = Http(red + name + rest, kRedToken);
      EXPECT_EQ(reply.status / 100, 4) << name << rest;
      EXPECT_NE(reply.status, 403) << name << rest;
      EXPECT_THAT(reply.body, testing::Not(testing::HasSubstr(kKeysSecret)));
    }
  }
  EXPECT_EQ(Http("GET /api/v1/namespaces/%2e%2e%2fblue/experiments/x", kRedToken).status, 400);
  EXPECT_EQ(Http(red + "ran/trials/0/attempts/1/log", kRedToken).status, 400);
  EXPECT_EQ(Http(red + "ran/trials/1/attempts/-1/log", kRedToken).status, 400);
  EXPECT_EQ(Http(red + "ran/trials/1/attempts/1/log", kRedToken).status, 200);
}

// attacks: gRPC shirabe.v1.Pods/Sync
TEST_F(KeysAttack, SyncOfKeysThatAreNoneIsRefused) {
  Serve();
  const auto pods = v1::Pods::NewStub(Channel(grpc_));
  for (const std::string& name : HostileNames()) {
    if (!IsText(name)) continue;
    v1::SyncRequest request;
    v1::SyncReply reply;
    request.set_namespace_("red");
    request.set_experiment(name);
    request.set_trial(1);
    request.set_attempt(1);
    request.set_token("none");
    EXPECT_FALSE(pods->Sync(As("").get(), request, &reply).ok());
  }
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
