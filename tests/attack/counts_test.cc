// Counts that a caller chooses: parallelTrialCount, maxTrialCount, suggestions asked for. None of
// them makes the server allocate or compute before there are trials, and what they ask for beyond
// the administrator's limits waits, and says so.
#include <sys/resource.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;

// Four machines: what a count asks for beyond them cannot run, whatever the server does.
constexpr char kFourSlots[] =
    "pools: [{name: small, capacity: on-demand, pricePerHour: 1, slots: 4}]\n";
constexpr int64_t kMiB = 1 << 20;

// Keeps a server that takes gigabytes from taking those of its neighbours; inherited by what is
// started meanwhile.
class DataLimit {
 public:
  explicit DataLimit(int64_t bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(bytes);
    setrlimit(RLIMIT_DATA, &limit);
  }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;
  ~DataLimit() { setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_{};
};

class CountsAttack : public AttackTest {
 protected:
  void SetUp() override {
    AttackTest::SetUp();
    if (IsSanitized()) {
      GTEST_SKIP() << "a sanitizer takes more memory than these tests allow the server";
    }
  }
  void ServeWithin(int64_t bytes, std::vector<std::string> more = {}) {
    const DataLimit limit(bytes);
    Serve(std::move(more));
  }
  int64_t Resident() const {
    const auto text = ReadFile(absl::StrCat("/proc/", server_->pid(), "/statm"));
    const std::vector<std::string> words = absl::StrSplit(text.value_or(""), ' ');
    int64_t pages = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &pages)) return 0;
    return pages * getpagesize();
  }
  static std::string Greedy(const std::string& name, const std::string& parallel) {
    std::string spec = Spec(kHonestSpec, "red", name, "sleep 0.5; echo loss=$1");
    spec = absl::StrReplaceAll(spec, {{"parallelTrialCount: 2", "parallelTrialCount: " + parallel},
                                      {"maxTrialCount: 2", "maxTrialCount: " + parallel}});
    return spec;
  }
  // One ask and the tell of it, of an experiment of somebody else.
  absl::Duration AskAndTell(const std::string& caller) {
    const absl::Time began = absl::Now();
    v1::AskRequest ask;
    ask.mutable_experiment()->set_namespace_("blue");
    ask.mutable_experiment()->set_name("polite");
    ask.set_caller(caller);
    ask.mutable_patience()->set_seconds(15);
    v1::AskReply asked;
    const auto status = Shirabe()->Ask(As(kBlueToken).get(), ask, &asked);
    EXPECT_TRUE(status.ok()) << status.error_message();
    v1::TellRequest tell;
    tell.mutable_trial()->set_namespace_("blue");
    tell.mutable_trial()->set_experiment("polite");
    tell.mutable_trial()->set_number(asked.trial().number());
    tell.set_token(asked.token());
    auto& point = *tell.add_points();
    point.set_metric("loss");
    point.set_value(0.5);
    tell.set_end(v1::TellRequest::COMPLETED);
    v1::TellReply told;
    const auto done = Shirabe()->Tell(As(kBlueToken).get(), tell, &told);
    EXPECT_TRUE(done.ok()) << done.error_message();
    return absl::Now() - began;
  }
  v1::Experiment Get(const std::string& ns, const std::string& name) {
    v1::ExperimentRef key;
    key.set_namespace_(ns);
    key.set_name(name);
    v1::Experiment experiment;
    Shirabe()->GetExperiment(As(kAdminToken).get(), key, &experiment).ok();
    return experiment;
  }
};

class CountsAttackOf : public CountsAttack, public testing::WithParamInterface<const char*> {};

// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/DeleteExperiment
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
// attacks: CRD spec.parallelTrialCount, CRD spec.maxTrialCount
TEST_P(CountsAttackOf, OneExperimentTakesNoMemoryForTrialsThatAreNotThere) {
  ServeWithin(2048 * kMiB, {"--nodes", cli_.Write("nodes.yaml", kFourSlots)});
  ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", "polite"), kBlueToken), 300);
  AskAndTell("first");
  const int64_t before = Resident();
  ASSERT_GT(before, 0);
  ASSERT_LT(Create("red", Greedy("greedy", GetParam()), kAdminToken), 300);

  int64_t most = 0;
  absl::Duration slowest;
  const absl::Time until = absl::Now() + absl::Seconds(6);
  for (int i = 0; absl::Now() < until; ++i) {
    slowest = std::max(slowest, AskAndTell(absl::StrCat("w", i)));
    most = std::max(most, Resident());
    ASSERT_GT(most, 0) << "the server has ended: " << server_->Err();
  }
  EXPECT_LT(most - before, 64 * kMiB);
  EXPECT_LT(slowest, absl::Seconds(5)) << "another experiment goes on meanwhile";
  EXPECT_LE(Get("red", "greedy").status().trials(), 100);

  const absl::Time asked = absl::Now();
  v1::DeleteRequest remove;
  remove.mutable_experiment()->set_namespace_("red");
  remove.mutable_experiment()->set_name("greedy");
  remove.mutable_patience()->set_seconds(20);
  v1::Done done;
  const auto deleted =
      Shirabe()->DeleteExperiment(As(kAdminToken, absl::Seconds(25)).get(), remove, &done);
  EXPECT_TRUE(deleted.ok()) << deleted.error_message();
  EXPECT_LT(absl::Now() - asked, absl::Seconds(10));
  AskAndTell("last");
}

INSTANTIATE_TEST_SUITE_P(Counts, CountsAttackOf, testing::Values("100000", "1000000"),
                         [](const auto& test) { return std::string(test.param); });

// attacks: gRPC shirabe.v1.Shirabe/SendIntent, gRPC shirabe.v1.Shirabe/SubmitExperiment
TEST_F(CountsAttack, CountsBeyondAllBoundsAreRefusedAtTheDoor) {
  Serve();
  const auto created =
      Http("POST /api/v1/namespaces/red/experiments", kAdminToken, Greedy("greedy", "2000000000"));
  EXPECT_GE(created.status, 400);
  EXPECT_LT(created.status, 500);
  EXPECT_THAT(created.body, HasSubstr("spec.parallelTrialCount"));

  ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", "polite"), kBlueToken), 300);
  v1::Intent scale;
  scale.set_namespace_("blue");
  scale.set_experiment("polite");
  scale.set_verb(v1::Intent::SCALE);
  scale.set_parallel_trial_count(2'000'000'000);
  v1::Done done;
  const auto scaled = Shirabe()->SendIntent(As(kBlueToken).get(), scale, &done);
  EXPECT_EQ(scaled.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << scaled.error_message();
  EXPECT_THAT(scaled.error_message(), HasSubstr("parallelTrialCount"));
  AskAndTell("one");
}

// attacks: gRPC shirabe.v1.Shirabe/SendIntent
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:scale
TEST_F(CountsAttack, RangesThatAreNoneAreRefusedAtTheDoor) {
  Serve();
  ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", "polite"), kBlueToken), 300);
  std::string many = "0";
  for (int i = 1; i < 20'000; ++i) many += "," + std::to_string(i);
  const std::string bodies[] = {
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"min": "NaN"}}]})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"max": "Infinity"}}]})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"min": 5, "max": -5}}]})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"list": ["a"]}}]})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"step": 1e-300}}]})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"max": 2, "distribution": "normal"}}]})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {}}]})",
      R"({"parameters": [{"name": "../../etc", "feasibleSpace": {"max": 2}}]})",
      R"({"parameters": [{"name": "lr"}]})",
      R"({"parameters": [{}]})",
      R"({"parameters": {"lr": {"max": 2}}})",
      R"({"parameters": [{"name": "lr", "feasibleSpace": {"list": [)" + many + "]}}]}",
  };
  for (const std::string& body : bodies) {
    const auto refused =
        Http("POST /api/v1/namespaces/blue/experiments/polite:scale", kBlueToken, body);
    EXPECT_GE(refused.status, 400) << body.substr(0, 100);
    EXPECT_LT(refused.status, 500) << body.substr(0, 100) << refused.body;
  }
  // Nor by another tenant.
  const auto other = Http("POST /api/v1/namespaces/blue/experiments/polite:scale", kRedToken,
                          R"({"parameters": [{"name": "lr", "feasibleSpace": {"max": 2}}]})");
  EXPECT_GE(other.status, 400);
  AskAndTell("one");
}

