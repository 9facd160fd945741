#include "view/redaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/charts.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::view {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSecretiveSpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  name: secretive
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"value": "x1"}'
    note: uses horse-battery here
spec:
  objective: {type: minimize, objectiveMetricName: token}
  algorithm:
    algorithmName: random
    algorithmSettings: [{name: api_key, value: "77"}, {name: random_state, value: "7"}]
  parameters:
    - {name: next_token, parameterType: categorical, feasibleSpace: {list: [horse-battery, b]}}
  trialTemplate:
    trialParameters: [{name: x, reference: next_token}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            runtime: {env_vars: {A: in-a-map, N: 471147}, password: 12345678}
            imagePullSecrets: [{name: pull-secret}]
            containers:
              - name: main
                env:
                  - {name: PLAIN, value: horse-battery}
                  - {name: PIN_TOKEN, value: "4711"}
                  - {name: SHORT, value: "1"}
                  - {name: RATE, value: "${trialParameters.x}"}
                  - {name: OTHER, valueFrom: {secretKeyRef: {name: s, key: k}}}
                command: [run, --password, hunter2, --token-dim, "64", --url=https://a:b@c.d/]
)";

v1::Experiment Secretive() { return experiment::ParseExperiments(kSecretiveSpec).at(0).experiment; }

std::string TextOf(const google::protobuf::Message& message) { return message.DebugString(); }

TEST(RedactorTest, LeavesOutTheEnvironmentOfASpecification) {
  v1::Experiment experiment = Secretive();
  const Redactor redactor(experiment, {});
  redactor.Redact(experiment);
  const std::string text = TextOf(experiment);
  for (const char* gone :
       {"4711", "hunter2", "a:b@", "in-a-map", "x1", "\"77\"", "471147", "12345678"}) {
    EXPECT_THAT(text, Not(HasSubstr(gone)));
  }
  for (const char* kept :
       {"${trialParameters.x}", "PLAIN", "pull-secret", "secretKeyRef", "--token-dim", "\"64\"",
        "https://a:(left out)@c.d/", "\"7\"", "uses (left out) here"}) {
    EXPECT_THAT(text, HasSubstr(kept));
  }
  // A parameter's values are no secret, whatever they are called.
  EXPECT_EQ(experiment.spec().parameters(0).name(), "next_token");
  EXPECT_EQ(experiment.spec().parameters(0).feasible_space().list(0), "horse-battery");
  EXPECT_EQ(experiment.spec().objective().objective_metric_name(), "token");
}

TEST(RedactorTest, KnowsTheValuesOfTheEnvironmentInEveryText) {
  const Redactor redactor(Secretive(), {"MY_TOKEN=of-the-shell", "HOME=/home/me", "PWD=/tmp/x",
                                        "broken", "EMPTY_TOKEN="});
  EXPECT_EQ(redactor.Redact("horse-battery, 4711, of-the-shell, 1 in /home/me and /tmp/x"),
            "(left out), (left out), (left out), 1 in /home/me and /tmp/x");
  v1::Event event;
  event.set_message("it said horse-battery");
  redactor.Redact(event);
  EXPECT_EQ(event.message(), "it said (left out)");
  v1::Columns columns;
  v1::Column& reason = *columns.add_columns();
  reason.set_name("reason");
  reason.add_dictionary("horse-battery");
  v1::Column& parameter = *columns.add_columns();
  parameter.set_name("param.next_token");
  parameter.add_dictionary("horse-battery");
  redactor.Redact(columns);
  EXPECT_EQ(columns.columns(0).dictionary(0), "(left out)");
  EXPECT_EQ(columns.columns(1).dictionary(0), "horse-battery");
}

TEST(RedactorTest, FindsWhatIsNamedAsASecretOrLooksLikeOne) {
  const Redactor redactor(v1::Experiment(), {});
  const std::pair<const char*, const char*> cases[] = {
      {"password=abc, next", "password=(left out), next"},
      {"DB_PASSWORD=ab,cd;ef&gh more", "DB_PASSWORD=(left out) more"},
      {"DB_PASSWORD: 'a b,c'", "DB_PASSWORD: '(left out)'"},
      {R"re({"api_key": "x,y z", "n": 1})re", R"re({"api_key": "(left out)", "n": 1})re"},
      {"run --api-key abc --n 1", "run --api-key (left out) --n 1"},
      {"Authorization: Bearer abcdefgh.ij", "Authorization: Bearer (left out)"},
      {"authorization: Basic dXNlcjpwYXNz", "authorization: Basic (left out)"},
      {"postgres://me:pa55@host/db", "postgres://me:(left out)@host/db"},
      {"is AKIAABCDEFGHIJKLMNOP.", "is (left out)."},
      {"hf_abcdefghijklmnopqrstuv", "(left out)"},
      {"a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb",
       "a\n(left out)\nb"},
      {"-----BEGIN PRIVATE KEY-----\nabc", "(left out)"},
      {"\xff\xfe password=abc \xff", "\xff\xfe password=(left out) \xff"},
  };
  for (const auto& [given, wanted] : cases) {
    EXPECT_EQ(redactor.Redact(given), wanted);
    EXPECT_EQ(redactor.Redact(redactor.Redact(given)), wanted);
  }
  for (const char* kept : {"tokens=512 loss=0.25", "token_dim: 64", "basic understanding",
                           "the secret of it", "http://host:80/a@b", "--tokenizer bpe"}) {
    EXPECT_EQ(redactor.Redact(kept), kept);
  }
}

TEST(RedactorTest, LeavesOutWhatASecretOfTheClusterHolds) {
  google::protobuf::Struct object;
  (*object.mutable_fields())["kind"].set_string_value("Secret");
  auto& data = *(*object.mutable_fields())["data"].mutable_struct_value();
  (*data.mutable_fields())["anything"].set_string_value("c2VjcmV0");
  Redactor(v1::Experiment(), {}).Redact(object);
  EXPECT_EQ(data.fields().at("anything").string_value(), kLeftOut);
}

}  // namespace
}  // namespace shirabe::view
