// Katib's services: who may ask for suggestions, what one caller can take of the machine, and the
// listener for clients without a token.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

namespace katib = ::api::v1::beta1;
using grpc::StatusCode;
using testing::HasSubstr;

katib::Experiment Search(const std::string& algorithm, int parameters) {
  katib::Experiment experiment;
  experiment.set_name("search");
  katib::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.mutable_objective()->set_type(katib::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  spec.mutable_algorithm()->set_algorithm_name(algorithm);
  for (int i = 0; i < parameters; ++i) {
    auto& parameter = *spec.mutable_parameter_specs()->add_parameters();
    parameter.set_name("p" + std::to_string(i));
    parameter.set_parameter_type(katib::DOUBLE);
    parameter.mutable_feasible_space()->set_min("0");
    parameter.mutable_feasible_space()->set_max("1");
  }
  return experiment;
}

// `seed` makes it another question than any before, so that nothing of the answer is known.
katib::GetSuggestionsRequest Request(const std::string& algorithm, int trials, int wanted,
                                     int seed = 0) {
  constexpr int kParameters = 8;
  katib::GetSuggestionsRequest request;
  *request.mutable_experiment() = Search(algorithm, kParameters);
  for (int i = 0; i < trials; ++i) {
    katib::Trial& trial = *request.add_trials();
    trial.set_name("search-" + std::to_string(i));
    for (int j = 0; j < kParameters; ++j) {
      auto& one = *trial.mutable_spec()->mutable_parameter_assignments()->add_assignments();
      one.set_name("p" + std::to_string(j));
      const uint64_t mixed = (i * 8ULL + j + seed * 7919ULL) * 0x9e3779b97f4a7c15ULL;
      one.set_value(std::to_string(static_cast<double>(mixed >> 40) / (1 << 24)));
    }
    trial.mutable_status()->set_condition(katib::TrialStatus::SUCCEEDED);
    auto& metric = *trial.mutable_status()->mutable_observation()->add_metrics();
    metric.set_name("loss");
    metric.set_value(std::to_string((i * 37 + seed) % 1000));
  }
  request.set_current_request_number(wanted);
  request.set_total_request_number(trials + wanted);
  return request;
}

class KatibAttackTest : public AttackTest {
 protected:
  grpc::Status Ask(const katib::GetSuggestionsRequest& request, const std::string& token,
                   absl::Duration patience = absl::Seconds(20)) {
    return AskAt(grpc_, request, token, patience);
  }
  grpc::Status AskAt(const std::string& address, const katib::GetSuggestionsRequest& request,
                     const std::string& token, absl::Duration patience = absl::Seconds(20)) {
    katib::GetSuggestionsReply reply;
    return katib::Suggestion::NewStub(Channel(address))
        ->GetSuggestions(As(token, patience).get(), request, &reply);
  }
  // Of the server: ticks of its CPU, and KiB that it holds.
  int64_t Ticks() const {
    std::ifstream file("/proc/" + std::to_string(server_->pid()) + "/stat");
    std::string word;
    int64_t sum = 0;
    for (int i = 1; i <= 15 && file >> word; ++i) {
      if (i == 14 || i == 15) sum += std::stoll(word);
    }
    return sum;
  }
  int64_t PeakResident() const {
    std::ifstream file("/proc/" + std::to_string(server_->pid()) + "/status");
    for (std::string word; file >> word;) {
      int64_t kib = 0;
      if (word == "VmHWM:" && file >> kib) return kib;
    }
    return 0;
  }
  int64_t Resident() const {
    std::ifstream file("/proc/" + std::to_string(server_->pid()) + "/statm");
    int64_t all = 0, resident = 0;
    file >> all >> resident;
    return resident * 4;
  }
};

// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
// attacks: gRPC api.v1.beta1.Suggestion/ValidateAlgorithmSettings
TEST_F(KatibAttackTest, GetSuggestionsIsNotForAnyBearerToken) {
  Serve();
  const auto request = Request("random", 0, 1);
  EXPECT_EQ(Ask(request, "").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(request, "x").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(request, std::string(32, 'a')).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Ask(request, kRedToken).error_code(), StatusCode::OK);
}

// What took 612 MB and minutes: costly questions whose callers go away. The others are served all
// the while, and the work ends with the calls.
// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions, gRPC shirabe.v1.Shirabe/Suggest
TEST_F(KatibAttackTest, GetSuggestionsEndsWithItsCallsAndStarvesNobody) {
  Serve();
  const int64_t before = Resident();
  std::atomic<int> exhausted = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([this, i, &exhausted] {
      const grpc::Status status =
          Ask(Request("bayesianoptimization", 1500, 1000, i), kBlueToken, absl::Seconds(5));
      EXPECT_FALSE(status.ok());
      exhausted += status.error_code() == StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
    });
  }
  // Meanwhile an honest caller of another namespace gets his answers.
  for (int i = 0; i < 3; ++i) {
    const grpc::Status honest = Ask(Request("bayesianoptimization", 20, 1, i), kRedToken);
    EXPECT_TRUE(honest.ok()) << honest.error_message();
    EXPECT_EQ(Http("GET /livez", "").status, 200);
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_GE(exhausted, 8);  // at once: no more than 8 of one caller are even kept waiting
  // A step of the work may still be under way, a long one under a sanitizer; then there is silence,
  // well before the minute that the work may take for callers who are there.
  EXPECT_TRUE(Eventually(
      [this] {
        const int64_t ticks = Ticks();
        absl::SleepFor(absl::Seconds(1));
        return Ticks() - ticks < 30;
      },
      absl::Seconds(IsSanitized() ? 40 : 5)))
      << "it computes on for callers who have gone";
  if (!IsSanitized()) {
    EXPECT_LT(Resident() - before, 300 << 10);
  }
  ExpectAlive();
}

// Two bytes on the wire are an object of a hundred once a message is taken apart: that is not done
// for whoever has no right to ask.
// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
TEST_F(KatibAttackTest, GetSuggestionsIsNotTakenApartForNobody) {
  Serve();
  katib::GetSuggestionsRequest request;
  for (int i = 0; i < 2'000'000; ++i) request.add_trials();
  const int64_t before = PeakResident();
  EXPECT_EQ(Ask(request, "").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(request, "x").error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(request, std::string(32, 'a')).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_LT(PeakResident() - before, 80 << 10);
  ExpectAlive();
}

// Nor for whoever has one, nor on a door whose token stands in the message.
// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions, gRPC shirabe.v1.Pods/Sync
TEST_F(KatibAttackTest, MessagesOfMillionsOfMessagesAreRefusedInLittleMemory) {
  Serve();
  katib::GetSuggestionsRequest request;
  for (int i = 0; i < 2'000'000; ++i) request.add_trials();
  v1::SyncRequest sync;
  for (int i = 0; i < 2'000'000; ++i) sync.add_files();
  const int64_t before = PeakResident();
  const grpc::Status refused = Ask(request, kRedToken);
  EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("400000 messages"));
  v1::SyncReply reply;
  EXPECT_EQ(v1::Pods::NewStub(Channel(grpc_))->Sync(As("").get(), sync, &reply).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(PeakResident() - before, 80 << 10);
  ExpectAlive();
}

// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
TEST_F(KatibAttackTest, GetSuggestionsHasLimitsOfSize) {
  Serve();
  katib::GetSuggestionsRequest many = Request("random", 1, 1);
  many.set_current_request_number(2'000'000'000);
  EXPECT_EQ(Ask(many, kRedToken).error_code(), StatusCode::INVALID_ARGUMENT);
  many.set_current_request_number(-1);
  EXPECT_EQ(Ask(many, kRedToken).error_code(), StatusCode::INVALID_ARGUMENT);
  katib::GetSuggestionsRequest wide = Request("random", 0, 1);
  *wide.mutable_experiment() = Search("random", 2000);
  EXPECT_FALSE(Ask(wide, kRedToken).ok());
  ExpectAlive();
}

// What a server remembers of earlier questions makes answers quick, and changes none of them: two
// experiments of one name, a history that grows, that has shrunk, whose results were corrected, and
// one in another order are answered as by a server that has heard nothing yet.
// attacks: gRPC api.v1.beta1.Suggestion/GetSuggestions
TEST_F(KatibAttackTest, GetSuggestionsIsAnsweredTheSameWhateverWasAskedBefore) {
  constexpr char kAlgorithm[] = "bayesianoptimization";
  std::vector<katib::GetSuggestionsRequest> requests;
  for (int trials = 20; trials <= 34; trials += 2) {
    requests.push_back(Request(kAlgorithm, trials, 1, /*seed=*/1));
    requests.push_back(Request(kAlgorithm, trials, 1, /*seed=*/2));  // another one of this name
  }
  requests.push_back(requests[2]);
  requests.push_back(Request(kAlgorithm, 70, 2, 1));
  requests.push_back(requests.back());
  requests.back()
      .mutable_trials(9)
      ->mutable_status()
      ->mutable_observation()
      ->mutable_metrics(0)
      ->set_value("-500");
  requests.push_back(Request(kAlgorithm, 70, 2, 1));
  std::reverse(requests.back().mutable_trials()->begin(), requests.back().mutable_trials()->end());
  const auto answers = [&](const std::vector<size_t>& order) {
    std::map<size_t, std::string> texts;
    for (const size_t i : order) {
      katib::GetSuggestionsReply reply;
      const grpc::Status status = katib::Suggestion::NewStub(Channel(grpc_))
                                      ->GetSuggestions(As(kRedToken).get(), requests[i], &reply);
      EXPECT_TRUE(status.ok()) << status.error_message();
      texts[i] = reply.SerializeAsString();
    }
    return texts;
  };
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  Serve();
  const auto first = answers(order);
  EXPECT_EQ(answers(order), first) << "all of it known";
  std::reverse(order.begin(), order.end());
  Serve();
  EXPECT_EQ(answers(order), first) << "after a restart, in another order";
  // They are other questions: nothing was answered from what was known of another one.
  std::set<std::string> different;
  for (const auto& [i, text] : first) different.insert(text);
  EXPECT_EQ(different.size(), requests.size() - 1);  // one was asked twice
}

// attacks: gRPC api.v1.beta1.DBManager/ReportObservationLog
// attacks: gRPC api.v1.beta1.DBManager/GetObservationLog
// attacks: gRPC api.v1.beta1.EarlyStopping/SetTrialStatus
TEST_F(KatibAttackTest, TheListenerWithoutATokenIsOfOneNamespace) {
  Serve();
  EXPECT_EQ(katib_, "");  // off by default
  Serve({"--katib-listen", "127.0.0.1:0", "-n", "blue"});
  ASSERT_NE(katib_, "");
  ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "secret"), kRedToken), 300);
  v1::AskRequest ask;
  ask.mutable_experiment()->set_namespace_("red");
  ask.mutable_experiment()->set_name("secret");
  ask.set_caller("honest");
  ask.mutable_patience()->set_seconds(20);
  v1::AskReply asked;
  ASSERT_TRUE(Shirabe()->Ask(As(kRedToken).get(), ask, &asked).ok());
  const auto stub = katib::DBManager::NewStub(Channel(katib_));
  katib::GetObservationLogRequest read;
  katib::GetObservationLogReply log;
  katib::ReportObservationLogRequest report;
  auto& row = *report.mutable_observation_log()->add_metric_logs();
  row.mutable_metric()->set_name("loss");
  row.mutable_metric()->set_value("-1000");
  katib::ReportObservationLogReply reported;
  for (const char* trial : {"red/secret-1", "secret-1", "red/secret-1/", "/secret-1"}) {
    read.set_trial_name(trial);
    report.set_trial_name(trial);
    EXPECT_FALSE(stub->GetObservationLog(As("").get(), read, &log).ok()) << trial;
    EXPECT_FALSE(stub->ReportObservationLog(As("").get(), report, &reported).ok()) << trial;
  }
  read.set_trial_name("red/secret-1");
  EXPECT_EQ(stub->GetObservationLog(As("").get(), read, &log).error_code(),
            StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(AskAt(katib_, Request("random", 0, 1), "").error_code(), StatusCode::OK);
  // Nothing else is served there.
  katib::SetTrialStatusReply none;
  EXPECT_EQ(katib::EarlyStopping::NewStub(Channel(katib_))
                ->SetTrialStatus(As("").get(), {}, &none)
                .error_code(),
            StatusCode::UNIMPLEMENTED);
  v1::Experiment experiment;
  EXPECT_EQ(v1::Shirabe::NewStub(Channel(katib_))
                ->GetExperiment(As(kAdminToken).get(), {}, &experiment)
                .error_code(),
            StatusCode::UNIMPLEMENTED);
}

TEST_F(KatibAttackTest, TheListenerWithoutATokenIsNotForTheNetwork) {
  const cmd::Outcome outcome = cli_.Run({"serve", "--katib-listen", "0.0.0.0:0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--katib-listen"));
}

}  // namespace
}  // namespace shirabe::attack