// attacks: gRPC shirabe.v1.Shirabe/Suggest
TEST_F(CountsAttack, SuggestionsAreAskedForAFewAtATime) {
  ServeWithin(2048 * kMiB);
  ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", "polite"), kBlueToken), 300);
  for (const int count : {2'000'000'000, 1'000'000, -1}) {
    v1::SuggestRequest suggest;
    *suggest.mutable_experiment() = Get("blue", "polite");
    suggest.set_count(count);
    v1::SuggestReply points;
    const auto status = Shirabe()->Suggest(As(kBlueToken).get(), suggest, &points);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << count;
  }
  AskAndTell("one");
}

// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
TEST_F(CountsAttack, KatibsSuggestionsAreAskedForAFewAtATime) {
  ServeWithin(2048 * kMiB);
  ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", "polite"), kBlueToken), 300);
  api::v1::beta1::GetSuggestionsRequest request;
  auto& experiment = *request.mutable_experiment();
  experiment.set_name("polite");
  experiment.mutable_spec()->mutable_algorithm()->set_algorithm_name("random");
  experiment.mutable_spec()->mutable_objective()->set_type(api::v1::beta1::MINIMIZE);
  experiment.mutable_spec()->mutable_objective()->set_objective_metric_name("loss");
  auto& parameter = *experiment.mutable_spec()->mutable_parameter_specs()->add_parameters();
  parameter.set_name("lr");
  parameter.set_parameter_type(api::v1::beta1::DOUBLE);
  parameter.mutable_feasible_space()->set_min("0");
  parameter.mutable_feasible_space()->set_max("1");
  const auto stub = api::v1::beta1::Suggestion::NewStub(Channel(grpc_));
  request.set_current_request_number(2'000'000'000);
  api::v1::beta1::GetSuggestionsReply reply;
  const auto refused = stub->GetSuggestions(As(kBlueToken).get(), request, &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("current_request_number"));
  request.set_current_request_number(3);
  const auto given = stub->GetSuggestions(As(kBlueToken).get(), request, &reply);
  EXPECT_TRUE(given.ok()) << given.error_message();
  EXPECT_EQ(reply.parameter_assignments_size(), 3);
  AskAndTell("one");
}

// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment
TEST_F(CountsAttack, ANamespaceHasSoManyExperiments) {
  Serve({"--max-experiments", "3"});
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", name), kBlueToken), 300) << name;
  }
  const auto refused =
      Http("POST /api/v1/namespaces/blue/experiments", kBlueToken, Spec(kAskedSpec, "blue", "d"));
  EXPECT_GE(refused.status, 400) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("--max-experiments"));
  EXPECT_LT(Create("red", Spec(kAskedSpec, "red", "a"), kRedToken), 300) << "of another namespace";
}

// attacks: gRPC shirabe.v1.Shirabe/Ask
TEST_F(CountsAttack, CallersWhoNeverTellTakeNoMoreThanTheirShare) {
  Serve({"--max-parallel-trials", "5"});
  ASSERT_LT(Create("blue", Spec(kAskedSpec, "blue", "polite"), kBlueToken), 300);
  for (int i = 0; i < 8; ++i) {
    v1::AskRequest ask;
    ask.mutable_experiment()->set_namespace_("blue");
    ask.mutable_experiment()->set_name("polite");
    ask.set_caller(absl::StrCat("taker-", i));
    ask.mutable_patience()->set_seconds(i < 5 ? 15 : 1);
    v1::AskReply asked;
    Shirabe()->Ask(As(kBlueToken).get(), ask, &asked).ok();
    EXPECT_EQ(asked.has_trial(), i < 5) << i;
  }
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(Get("blue", "polite").status().shirabe().waiting(),
                             "--max-parallel-trials 5");
  })) << Get("blue", "polite").status().shirabe().waiting();
}

}  // namespace
}  // namespace shirabe::attack
