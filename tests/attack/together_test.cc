// All of it at once, beside people who do their work: twenty honest experiments and one whose
// trials are asked for and told, while the user of another namespace and strangers do what the
// other tests of this folder do one by one. No honest trial fails, and the answers stay quick.
// SHIRABE_ATTACK_SECONDS: how long (default 15; 300 to see that memory is level).
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "absl/strings/numbers.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using Threads = std::vector<std::jthread>;

int Seconds() {
  const char* text = std::getenv("SHIRABE_ATTACK_SECONDS");
  int seconds = 15;
  if (text != nullptr && !absl::SimpleAtoi(text, &seconds)) ADD_FAILURE() << text;
  return seconds;
}

double Percentile99(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() * 99 / 100];
}

class TogetherTest : public AttackTest {
 protected:
  bool IsOver() const { return over_; }
  void Pause() const { poll(nullptr, 0, 20); }

  // The seconds that `call` takes, again and again until the end.
  std::vector<double> Time(const std::function<bool()>& call) const {
    std::vector<double> seconds;
    while (!IsOver()) {
      const absl::Duration began = RealClock()->Monotonic();
      EXPECT_TRUE(call());
      seconds.push_back(absl::ToDoubleSeconds(RealClock()->Monotonic() - began));
      Pause();
    }
    return seconds;
  }

  // ---- the honest ones --------------------------------------------------------------------------

  void CreateHonest() {
    for (int i = 0; i < kHonest; ++i) {
      const std::string spec =
          Spec(kHonestSpec, "red", absl::StrCat("steady-", i), "sleep 0.5; echo loss=$1");
      EXPECT_LT(Create("red", spec, kAdminToken), 300);  // their trials run on the server's machine
    }
    EXPECT_LT(Create("red", Spec(kAskedSpec, "red", "asked"), kRedToken), 300);
  }

  // The times of tell.
  std::vector<double> AskAndTell() {
    const auto stub = Shirabe();
    std::vector<double> seconds;
    while (!IsOver()) {
      v1::AskRequest ask;
      ask.mutable_experiment()->set_namespace_("red");
      ask.mutable_experiment()->set_name("asked");
      ask.set_caller("honest");
      ask.mutable_patience()->set_seconds(20);
      v1::AskReply asked;
      const grpc::Status given = stub->Ask(As(kRedToken, absl::Minutes(1)).get(), ask, &asked);
      EXPECT_TRUE(given.ok()) << given.error_message();
      if (!given.ok() || !asked.has_trial()) continue;
      v1::TellRequest tell;
      tell.mutable_trial()->set_experiment("asked");
      tell.mutable_trial()->set_namespace_("red");
      tell.mutable_trial()->set_number(asked.trial().number());
      tell.set_token(asked.token());
      tell.add_points()->set_metric("loss");
      tell.set_end(v1::TellRequest::COMPLETED);
      v1::TellReply told;
      const absl::Duration began = RealClock()->Monotonic();
      const grpc::Status done = stub->Tell(As(kRedToken, absl::Minutes(1)).get(), tell, &told);
      seconds.push_back(absl::ToDoubleSeconds(RealClock()->Monotonic() - began));
      EXPECT_TRUE(done.ok()) << done.error_message();
    }
    return seconds;
  }

  // ---- the others -------------------------------------------------------------------------------

  // Bodies that are announced and never come, and connections that say nothing.
  void HoldConnections() const {
    std::vector<std::unique_ptr<service::Wire>> held;
    while (!IsOver()) {
      if (held.size() > 256) held.clear();
      held.push_back(std::make_unique<service::Wire>(http_port_));
      if (held.size() % 2 == 0) {
        held.back()->Send(
            "POST /api/v1/validate HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n");
      }
      Pause();
    }
  }

