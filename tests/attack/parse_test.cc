// Texts that take a parser's stack, memory or time instead of its patience: JSON, YAML and protobuf
// that is deep, wide, long or repeats itself, and values that no number or text should have. Each
// is refused in a moment, and the server lives on in little memory.
#include <fstream>

#include "tests/attack/attacked_server.h"
#include "tests/attack/raw_call.h"
#include "tests/support/small_spec.h"

namespace shirabe::attack {
namespace {

constexpr int kDeep = 600'000;
constexpr absl::Duration kParseMoment = absl::Seconds(5);  // on two busy cores
constexpr char kPatch[] = "PATCH /api/v1/namespaces/red/experiments/victim";

std::string Repeated(const std::string& text, int times) {
  std::string all;
  all.reserve(text.size() * times);
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// The bytes of a message as a field of another.
std::string Wrapped(int field, const std::string& message) {
  std::string bytes(1, static_cast<char>(field << 3 | 2));
  size_t left = message.size();
  for (; left >= 0x80; left >>= 7) bytes += static_cast<char>(left | 0x80);
  return bytes + static_cast<char>(left) + message;
}

class ParseTest : public AttackTest {
 protected:
  void MakeVictim() { ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "victim"), kRedToken), 300); }
  // The status; 0 = the server has gone. It answers within a moment.
  int InAMoment(const std::string& line, const std::string& body) {
    const absl::Time began = absl::Now();
    const service::WireReply reply = Http(line, kRedToken, body);
    EXPECT_LT(absl::Now() - began, kParseMoment) << line;
    last_body_ = reply.body;
    return reply.status;
  }
  // The most memory that the server has ever had, in MiB.
  int64_t PeakMiB() const {
    std::ifstream status(absl::StrCat("/proc/", server_->pid(), "/status"));
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) / 1024;
    }
    return -1;
  }
  grpc::Status SendBytes(const std::string& method, const std::string& bytes) const {
    return CallWithBytes(Channel(grpc_), *As(kRedToken), method, bytes);
  }

  std::string last_body_;
};

// attacks: HTTP PATCH /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(ParseTest, PatchWithDeepJsonIsRefused) {
  Serve();
  MakeVictim();
  const std::string lists = Repeated("[", kDeep) + Repeated("]", kDeep);
  const std::string objects = Repeated("{\"a\":", kDeep) + "1" + Repeated("}", kDeep);
  EXPECT_EQ(InAMoment(kPatch, "{\"spec\":" + lists + "}"), 400);
  EXPECT_EQ(InAMoment(kPatch, objects), 400);
  EXPECT_THAT(last_body_, testing::HasSubstr("more than 64 levels"));
  EXPECT_EQ(InAMoment(kPatch, lists), 400);
  EXPECT_EQ(InAMoment(kPatch, Repeated("[", 3'000'000)), 400);
  ExpectAlive();
}

// Objects that keep their order are searched from the front: 300,000 keys are 45 billion steps.
// attacks: HTTP PATCH /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(ParseTest, PatchWithManyKeysIsRefusedInAMoment) {
  Serve();
  MakeVictim();
  std::string wide = "{\"spec\":{\"k\":0";
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&wide, ",\"", i, "\":0");
  EXPECT_EQ(InAMoment(kPatch, wide + "}}"), 400);
  EXPECT_EQ(InAMoment(kPatch, "{\"spec\":[" + Repeated("0,", 1'500'000) + "0]}"), 400);
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment
TEST_F(ParseTest, ImportOfDeepJsonIsRefused) {
  Serve();
  for (const bool objective : {true, false}) {
    v1::ImportRequest request;
    request.set_namespace_("red");
    request.set_name("imported");
    request.set_source("a test");
    request.set_objective("{\"type\": \"minimize\", \"objectiveMetricName\": \"loss\"}");
    request.set_parameters("[]");
    (objective ? request.mutable_objective() : request.mutable_parameters())
        ->assign(Repeated("[", kDeep) + Repeated("]", kDeep));
    v1::ImportReply reply;
    const grpc::Status status = Shirabe()->ImportExperiment(As(kRedToken).get(), request, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                testing::HasSubstr(objective ? "objective: the JSON has" : "parameters: the JSON"));
  }
  ExpectAlive();
}

