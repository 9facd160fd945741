// The real server as an attacker meets it: `shirabe serve` as a process of its own, in a home of
// its own, with one administrator and a user of each of the namespaces red and blue. Attacks go
// through its doors, gRPC and HTTP, with whatever token a test chooses; a trial of the server is a
// shell script. Whatever an attack does, ExpectAlive says whether honest callers are still served.
//
// Above each test stands what it attacks, for coverage_test.cc:
//   // attacks: gRPC shirabe.v1.Shirabe/ReadLog, HTTP GET /api/v1/…, CRD spec.objective.goal
// SHIRABE_TEST_BINARY names another program to attack, to see that a test fails on it.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "proto/shirabe/v1/api.grpc.pb.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "tests/integration/cli.h"
#include "tests/integration/http_wire.h"
#include "tests/support/eventually.h"
#include "tests/support/small_spec.h"

namespace shirabe::attack {

constexpr char kAdminToken[] = "an-administrator-of-everything";
constexpr char kRedToken[] = "a-user-of-the-namespace-red";
constexpr char kBlueToken[] = "a-user-of-the-namespace-blue";

// What experiments of these tests are: two trials that run a script and end, or one whose trials
// their askers run.
enum SpecKind { kHonestSpec, kAskedSpec };

// tests/run.sh sanitizers says so. What a sanitizer adds to the memory of a program is not ours.
inline bool IsSanitized() { return std::getenv("ASAN_OPTIONS") != nullptr; }

class AttackTest : public testing::Test {
 protected:
  // Starts it and waits until it answers. `more` are further options of `serve`.
  void Serve(std::vector<std::string> more = {}) {
    const std::string tokens = WriteTokens();
    const std::string ready = cli_.Path("ready" + std::to_string(++starts_));
    std::vector<std::string> words = {"serve",  "--grpc",       "127.0.0.1:0",
                                      "--http", "127.0.0.1:0",  "--ready-file",
                                      ready,    "--token-file", tokens};
    words.insert(words.end(), more.begin(), more.end());
    server_ = cli_.Start(words);
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server_->Err();
    const auto json = nlohmann::json::parse(ReadFile(ready).value_or("{}"));
    grpc_ = json.value("grpc", "");
    katib_ = json.value("katib", "");
    const std::string http = json.value("http", ":0");
    http_port_ = std::stoi(http.substr(http.rfind(':') + 1));
  }

  std::string WriteTokens() {
    const std::string path = cli_.Write(
        "tokens",
        absl::StrCat(kAdminToken, "\nuser red ", kRedToken, "\nuser blue ", kBlueToken, "\n"));
    std::filesystem::permissions(
        path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return path;
  }

  // A channel of its own for each caller: no limit of one connection is another's.
  std::shared_ptr<grpc::Channel> Channel(const std::string& address) const {  // shared: gRPC's own
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  }
  std::unique_ptr<v1::Shirabe::Stub> Shirabe() const {
    return v1::Shirabe::NewStub(Channel(grpc_));
  }

  // The context of a call with a token ("" = none), which ends after `patience`.
  static std::unique_ptr<grpc::ClientContext> As(const std::string& token,
                                                 absl::Duration patience = absl::Seconds(20)) {
    auto context = std::make_unique<grpc::ClientContext>();
    if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
    context->set_deadline(absl::ToChronoTime(absl::Now() + patience));
    return context;
  }

  service::WireReply Http(const std::string& line, const std::string& token,
                          const std::string& body = "") const {
    service::Wire wire(http_port_);
    wire.Send(service::RequestText(line, token, body));
    return wire.ReadReply();
  }

  static std::string Spec(SpecKind kind, const std::string& ns, const std::string& name,
                          const std::string& script = "echo loss=$1") {
    SmallSpec spec{.name = name, .ns = ns};
    if (kind == kAskedSpec) {
      spec.more = "shirabe: {askAndTell: true}";
    } else {
      spec.parallel = spec.trials = 2;
      spec.container = ShellCommand(script);
    }
    return Yaml(spec);
  }
  // Of the namespace red, with one trial that has succeeded.
  static v1::ImportRequest ImportOfOneTrial(const std::string& name) {
    v1::ImportRequest request;
    request.set_namespace_("red");
    request.set_name(name);
    request.set_source("a test");
    request.set_objective(R"({"type": "minimize", "objectiveMetricName": "loss"})");
    request.set_parameters(R"([{"name": "lr", "parameterType": "double",
                                "feasibleSpace": {"min": "0", "max": "1"}}])");
    v1::ImportRequest::Trial& trial = *request.add_trials();
    trial.set_name("first");
    trial.set_phase(v1::TRIAL_SUCCEEDED);
    trial.add_values()->set_name("lr");
    trial.mutable_values(0)->set_text("0.5");
    trial.add_points()->set_metric("loss");
    trial.mutable_points(0)->set_step(1);
    trial.mutable_points(0)->set_value(0.25);
    return request;
  }
  // Makes it over HTTP; the status of the reply.
  int Create(const std::string& ns, const std::string& spec, const std::string& token) const {
    return Http("POST /api/v1/namespaces/" + ns + "/experiments", token, spec).status;
  }
  bool HasSucceeded(const std::string& ns, const std::string& name) const {
    v1::ExperimentRef key;
    key.set_namespace_(ns);
    key.set_name(name);
    v1::Experiment experiment;
    if (!Shirabe()->GetExperiment(As(kAdminToken).get(), key, &experiment).ok()) return false;
    const auto& conditions = experiment.status().conditions();
    return !conditions.empty() && conditions[conditions.size() - 1].type() == "Succeeded";
  }

  // Both doors answer, and a new experiment of an honest user runs to its end.
  void ExpectAlive() {
    EXPECT_EQ(Http("GET /livez", "").status, 200);
    v1::Experiment none;
    v1::ExperimentRef key;
    key.set_namespace_("red");
    key.set_name("there-is-none");
    EXPECT_EQ(Shirabe()->GetExperiment(As(kRedToken).get(), key, &none).error_code(),
              grpc::StatusCode::NOT_FOUND);
    const std::string name = absl::StrCat("honest-", ++honest_);
    // Programs on the server's own machine are an administrator's.
    EXPECT_LT(Create("red", Spec(kHonestSpec, "red", name), kAdminToken), 300);
    EXPECT_TRUE(Eventually([&] { return HasSucceeded("red", name); }, absl::Seconds(30)))
        << server_->Err();
  }

  // Of the server.
  int64_t ResidentKiB() const {
    const std::string path = absl::StrCat("/proc/", server_->pid(), "/status");
    const std::string text = ReadFile(path).value_or("");
    const size_t at = text.find("VmRSS:");
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + 6);
  }

  cmd::Cli cli_;
  std::unique_ptr<cmd::Running> server_;
  std::string grpc_;   // HOST:PORT
  std::string katib_;  // HOST:PORT; "" = no such door
  int http_port_ = 0;

 private:
  int starts_ = 0;
  int honest_ = 0;
};

}  // namespace shirabe::attack