  void SendNonsense() const {
    std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    std::string list;
    for (int i = 0; i < 90'000; ++i) absl::StrAppend(&list, "v", i, ",");
    const std::string wide = absl::StrReplaceAll(
        Spec(kHonestSpec, "blue", "wide"),
        {{R"(parameterType: double, feasibleSpace: {min: "0", max: "1"})",
          "parameterType: categorical, feasibleSpace: {list: [" + list + "]}"}});
    while (!IsOver()) {
      (void)Http("PATCH /api/v1/namespaces/blue/experiments/wanted", kBlueToken, deep);
      (void)Http("POST /api/v1/validate", kBlueToken, wide);
      (void)Http("GET /api/v1/namespaces/red/experiments", kBlueToken);
      (void)Http("GET /api/v1/experiments", "a-token-that-nobody-gave");
      v1::SubmitRequest request;
      request.mutable_experiment()->mutable_metadata()->set_name("odd");
      request.mutable_experiment()->mutable_metadata()->set_namespace_("blue");
      request.mutable_experiment()->mutable_spec()->add_parameters()->set_parameter_type(
          static_cast<v1::ParameterType>(7));
      v1::SubmitReply reply;
      EXPECT_FALSE(Shirabe()->SubmitExperiment(As(kBlueToken).get(), request, &reply).ok());
    }
  }

  // An experiment of many trials at a time, whose trials put a FIFO in the place of their log.
  void SubmitGreedy() const {
    const std::string greedy = absl::StrReplaceAll(
        Spec(kHonestSpec, "blue", "greedy",
             "rm -f $SHIRABE_METRICS_FILE; mkfifo $SHIRABE_METRICS_FILE; sleep 5; echo loss=1"),
        {{"parallelTrialCount: 2", "parallelTrialCount: 1000000"},
         {"maxTrialCount: 2", "maxTrialCount: 1000000"}});
    (void)Create("blue", greedy, kAdminToken);
    v1::ReadLogRequest log;
    log.mutable_trial()->set_namespace_("blue");
    log.mutable_trial()->set_experiment("../../../../../etc/passwd");
    log.mutable_trial()->set_number(1);
    log.set_attempt(1);
    while (!IsOver()) {
      v1::LogChunk chunk;
      EXPECT_FALSE(Shirabe()->ReadLog(As(kBlueToken).get(), log, &chunk).ok());
      (void)Http("GET /api/v1/namespaces/blue/experiments/greedy/trials/1/attempts/1/log",
                 kBlueToken);
      Pause();
    }
  }

  // Calls that wait for what does not come, by one user.
  void Wait(const std::string& token) const {
    const auto stub = Shirabe();
    while (!IsOver()) {
      v1::AwaitChangeRequest request;
      request.set_after(int64_t{1} << 50);
      request.mutable_patience()->set_seconds(60);
      v1::Revision reply;
      (void)stub->AwaitChange(As(token, absl::Seconds(3)).get(), request, &reply);
    }
  }

  static constexpr int kHonest = 20;
  std::atomic<bool> over_ = false;
};

// attacks: HTTP GET /livez, gRPC shirabe.v1.Shirabe/AwaitChange, gRPC shirabe.v1.Shirabe/Tell
TEST_F(TogetherTest, HonestExperimentsSucceedUnderAllAttacks) {
  Serve();
  CreateHonest();
  std::vector<double> tells, lives;
  int64_t middle = 0;
  {
    Threads threads;
    threads.emplace_back([&] { tells = AskAndTell(); });
    threads.emplace_back(
        [&] { lives = Time([&] { return Http("GET /livez", "").status == 200; }); });
    threads.emplace_back([&] { HoldConnections(); });
    threads.emplace_back([&] { SendNonsense(); });
    threads.emplace_back([&] { SubmitGreedy(); });
    for (int i = 0; i < 40; ++i) threads.emplace_back([&] { Wait(kBlueToken); });
    poll(nullptr, 0, Seconds() * 500);
    middle = ResidentKiB();
    poll(nullptr, 0, Seconds() * 500);
    over_ = true;
  }
  EXPECT_GT(tells.size(), 5u);
  EXPECT_LE(Percentile99(tells), 1.0) << tells.size() << " calls of tell";
  EXPECT_LE(Percentile99(lives), 0.1 + 0.2) << lives.size() << " calls of /livez";
  EXPECT_LT(ResidentKiB(), middle + middle / 4 + 32 * 1024) << "KiB, " << middle << " half-way";
  RecordProperty("tell_p99_ms", static_cast<int>(1000 * Percentile99(tells)));
  RecordProperty("livez_p99_ms", static_cast<int>(1000 * Percentile99(lives)));
  for (int i = 0; i < kHonest; ++i) {
    const std::string name = absl::StrCat("steady-", i);
    EXPECT_TRUE(Eventually([&] { return HasSucceeded("red", name); })) << name;
    v1::ExperimentRef key;
    key.set_namespace_("red");
    key.set_name(name);
    v1::Experiment experiment;
    EXPECT_TRUE(Shirabe()->GetExperiment(As(kRedToken).get(), key, &experiment).ok());
    EXPECT_EQ(experiment.status().trials_succeeded(), 2) << name;
    EXPECT_EQ(experiment.status().trials_failed(), 0) << name;
  }
}

}  // namespace
}  // namespace shirabe::attack