// Names of parameters that a trial lacks, and metrics without end: no product of the two.
// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment
TEST_F(ParseTest, ImportOfManyNamesIsAnsweredInAMoment) {
  Serve();
  v1::ImportRequest request;
  request.set_namespace_("red");
  request.set_name("imported");
  request.set_source("a test");
  request.set_objective("{\"type\": \"minimize\", \"objectiveMetricName\": \"loss\"}");
  request.set_parameters(
      R"([{"name": "c", "parameterType": "categorical", "feasibleSpace": {"list": ["a"]}}])");
  v1::ImportRequest::Trial& trial = *request.add_trials();
  trial.set_name("t");
  trial.set_phase(v1::TRIAL_SUCCEEDED);
  v1::ImportRequest::Value& value = *trial.add_values();
  value.set_name("c");
  value.set_text("a");
  for (int i = 0; i < 150'000; ++i) {
    v1::ImportRequest::Point& point = *trial.add_points();
    point.set_metric(absl::StrCat("m", i));
    point.set_value(1);
  }
  v1::ImportReply reply;
  const absl::Time began = absl::Now();
  EXPECT_EQ(Shirabe()->ImportExperiment(As(kRedToken).get(), request, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_LT(absl::Now() - began, kParseMoment);
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments, HTTP POST /api/v1/validate
// attacks: HTTP POST /api/v1/experiments, HTTP POST /api/v1/suggest
// attacks: HTTP PUT /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(ParseTest, YamlThatGrowsIsRefusedInLittleMemory) {
  Serve();
  // A long text, and aliases to it: 60,000 copies would be 30 GB.
  const std::string aliases =
      "a: &a \"" + std::string(500'000, 'x') + "\"\nb: [*a" + Repeated(",*a", 60'000) + "]\n";
  // A long key above many values: the path of each would hold it.
  std::string children = Spec(kAskedSpec, "red", "keys") + "  trialTemplate: {trialSpec: {? \"" +
                         std::string(400'000, 'k') + "\" : {a: 1";
  for (int i = 0; i < 50'000; ++i) absl::StrAppend(&children, ", c", i, ": 1");
  children += "}}}\n";
  std::string aliased = "x: &x [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 0; i < 12; ++i) {
    const std::string last = i == 0 ? "x" : absl::StrCat("x", i - 1);
    absl::StrAppend(&aliased, "y", i, ": &x", i, " [", Repeated("*" + last + ",", 10), "1]\n");
  }
  for (const char* line : {"POST /api/v1/validate", "POST /api/v1/namespaces/red/experiments",
                           "POST /api/v1/experiments", "POST /api/v1/suggest",
                           "PUT /api/v1/namespaces/red/experiments/victim"}) {
    for (const std::string& text : {aliases, children, aliased, Repeated("[", kDeep),
                                    Repeated("{a: ", 200'000), Repeated("- ", 400'000)}) {
      const int status = InAMoment(line, text);
      EXPECT_GE(status, 200) << line;
      EXPECT_LT(status, 500) << line;
    }
  }
  EXPECT_LT(PeakMiB(), 1024);
  ExpectAlive();
}

// 0.1 took 64 levels from YAML, and protobuf read back no more than 33: such a record could be
// stored and never read again, and hid those of everybody in a list.
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
// attacks: CRD spec.trialTemplate.trialSpec, HTTP GET /api/v1/experiments
TEST_F(ParseTest, WhatIsTooDeepToBeReadAgainIsNotStored) {
  Serve();
  const auto with_depth = [](int levels) {
    return absl::StrReplaceAll(
        Spec(kHonestSpec, "red", absl::StrCat("deep-", levels)),
        {{"      kind: Job\n", "      kind: Job\n      deep: " + Repeated("{a: ", levels) + "1" +
                                   Repeated("}", levels) + "\n"}});
  };
  const int before = Http("GET /api/v1/namespaces/red/experiments", kRedToken).status;
  EXPECT_EQ(before, 200);
  EXPECT_GE(Create("red", with_depth(40), kAdminToken), 400);
  EXPECT_GE(Create("red", with_depth(58), kAdminToken), 400);
  EXPECT_EQ(Http("GET /api/v1/namespaces/red/experiments", kRedToken).status, 200);
  EXPECT_EQ(Http("GET /api/v1/experiments", kAdminToken).status, 200);
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/Suggest
TEST_F(ParseTest, ValuesThatNoTextCanHoldAreRefused) {
  Serve();
  const auto submit = [&](const std::function<void(v1::ExperimentSpec&)>& change) {
    v1::SubmitRequest request;
    v1::Experiment& experiment = *request.mutable_experiment();
    experiment = SmallExperiment({"red", "odd"});
    v1::ExperimentSpec& spec = *experiment.mutable_spec();
    spec.mutable_shirabe()->set_ask_and_tell(true);
    change(spec);
    v1::SubmitReply submitted;
    const auto code =
        Shirabe()->SubmitExperiment(As(kRedToken).get(), request, &submitted).error_code();
    v1::SuggestRequest suggest;
    *suggest.mutable_experiment() = experiment;
    suggest.set_count(1);
    v1::SuggestReply suggested;
    EXPECT_EQ(Shirabe()->Suggest(As(kRedToken).get(), suggest, &suggested).error_code(), code);
    return code;
  };
  const auto invalid = grpc::StatusCode::INVALID_ARGUMENT;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  using Spec = v1::ExperimentSpec;
  EXPECT_EQ(submit([&](Spec& s) { s.mutable_objective()->set_goal(nan); }), invalid);
  EXPECT_EQ(submit([&](Spec& s) {
              s.mutable_parameters(0)->mutable_feasible_space()->set_max(infinity);
            }),
            invalid);
  EXPECT_EQ(submit([&](Spec& s) { s.set_parallel_trial_count(INT32_MIN); }), invalid);
  EXPECT_EQ(submit([&](Spec& s) { s.mutable_shirabe()->set_seed(INT64_MIN); }), invalid);
  EXPECT_EQ(submit([&](Spec& s) { s.mutable_parameters(0)->set_name(std::string("l\0r", 3)); }),
            invalid);
  EXPECT_EQ(submit([&](Spec& s) { s.mutable_parameters(0)->set_name(std::string(5000, 'x')); }),
            invalid);
  EXPECT_EQ(submit([&](Spec& s) {
              (*s.mutable_shirabe()->add_start()->mutable_fields())["lr"].set_number_value(nan);
            }),
            invalid);
  EXPECT_EQ(
      submit([&](Spec& s) {
        s.mutable_metrics_collector_spec()->mutable_source()->mutable_http_get()->mutable_port();
      }),
      invalid);
  EXPECT_EQ(submit([&](Spec& s) {
              auto* at = s.mutable_metrics_collector_spec()
                             ->mutable_source()
                             ->mutable_http_get()
                             ->mutable_http_headers();
              for (int i = 0; i < 31; ++i) at = at->mutable_list_value()->add_values();
              at->set_bool_value(true);
            }),
            invalid);
  ExpectAlive();
}

// Deeper than protobuf reads, and bytes that are no UTF-8: refused by whoever reads them.
// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/GetExperiment
TEST_F(ParseTest, BytesThatAreNoMessageAreRefused) {
  Serve();
  std::string deep;  // Value { list_value { values { … } } }
  for (int i = 0; i < 5000; ++i) deep = Wrapped(6, Wrapped(1, deep));
  // experiment.spec.metrics_collector_spec.source.http_get.http_headers
  for (const int field : {5, 1, 1, 9, 4, 1}) deep = Wrapped(field, deep);
  EXPECT_FALSE(SendBytes("/shirabe.v1.Shirabe/SubmitExperiment", deep).ok());
  EXPECT_FALSE(
      SendBytes("/shirabe.v1.Shirabe/GetExperiment", std::string("\x0a\x02\xc3\x28", 4)).ok());
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment, gRPC shirabe.v1.Shirabe/Tell
// attacks: gRPC shirabe.v1.Shirabe/AwaitChange, gRPC shirabe.v1.Pods/Sync
TEST_F(ParseTest, TimesOfNoCalendarAreRefused) {
  Serve();
  v1::ImportRequest import;
  import.set_namespace_("red");
  import.set_name("imported");
  import.add_trials()->mutable_start()->set_seconds(INT64_MAX);
  v1::ImportReply imported;
  EXPECT_EQ(Shirabe()->ImportExperiment(As(kRedToken).get(), import, &imported).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::TellRequest tell;
  tell.mutable_trial()->set_namespace_("red");
  tell.add_points()->mutable_time()->set_nanos(-1);
  v1::TellReply told;
  EXPECT_EQ(Shirabe()->Tell(As(kRedToken).get(), tell, &told).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::AwaitChangeRequest await;
  await.mutable_patience()->set_seconds(INT64_MIN);
  v1::Revision revision;
  EXPECT_EQ(Shirabe()->AwaitChange(As(kRedToken).get(), await, &revision).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::SyncRequest sync;
  sync.mutable_state()->add_checkpoints()->mutable_time()->set_seconds(INT64_MIN);
  v1::SyncReply synced;
  EXPECT_FALSE(v1::Pods::NewStub(Channel(grpc_))->Sync(As(kRedToken).get(), sync, &synced).ok());
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:ask
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:tell
TEST_F(ParseTest, NulOverHttpIsRefusedToo) {
  Serve();
  MakeVictim();
  const std::string one = "POST /api/v1/namespaces/red/experiments/victim";
  EXPECT_EQ(InAMoment(one + ":ask", "{\"caller\": \"a\\u0000b\"}"), 400);
  EXPECT_EQ(InAMoment(one + "/trials/1:tell", "{\"message\": \"a\\u0000\", \"end\": \"Failed\"}"),
            400);
  ExpectAlive();
}

// attacks: CRD spec.metricsCollectorSpec.source.filter.metricsFormat
// attacks: CRD spec.trialTemplate.successCondition, CRD spec.trialTemplate.failureCondition
// attacks: HTTP POST /api/v1/validate
TEST_F(ParseTest, ExpressionsThatGrowAreRefusedInAMoment) {
  Serve();
  const std::string honest = Spec(kHonestSpec, "red", "expressions");
  const auto validate = [&](const std::string& more) {
    EXPECT_EQ(InAMoment("POST /api/v1/validate", honest + more), 200);
    return last_body_;
  };
  const auto filter = [](const std::string& list) {
    return "  metricsCollectorSpec: {source: {filter: {metricsFormat: [" + list +
           "]}}, collector: {kind: StdOut}}\n";
  };
  EXPECT_THAT(validate(filter(Repeated("'(\\w+)=(((a{900}){900}){900})',", 10))),
              testing::HasSubstr("is not a regular expression"));
  EXPECT_THAT(validate(filter(Repeated("'([a-z]{1,900})=(\\S+)',", 15'000))),
              testing::HasSubstr("has 15000 items, and at most 20 are taken"));
  EXPECT_THAT(validate(filter("'" + Repeated("(", 3000) + Repeated(")", 3000) + "'")),
              testing::HasSubstr("at most 4096"));
  const auto condition = [&](const std::string& text) {
    return "    successCondition: '" + text + "'\n    failureCondition: 'x'\n";
  };
  EXPECT_THAT(validate(condition(Repeated("[a", 100'000))), testing::HasSubstr("4096 bytes"));
  EXPECT_THAT(validate(condition(Repeated("#(a.", 1000))), testing::HasSubstr("too many queries"));
  ExpectAlive();
}

// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
// attacks: gRPC api.v1.beta1.Suggestion/ValidateAlgorithmSettings
// attacks: gRPC api.v1.beta1.DBManager/ReportObservationLog
TEST_F(ParseTest, TextsOfKatibsWireEndNothing) {
  Serve();
  namespace katib = ::api::v1::beta1;
  const auto stub = katib::Suggestion::NewStub(Channel(grpc_));
  const auto ask = [&](const std::function<void(katib::ExperimentSpec&)>& change) {
    katib::GetSuggestionsRequest request;
    katib::ExperimentSpec& spec = *request.mutable_experiment()->mutable_spec();
    spec.mutable_objective()->set_type(katib::MINIMIZE);
    spec.mutable_objective()->set_objective_metric_name("loss");
    spec.mutable_algorithm()->set_algorithm_name("random");
    katib::ParameterSpec& parameter = *spec.mutable_parameter_specs()->add_parameters();
    parameter.set_name("lr");
    parameter.set_parameter_type(katib::DOUBLE);
    parameter.mutable_feasible_space()->set_min("0");
    parameter.mutable_feasible_space()->set_max("1");
    change(spec);
    request.set_current_request_number(1);
    request.set_total_request_number(1);
    katib::GetSuggestionsReply reply;
    const absl::Time began = absl::Now();
    const grpc::Status status = stub->GetSuggestions(As(kRedToken).get(), request, &reply);
    EXPECT_LT(absl::Now() - began, kParseMoment);
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    return status.ok();
  };
  using Spec = katib::ExperimentSpec;
  const auto first = [](Spec& spec) -> katib::ParameterSpec& {
    return *spec.mutable_parameter_specs()->mutable_parameters(0);
  };
  for (const char* number : {"1e999", "-1e999", "NaN", "inf", "0x10", "1_000", "9e307 ", "--1"}) {
    EXPECT_FALSE(ask([&](Spec& s) { first(s).mutable_feasible_space()->set_max(number); }))
        << number;
    EXPECT_FALSE(ask([&](Spec& s) { first(s).mutable_feasible_space()->set_step(number); }))
        << number;
  }
  EXPECT_FALSE(ask([&](Spec& s) { first(s).set_name(std::string("a\0b", 3)); }));
  EXPECT_FALSE(ask([&](Spec& s) { first(s).set_name(std::string(100'000, 'x')); }));
  EXPECT_FALSE(ask([&](Spec& s) {
    first(s).set_parameter_type(katib::CATEGORICAL);
    first(s).mutable_feasible_space()->clear_min();
    first(s).mutable_feasible_space()->clear_max();
    for (int i = 0; i < 90'000; ++i) {
      first(s).mutable_feasible_space()->add_list(absl::StrCat("v", i));
    }
  }));
  EXPECT_FALSE(ask([](Spec& s) {
    for (int i = 0; i < 50'000; ++i) {
      auto& setting = *s.mutable_algorithm()->add_algorithm_settings();
      setting.set_name(absl::StrCat("random_stat", i));
      setting.set_value("1");
    }
  }));
  EXPECT_FALSE(ask([](Spec& s) {
    for (int i = 0; i < 100'000; ++i) {
      s.mutable_objective()->add_additional_metric_names(absl::StrCat("m", i));
    }
  }));
  katib::ReportObservationLogRequest report;
  report.set_trial_name(std::string("a\0b-1", 5));
  katib::ReportObservationLogReply reported;
  EXPECT_FALSE(katib::DBManager::NewStub(Channel(grpc_))
                   ->ReportObservationLog(As(kRedToken).get(), report, &reported)
                   .ok());
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
