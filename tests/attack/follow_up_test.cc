// What follows an experiment, as a way to run what a user may not run, to read what they may not
// read, and to act on it as if it were a trial.
#include "base/names.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFollowUpJob[] = R"(shirabe:
  onSuccess:
    job:
      apiVersion: batch/v1
      kind: Job
      spec:
        template: {spec: {containers: [{name: deploy, command: [/bin/sh, -c, "SCRIPT"]}]}}
)";

class FollowUpAttackTest : public AttackTest {
 protected:
  static std::string Followed(const std::string& name, const std::string& script,
                              const std::string& ns = "red") {
    return Yaml({.name = name,
                 .ns = ns,
                 .parallel = 1,
                 .trials = 1,
                 .container = ShellCommand("echo loss=$1"),
                 .more = absl::StrReplaceAll(kFollowUpJob, {{"SCRIPT", script}})});
  }
  v1::Experiment Get(const std::string& name, const std::string& token) {
    v1::ExperimentRef key;
    key.set_namespace_("red");
    key.set_name(name);
    v1::Experiment experiment;
    Shirabe()->GetExperiment(As(token).get(), key, &experiment);
    return experiment;
  }
  v1::OnSuccessStatus StatusOf(const std::string& name) {
    return Get(name, kRedToken).status().shirabe().on_success();
  }
  v1::ReadLogRequest LogOf(const std::string& name) {
    v1::ReadLogRequest request;
    request.mutable_trial()->set_namespace_("red");
    request.mutable_trial()->set_experiment(name);
    request.mutable_trial()->set_number(kFollowUpNumber);
    request.set_attempt(1);
    request.set_max_bytes(1000);
    return request;
  }
};

// attacks: CRD spec.shirabe.onSuccess.job
TEST_F(FollowUpAttackTest, IsNoWayToAProcessOfTheServer) {
  Serve();
  const std::string mark = cli_.Path("mark");
  // Users may have experiments here whose trials they run themselves, and no programs.
  const std::string whole = Followed("mine", "touch " + mark, "blue");
  const auto program = Http("POST /api/v1/namespaces/blue/experiments", kBlueToken, whole);
  EXPECT_EQ(program.status, 403) << program.body;
  const std::string asked =
      absl::StrReplaceAll(whole.substr(0, whole.find("  trialTemplate:")),
                          {{"  shirabe:", "  shirabe:\n    askAndTell: true"}});
  const auto both = Http("POST /api/v1/namespaces/blue/experiments", kBlueToken, asked);
  EXPECT_EQ(both.status, 400) << both.body;
  EXPECT_THAT(both.body, HasSubstr("spec.shirabe.onSuccess"));
  v1::ExperimentRef key;
  key.set_namespace_("blue");
  key.set_name("mine");
  v1::Experiment none;
  EXPECT_FALSE(Shirabe()->GetExperiment(As(kAdminToken).get(), key, &none).ok());
  EXPECT_FALSE(std::filesystem::exists(mark));
  ExpectAlive();
}

