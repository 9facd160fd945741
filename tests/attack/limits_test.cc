// Specifications that are too large: by every door the same limit, with the same words, in a
// moment.
#include <thread>

#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

constexpr absl::Duration kMoment = absl::Seconds(5);  // on two busy cores

// kAskedSpec with a categorical parameter of so many values.
std::string WithValues(const std::string& spec, int count) {
  std::string list = "v";
  for (int i = 1; i < count; ++i) absl::StrAppend(&list, ",v", i);
  return absl::StrReplaceAll(
      spec, {{"parameterType: double, feasibleSpace: {min: \"0\", max: \"1\"}",
              "parameterType: categorical, feasibleSpace: {list: [" + list + "]}"}});
}

class LimitsTest : public AttackTest {
 protected:
  std::string Validate(const std::string& spec) {
    const absl::Time began = absl::Now();
    const service::WireReply reply = Http("POST /api/v1/validate", kRedToken, spec);
    EXPECT_LT(absl::Now() - began, kMoment);
    EXPECT_EQ(reply.status, 200);
    return reply.body;
  }
};

// It took 13.7 s, and eight at once held up /livez for two minutes.
// attacks: HTTP POST /api/v1/validate, CRD spec.parameters.feasibleSpace.list
TEST_F(LimitsTest, ALongListIsValidatedInAMoment) {
  Serve();
  const std::string spec = Spec(kAskedSpec, "red", "long");
  EXPECT_THAT(Validate(WithValues(spec, 90'000)),
              testing::HasSubstr(
                  "spec.parameters[0].feasibleSpace.list\",\"message\":\"has 90000 items, and at "
                  "most 10000 are taken"));
  EXPECT_THAT(Validate(WithValues(spec, 10'000)), testing::HasSubstr("\"valid\":true"));
  std::vector<std::thread> callers;
  const std::string text = WithValues(spec, 90'000);
  for (int i = 0; i < 8; ++i) callers.emplace_back([&] { Validate(text); });
  for (int i = 0; i < 5; ++i) {
    const absl::Time began = absl::Now();
    EXPECT_EQ(Http("GET /livez", "").status, 200);
    EXPECT_LT(absl::Now() - began, absl::Seconds(2));
  }
  for (std::thread& caller : callers) caller.join();
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments, HTTP POST /api/v1/validate
// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/Suggest
TEST_F(LimitsTest, EveryDoorHasTheSameLimits) {
  Serve();
  const std::string words = "has 10001 items, and at most 10000 are taken";
  const std::string spec = WithValues(Spec(kAskedSpec, "red", "wide"), 10'001);
  EXPECT_THAT(Validate(spec), testing::HasSubstr(words));
  const auto reply = Http("POST /api/v1/namespaces/red/experiments", kRedToken, spec);
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, testing::HasSubstr(words));
  const cmd::Outcome local = cli_.Run({"validate", "-f", cli_.Write("wide.yaml", spec)});
  EXPECT_EQ(local.code, 5);
  EXPECT_THAT(local.out + local.err, testing::HasSubstr(words));

  v1::SubmitRequest request;
  v1::Experiment& experiment = *request.mutable_experiment();
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_name("wide");
  experiment.mutable_metadata()->set_namespace_("red");
  experiment.mutable_spec()->mutable_objective()->set_type(v1::MINIMIZE);
  experiment.mutable_spec()->mutable_objective()->set_objective_metric_name("loss");
  experiment.mutable_spec()->mutable_shirabe()->set_ask_and_tell(true);
  v1::ParameterSpec& parameter = *experiment.mutable_spec()->add_parameters();
  parameter.set_name("lr");
  parameter.set_parameter_type(v1::CATEGORICAL);
  for (int i = 0; i <= 10'000; ++i) {
    parameter.mutable_feasible_space()->add_list(absl::StrCat("v", i));
  }
  v1::SubmitReply submitted;
  grpc::Status status = Shirabe()->SubmitExperiment(As(kRedToken).get(), request, &submitted);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::HasSubstr(words));
  v1::SuggestRequest suggest;
  *suggest.mutable_experiment() = experiment;
  v1::SuggestReply suggested;
  status = Shirabe()->Suggest(As(kRedToken).get(), suggest, &suggested);
  EXPECT_THAT(status.error_message(), testing::HasSubstr(words));
}

// Each of these was a product of two numbers that the caller chooses.
// attacks: HTTP POST /api/v1/validate, gRPC shirabe.v1.Shirabe/SubmitExperiment
// attacks: CRD spec.objective.additionalMetricNames, CRD spec.trialTemplate.trialParameters
// attacks: CRD spec.algorithm.algorithmSettings, CRD spec.shirabe.start
TEST_F(LimitsTest, NoProductOfTwoCountsIsWorkedOff) {
  Serve();
  const std::string spec = Spec(kHonestSpec, "red", "products");
  std::string metrics, uses, bound, settings, start;
  for (int i = 0; i < 80'000; ++i) absl::StrAppend(&metrics, i > 0 ? "," : "", "m", i);
  for (int i = 0; i < 25'000; ++i) absl::StrAppend(&uses, "${trialParameters.a", i, "}");
  for (int i = 0; i < 15'000; ++i) {
    absl::StrAppend(&bound, ", {name: n", i, ", reference: r", i, "}");
    absl::StrAppend(&settings, i > 0 ? "," : "", "{name: seed", i, ", value: 1}");
    absl::StrAppend(&start, i > 0 ? "," : "", "{lr: 0.5, nr: 1}");
  }
  const auto with = [&](const std::string& from, const std::string& to) {
    return absl::StrReplaceAll(spec, {{from, to}});
  };
  EXPECT_THAT(Validate(with("objectiveMetricName: loss",
                            "objectiveMetricName: loss, additionalMetricNames: [" + metrics + "]")),
              testing::HasSubstr("has 80000 items, and at most 1000 are taken"));
  EXPECT_THAT(Validate(with("echo loss=$1", uses)),
              testing::HasSubstr("is bound by no trialParameter"));
  EXPECT_THAT(Validate(with("{name: lr, reference: lr}", "{name: lr, reference: lr}" + bound)),
              testing::HasSubstr("has 15001 items, and at most 2000 are taken"));
  EXPECT_THAT(Validate(with("algorithmName: random",
                            "algorithmName: random, algorithmSettings: [" + settings + "]")),
              testing::HasSubstr("has 15000 items, and at most 1000 are taken"));
  EXPECT_THAT(Validate(spec + "  shirabe: {start: [" + start + "]}\n"),
              testing::HasSubstr("has 15000 items, and at most 1000 are taken"));

  v1::SubmitRequest request;
  request.mutable_experiment()->mutable_metadata()->set_name("many");
  request.mutable_experiment()->mutable_metadata()->set_namespace_("red");
  auto& objective = *request.mutable_experiment()->mutable_spec()->mutable_objective();
  objective.set_type(v1::MINIMIZE);
  objective.set_objective_metric_name("loss");
  for (int i = 0; i < 300'000; ++i) objective.add_additional_metric_names(absl::StrCat("m", i));
  request.mutable_experiment()->mutable_spec()->mutable_shirabe()->set_ask_and_tell(true);
  v1::SubmitReply reply;
  const absl::Time began = absl::Now();
  EXPECT_EQ(Shirabe()->SubmitExperiment(As(kRedToken).get(), request, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_LT(absl::Now() - began, kMoment);
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, HTTP POST /api/v1/validate
TEST_F(LimitsTest, AMessageMayBeAsLargeOverGrpcAsOverHttp) {
  Serve();
  const std::string large((4 << 20) + 1000, ' ');
  EXPECT_EQ(Http("POST /api/v1/validate", kRedToken, large).status, 413);
  v1::SubmitRequest request;
  request.mutable_experiment()->set_kind(large);
  v1::SubmitReply reply;
  EXPECT_EQ(Shirabe()->SubmitExperiment(As(kRedToken).get(), request, &reply).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
