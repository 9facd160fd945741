// What a model makes of trials: who may ask for it, what may be asked, and what it may take of the
// server from those who ask for something else.
#include <atomic>
#include <limits>
#include <thread>

#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AnalysisAttack : public AttackTest {
 protected:
  // Trials of the namespace red that have ended, of two parameters, one of them with odd texts.
  void ServeTrials(int count) {
    Serve();
    v1::ImportRequest request = ImportOfOneTrial("found");
    request.set_parameters(R"([
      {"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0", "max": "1"}},
      {"name": "kind", "parameterType": "categorical",
       "feasibleSpace": {"list": ["<script>alert(1)</script>", "\" onload=\"x", "plain"]}}])");
    const v1::ImportRequest::Trial first = request.trials(0);
    request.clear_trials();
    for (int i = 0; i < count; ++i) {
      v1::ImportRequest::Trial& trial = *request.add_trials();
      trial = first;
      trial.set_name(absl::StrCat("t", i));
      trial.mutable_values(0)->set_text(absl::StrCat((i * 37 % count + 0.5) / count));
      v1::ImportRequest::Value& kind = *trial.add_values();
      kind.set_name("kind");
      kind.set_text(i % 2 == 0 ? "<script>alert(1)</script>" : "\" onload=\"x");
      trial.mutable_points(0)->set_value(i * 37 % count * 0.01 + i % 2);
    }
    v1::ImportReply reply;
    const auto imported = Shirabe()->ImportExperiment(As(kRedToken).get(), request, &reply);
    ASSERT_TRUE(imported.ok()) << imported.error_message();
  }

  template <class Request>
  static Request Of(const std::string& name) {
    Request request;
    request.set_namespace_("red");
    request.set_experiment(name);
    return request;
  }
  grpc::StatusCode Importance(const v1::ImportanceRequest& request, const std::string& token) {
    v1::Importance reply;
    return Shirabe()->GetImportance(As(token).get(), request, &reply).error_code();
  }
  grpc::Status Dependence(const std::vector<std::string>& names) {
    auto request = Of<v1::PartialDependenceRequest>("found");
    request.mutable_parameters()->Assign(names.begin(), names.end());
    v1::PartialDependence reply;
    return Shirabe()->GetPartialDependence(As(kRedToken).get(), request, &reply);
  }

  const std::string red_ = "GET /api/v1/namespaces/red/experiments/found";
};

// attacks: gRPC shirabe.v1.Shirabe/GetImportance, gRPC shirabe.v1.Shirabe/GetAblation
// attacks: gRPC shirabe.v1.Shirabe/GetPartialDependence
TEST_F(AnalysisAttack, AnotherNamespaceAndKeysThatCannotBeAreRefused) {
  ServeTrials(20);
  EXPECT_EQ(Importance(Of<v1::ImportanceRequest>("found"), kRedToken), grpc::StatusCode::OK);
  EXPECT_EQ(Importance(Of<v1::ImportanceRequest>("found"), kBlueToken),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Importance(Of<v1::ImportanceRequest>("found"), ""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Importance(Of<v1::ImportanceRequest>("none"), kRedToken), grpc::StatusCode::NOT_FOUND);
  for (const char* name : {"../found", "", "a/b", "found\n"}) {
    EXPECT_EQ(Importance(Of<v1::ImportanceRequest>(name), kRedToken),
              grpc::StatusCode::INVALID_ARGUMENT)
        << name;
  }
  auto unknown = Of<v1::ImportanceRequest>("found");
  unknown.set_method(static_cast<v1::ImportanceMethod>(99));
  EXPECT_EQ(Importance(unknown, kRedToken), grpc::StatusCode::INVALID_ARGUMENT);
  for (const int64_t number : {int64_t{-1}, int64_t{21}, std::numeric_limits<int64_t>::max()}) {
    auto ablation = Of<v1::AblationRequest>("found");
    ablation.set_to(number);
    v1::Ablation reply;
    const auto status = Shirabe()->GetAblation(As(kRedToken).get(), ablation, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << number;
    EXPECT_THAT(status.error_message(), HasSubstr("give one from 1 to 20"));
  }
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/GetPartialDependence
TEST_F(AnalysisAttack, ParametersAreOneOrTwoThatAreThere) {
  ServeTrials(20);
  EXPECT_TRUE(Dependence({"lr", "kind"}).ok());
  const std::vector<std::vector<std::string>> wrong = {
      {},   {"lr", "lr"}, {"lr", "kind", "lr"},
      {""}, {"<b>"},      std::vector<std::string>(10'000, "lr")};
  for (const auto& names : wrong) {
    const grpc::Status status = Dependence(names);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << names.size();
    EXPECT_THAT(status.error_message(), HasSubstr("parameters: "));
  }
  ExpectAlive();
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/importance
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/ablation
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/partial-dependence
TEST_F(AnalysisAttack, QueriesAreCheckedAndNamesAreNeverMarkup) {
  ServeTrials(20);
  for (const char* query :
       {"/importance?method=shap", "/importance?method=gp&method=ped", "/ablation?from=0",
        "/ablation?to=-5", "/ablation?to=1e3", "/partial-dependence", "/partial-dependence?with=lr",
        "/partial-dependence?parameter=lr&with=lr", "/partial-dependence?parameter=%00"}) {
    EXPECT_EQ(Http(red_ + query, kRedToken).status, 400) << query;
  }
  EXPECT_EQ(Http(red_ + "/importance", kBlueToken).status, 403);
  const service::WireReply reply = Http(red_ + "/partial-dependence?parameter=kind", kRedToken);
  EXPECT_EQ(reply.status, 200);
  // As data; the picture, too, has it as text only.
  EXPECT_THAT(reply.body, HasSubstr("<script>alert(1)</script>"));
  EXPECT_THAT(reply.head, HasSubstr("application/json"));
  const std::string token_file = cli_.Write("red-token", kRedToken);
  std::filesystem::permissions(token_file, std::filesystem::perms::owner_read);
  for (const char* kind : {"pdp", "contour", "slice", "parallel", "importance", "ablation"}) {
    const auto drawn = cli_.Run({"--server", grpc_, "--token-file", token_file, "-n", "red", "plot",
                                 "found", kind, "-o", "-"});
    EXPECT_EQ(drawn.code, 0) << drawn.err;
    EXPECT_THAT(drawn.out, HasSubstr("<svg "));
    EXPECT_THAT(drawn.out, Not(HasSubstr("<script")));
    EXPECT_THAT(drawn.out, Not(HasSubstr("\" onload=")));
  }
}

// attacks: gRPC shirabe.v1.Shirabe/GetImportance
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/importance
TEST_F(AnalysisAttack, ManyOfThemAtOnceStopNobodyElse) {
  ServeTrials(600);
  std::vector<std::thread> askers;
  std::atomic<bool> over = false;
  for (int i = 0; i < 12; ++i) {
    askers.emplace_back([&, i] {
      while (!over) {
        if (i % 2 == 0) {
          (void)Importance(Of<v1::ImportanceRequest>("found"), kRedToken);
        } else {
          (void)Http(red_ + "/importance", kRedToken);
        }
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const absl::Time start = absl::Now();
    EXPECT_EQ(Http("GET /livez", "").status, 200);
    EXPECT_EQ(Http("GET /api/v1/namespaces/blue/experiments", kBlueToken).status, 200);
    EXPECT_LT(absl::Now() - start, absl::Seconds(IsSanitized() ? 20 : 5));
  }
  over = true;
  for (std::thread& asker : askers) asker.join();
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