// attacks: CRD spec.shirabe.onSuccess.job, CRD spec.shirabe.onSuccess.primaryContainerName
TEST_F(FollowUpAttackTest, WhatIsNoJobOfItsNamespaceIsRefused) {
  Serve();
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = Followed("odd", "true");
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto reply = Http("POST /api/v1/namespaces/red/experiments", kAdminToken, text);
    EXPECT_EQ(reply.status, 400) << to.substr(0, 100) << "\n" << reply.body.substr(0, 500);
    EXPECT_THAT(reply.body, AnyOf(HasSubstr("spec.shirabe.onSuccess"), HasSubstr("bytes")));
    EXPECT_LT(reply.body.size(), 100'000u);
  };
  refused("onSuccess:\n      job:\n        apiVersion: batch/v1\n        kind: Job",
          "onSuccess:\n      job:\n        apiVersion: v1\n        kind: Secret");
  refused("        kind: Job\n        spec:\n          template: {",
          "        kind: Job\n        metadata: {namespace: blue}\n        spec:\n"
          "          template: {");
  refused("onSuccess:\n      job:",
          "onSuccess:\n      primaryContainerName: ../../etc\n      job:");
  refused("onSuccess:\n      job:",
          "onSuccess:\n      primaryContainerName: " + std::string(100'000, 'x') + "\n      job:");
  refused("[/bin/sh, -c, \"true\"]", "[/bin/sh, \"${trialParameters.secret}\"]");
  refused("          template: {", "          backoffLimit: 1e300\n          template: {");
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ReadLog, gRPC shirabe.v1.Shirabe/GetExperiment, HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/on-success/attempts/{attempt}/log
TEST_F(FollowUpAttackTest, IsReadByThoseOfItsNamespaceAndKeepsItsToken) {
  Serve();
  const std::string gate = cli_.Path("gate");
  ASSERT_LT(
      Create("red",
             Followed("deploys", "echo hello; while [ ! -e " + gate + " ]; do sleep 0.05; done"),
             kAdminToken),
      300);
  ASSERT_TRUE(Eventually([&] { return StatusOf("deploys").phase() == v1::FOLLOW_UP_RUNNING; }));
  EXPECT_TRUE(StatusOf("deploys").attempt().empty()) << "who has the token may write as it";
  EXPECT_TRUE(Get("deploys", kBlueToken).metadata().name().empty());
  v1::LogChunk chunk;
  EXPECT_FALSE(Shirabe()->ReadLog(As(kBlueToken).get(), LogOf("deploys"), &chunk).ok());
  EXPECT_TRUE(chunk.text().empty());
  ASSERT_TRUE(Eventually([&] {
    return Shirabe()->ReadLog(As(kRedToken).get(), LogOf("deploys"), &chunk).ok() &&
           chunk.text() == "hello\n";
  }));
  const std::string log = "/api/v1/namespaces/red/experiments/deploys/on-success/attempts/";
  EXPECT_EQ(Http("GET " + log + "1/log", kRedToken).status, 200);
  for (const char* follow : {"", "?follow=true"}) {
    const auto foreign = Http("GET " + log + "1/log" + follow, kBlueToken);
    EXPECT_GE(foreign.status, 400) << follow;
    EXPECT_THAT(foreign.body, Not(HasSubstr("hello")));
  }
  for (const char* wrong : {"0", "-1", "2147483648", "1%00", "..%2f1"}) {
    EXPECT_EQ(Http("GET " + log + wrong + "/log", kRedToken).status / 100, 4) << wrong;
  }
  EXPECT_EQ(Http("GET " + log + "2/log", kRedToken).status, 404);
  EXPECT_GE(Http("GET " + log + "1/log?offset=-5", kRedToken).status, 400);
  const auto answer = Http("GET /api/v1/namespaces/red/experiments/deploys", kRedToken);
  EXPECT_THAT(answer.body, HasSubstr("\"bestTrialName\""));
  EXPECT_THAT(answer.body, Not(HasSubstr("\"attempt\"")));
  ASSERT_TRUE(WriteFileAtomic(gate, "").ok());
  ASSERT_TRUE(Eventually([&] { return StatusOf("deploys").phase() == v1::FOLLOW_UP_SUCCEEDED; }));
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/SendIntent, gRPC shirabe.v1.Shirabe/GetTrial
TEST_F(FollowUpAttackTest, IsNoTrialForThoseWhoKnowItsNumber) {
  Serve();
  ASSERT_LT(Create("red", Followed("ended", "true"), kAdminToken), 300);
  ASSERT_TRUE(Eventually([&] { return StatusOf("ended").phase() == v1::FOLLOW_UP_SUCCEEDED; }));
  v1::TrialRef key;
  key.set_namespace_("red");
  key.set_experiment("ended");
  key.set_number(kFollowUpNumber);
  v1::Trial trial;
  EXPECT_EQ(Shirabe()->GetTrial(As(kRedToken).get(), key, &trial).error_code(),
            grpc::StatusCode::NOT_FOUND);
  for (const auto verb : {v1::Intent::STOP_TRIAL, v1::Intent::ANNOTATE, v1::Intent::RETRY}) {
    v1::Intent intent;
    intent.set_namespace_("red");
    intent.set_experiment("ended");
    intent.set_verb(verb);
    intent.set_trial(kFollowUpNumber);
    intent.set_note("mine");
    v1::Done done;
    EXPECT_FALSE(Shirabe()->SendIntent(As(kAdminToken).get(), intent, &done).ok());
  }
  const std::string number = absl::StrCat(kFollowUpNumber);
  const std::string trials = "/api/v1/namespaces/red/experiments/ended/trials/";
  EXPECT_EQ(Http("GET " + trials + number, kRedToken).status, 404);
  EXPECT_EQ(Http("GET " + trials + number + "/attempts", kRedToken).status, 404);
  EXPECT_EQ(StatusOf("ended").attempts(), 1);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
