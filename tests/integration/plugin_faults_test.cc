// An algorithm in another process that misbehaves (F24): it crashes, hangs, answers with too many
// points or too few, with old ones, with what is no point, or is something else altogether. Its
// answers are refused with the reason; the experiment is degraded, and goes on once it is repaired.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/submission.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "suggestion/remote/remote_algorithm.h"
#include "suggestion/remote/remote_algorithm_table.h"
#include "tests/integration/small_experiment.h"
#include "tests/suggestion/spaces.h"
#include "tests/support/eventually.h"

namespace shirabe {
namespace {

namespace katib = ::api::v1::beta1;

using ::testing::HasSubstr;
using Request = katib::GetSuggestionsRequest;
using Reply = katib::GetSuggestionsReply;
using Answer = std::function<grpc::Status(grpc::ServerContext&, const Request&, Reply&)>;

// A service of Katib's wire that answers as it is told.
class Fake : public katib::Suggestion::Service {
 public:
  explicit Fake(Answer answer) : answer_(std::move(answer)) { Listen("127.0.0.1:0"); }
  ~Fake() override { Crash(); }

  // With what it is doing.
  void Crash() {
    if (server_ == nullptr) return;
    server_->Shutdown(gpr_time_0(GPR_CLOCK_REALTIME));
    server_ = nullptr;
  }
  void Restart() { Listen(endpoint()); }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  int calls() const { return calls_; }

  grpc::Status GetSuggestions(grpc::ServerContext* context, const Request* request,
                              Reply* reply) override {
    ++calls_;
    return answer_(*context, *request, *reply);
  }

 private:
  void Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  Answer answer_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::atomic<int> calls_ = 0;
};

void Add(Reply& reply, const std::string& lr) {
  katib::ParameterAssignment& one = *reply.add_parameter_assignments()->add_assignments();
  one.set_name("lr");
  one.set_value(lr);
}

// What a sound service does: points that are new with each trial.
grpc::Status Sound(const Request& request, Reply& reply) {
  for (int i = 0; i < request.current_request_number(); ++i) {
    Add(reply, std::to_string(0.1 + 0.01 * (request.trials_size() + i)));
  }
  return grpc::Status::OK;
}

// Blocks until the caller has given up.
grpc::Status Hang(const grpc::ServerContext& context) {
  for (int i = 0; i < 6000 && !context.IsCancelled(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return grpc::Status::CANCELLED;
}

// ---- one call ----------------------------------------------------------------------------------

v1::Experiment OneParameter() {
  v1::Experiment experiment;
  experiment.mutable_metadata()->set_name("small");
  experiment.mutable_metadata()->set_namespace_("default");
  *experiment.mutable_spec()->add_parameters() = suggestion::Double("lr", {0.1, 0.9});
  experiment.mutable_spec()->mutable_objective()->set_type(v1::MINIMIZE);
  experiment.mutable_spec()->mutable_objective()->set_objective_metric_name("loss");
  experiment.mutable_spec()->mutable_algorithm()->set_algorithm_name("mine");
  return experiment;
}

class RemoteCall : public ::testing::Test {
 protected:
  RemoteCall() : space_(*suggestion::Space::Create(experiment_.spec().parameters())) {}

  StatusOr<suggestion::Proposal> Propose(Answer answer, int count = 2,
                                         absl::Duration deadline = absl::Seconds(20)) {
    Fake fake(std::move(answer));
    const auto remote = suggestion::MakeRemoteAlgorithm(
        experiment_, space_, {.endpoint = fake.endpoint(), .deadline = deadline});
    return remote->Propose(history_, count, Rng(1));
  }
  void ExpectRefused(Answer answer, const std::string& words) {
    const auto proposal = Propose(std::move(answer));
    EXPECT_TRUE(absl::IsDataLoss(proposal.status())) << proposal.status();
    EXPECT_THAT(Message(proposal.status()), HasSubstr("algorithm mine at 127.0.0.1:"));
    EXPECT_THAT(Message(proposal.status()), HasSubstr("its answer is refused: "));
    EXPECT_THAT(Message(proposal.status()), HasSubstr(words));
  }
  void ExpectRefused(const std::string& lr, const std::string& words) {
    ExpectRefused(
        [lr](auto&, const Request&, Reply& reply) {
          Add(reply, "0.25");
          Add(reply, lr);
          return grpc::Status::OK;
        },
        words);
  }
  void AddTrial(double lr, suggestion::TrialState state) {
    v1::Assignment value;
    value.set_name("lr");
    value.set_number(lr);
    history_.Add(*space_.Encode({value}), {.state = state, .loss = lr});
  }

  const v1::Experiment experiment_ = OneParameter();
  const suggestion::Space space_;
  suggestion::History history_{space_};
};

TEST_F(RemoteCall, TellsTheServiceEverythingAndTakesItsPoints) {
  AddTrial(0.5, suggestion::TrialState::kCompleted);
  AddTrial(0.6, suggestion::TrialState::kActive);
  Request seen;
  const auto proposal = Propose([&seen](auto&, const Request& request, Reply& reply) {
    seen = request;
    return Sound(request, reply);
  });
  ASSERT_TRUE(proposal.ok()) << proposal.status();
  ASSERT_EQ(proposal->suggestions.size(), 2u);
  EXPECT_EQ(space_.Decode(proposal->suggestions[1].point)[0].number(), 0.13);
  EXPECT_EQ(seen.experiment().name(), "small");
  EXPECT_EQ(seen.current_request_number(), 2);
  EXPECT_EQ(seen.total_request_number(), 4);
  ASSERT_EQ(seen.trials_size(), 2);
  EXPECT_EQ(seen.trials(0).name(), "small-1");
  EXPECT_EQ(seen.trials(0).status().condition(), katib::TrialStatus::SUCCEEDED);
  EXPECT_EQ(seen.trials(0).status().observation().metrics(0).value(), "0.5");
  EXPECT_EQ(seen.trials(1).status().condition(), katib::TrialStatus::RUNNING);
}

TEST_F(RemoteCall, PointsThatAreNoneAreRefused) {
  ExpectRefused("1.5", "suggestion 2 of 2: parameter \"lr\": 1.5 is not within 0.1 … 0.9");
  ExpectRefused("nan", "is not finite");
  ExpectRefused("-inf", "is not finite");
  ExpectRefused("fast", "\"fast\" is not a number");
  ExpectRefused(
      [](auto&, const Request&, Reply& reply) {
        reply.add_parameter_assignments();
        return grpc::Status::OK;
      },
      "parameter \"lr\" is missing");
  ExpectRefused(
      [](auto&, const Request&, Reply& reply) {
        Add(reply, "0.2");
        *reply.mutable_parameter_assignments(0)->add_assignments() =
            reply.parameter_assignments(0).assignments(0);
        reply.mutable_parameter_assignments(0)->mutable_assignments(1)->set_name("momentum");
        return grpc::Status::OK;
      },
      "\"momentum\" is not a parameter");
  ExpectRefused(
      [](auto&, const Request&, Reply& reply) {
        Add(reply, "0.2");
        (*reply.mutable_parameter_assignments(0)->mutable_labels())["a"] = std::string(5000, 'x');
        return grpc::Status::OK;
      },
      "no sensible size");
}

TEST_F(RemoteCall, PointsThatWereTriedAreLeftOut) {
  AddTrial(0.5, suggestion::TrialState::kCompleted);
  const auto both = [](auto&, const Request&, Reply& reply) {
    for (const char* lr : {"0.5", "0.7", "0.7"}) Add(reply, lr);
    return grpc::Status::OK;
  };
  const auto proposal = Propose(both, 3);
  ASSERT_TRUE(proposal.ok()) << proposal.status();
  EXPECT_EQ(proposal->suggestions.size(), 1u);
  ExpectRefused(
      [](auto&, const Request&, Reply& reply) {
        Add(reply, "0.5");
        return grpc::Status::OK;
      },
      "its suggestion has been tried before");
}

TEST_F(RemoteCall, MoreThanAskedForIsCutAndFewerAreTaken) {
  const auto answer = [](int points) {
    return [points](auto&, const Request&, Reply& reply) {
      for (int i = 0; i < points; ++i) Add(reply, std::to_string(0.2 + 0.01 * i));
      return grpc::Status::OK;
    };
  };
  EXPECT_EQ(Propose(answer(3))->suggestions.size(), 2u);
  EXPECT_EQ(Propose(answer(1))->suggestions.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(Propose(answer(0)).status()));  // nothing runs that could help
  AddTrial(0.5, suggestion::TrialState::kActive);
  EXPECT_EQ(Propose(answer(0))->outcome, suggestion::Proposal::Outcome::kWait);
}

TEST_F(RemoteCall, SettingsOfTheAnswerAreItsMemo) {
  const Answer answer = [](auto&, const Request& request, Reply& reply) {
    Add(reply, "0.2");
    auto& setting = *reply.mutable_algorithm()->add_algorithm_settings();
    setting.set_name("current_s");
    const katib::AlgorithmSpec& known = request.experiment().spec().algorithm();
    setting.set_value(std::to_string(known.algorithm_settings_size()));
    return grpc::Status::OK;
  };
  history_.set_memo(Propose(answer)->memo);
  EXPECT_THAT(history_.memo(), HasSubstr("current_s"));
  EXPECT_NE(Propose(answer)->memo, history_.memo());  // it has seen its own setting
}

TEST_F(RemoteCall, AHangingServiceIsGivenUp) {
  const auto proposal =
      Propose([](grpc::ServerContext& context, const Request&, Reply&) { return Hang(context); }, 1,
              absl::Milliseconds(300));
  EXPECT_TRUE(absl::IsDeadlineExceeded(proposal.status())) << proposal.status();
  EXPECT_THAT(Message(proposal.status()), HasSubstr("no answer within 300ms"));
}

TEST_F(RemoteCall, ACallCanBeCancelled) {
  Fake fake([](grpc::ServerContext& context, const Request&, Reply&) { return Hang(context); });
  const auto remote =
      suggestion::MakeRemoteAlgorithm(experiment_, space_, {.endpoint = fake.endpoint()});
  StatusOr<suggestion::Proposal> proposal = suggestion::Proposal{};
  std::jthread caller([&] { proposal = remote->Propose(history_, 1, Rng(1)); });
  while (fake.calls() == 0) std::this_thread::yield();
  remote->Cancel();
  caller.join();
  EXPECT_TRUE(absl::IsCancelled(proposal.status())) << proposal.status();
  EXPECT_TRUE(absl::IsCancelled(remote->Propose(history_, 1, Rng(1)).status()));
}

TEST_F(RemoteCall, WhatGoesWrongIsSaidInWords) {
  const auto fails = [](grpc::StatusCode code) {
    return [code](auto&, const Request&, Reply&) {
      return grpc::Status(code, std::string("KeyError: \x1b[31m'lr'"));
    };
  };
  const auto why = [&](grpc::StatusCode code) { return Message(Propose(fails(code)).status()); };
  EXPECT_THAT(why(grpc::StatusCode::UNKNOWN), HasSubstr("it failed: KeyError:"));
  EXPECT_THAT(why(grpc::StatusCode::INVALID_ARGUMENT), HasSubstr("it refuses the experiment: "));
  EXPECT_EQ(why(grpc::StatusCode::UNKNOWN).find('\x1b'), std::string::npos);
  const auto remote =
      suggestion::MakeRemoteAlgorithm(experiment_, space_, {.endpoint = "127.0.0.1:1"});
  const auto nobody = remote->Propose(history_, 1, Rng(1));
  EXPECT_TRUE(absl::IsUnavailable(nobody.status())) << nobody.status();
  EXPECT_THAT(Message(nobody.status()), HasSubstr("cannot be reached: "));
}

TEST_F(RemoteCall, AnOversizeAnswerIsRefused) {
  const auto proposal = Propose([](auto&, const Request&, Reply& reply) {
    Add(reply, std::string(40 << 20, '1'));
    return grpc::Status::OK;
  });
  EXPECT_TRUE(absl::IsResourceExhausted(proposal.status())) << proposal.status();
}

TEST_F(RemoteCall, AnotherServiceIsNoSuggestion) {
  class Wrong : public katib::DBManager::Service {};
  Wrong wrong;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&wrong);
  const auto server = builder.BuildAndStart();
  const auto remote = suggestion::MakeRemoteAlgorithm(
      experiment_, space_, {.endpoint = "127.0.0.1:" + std::to_string(port)});
  const auto proposal = remote->Propose(history_, 1, Rng(1));
  EXPECT_TRUE(absl::IsUnimplemented(proposal.status())) << proposal.status();
  EXPECT_THAT(Message(proposal.status()), HasSubstr("does not serve Suggestion"));
}

// ---- architectures: Katib's enas and darts ------------------------------------------------------

v1::Experiment SearchOfArchitectures() {
  v1::Experiment experiment = OneParameter();
  experiment.mutable_spec()->clear_parameters();
  experiment.mutable_spec()->mutable_nas_config()->mutable_graph_config()->set_num_layers(3);
  experiment.mutable_spec()->mutable_nas_config()->add_operations()->set_operation_type("conv");
  return experiment;
}

class RemoteArchitectures : public ::testing::Test {
 protected:
  static void Assign(Reply& reply, const std::string& name, const std::string& value) {
    katib::ParameterAssignment& one =
        *reply.mutable_parameter_assignments(reply.parameter_assignments_size() - 1)
             ->add_assignments();
    one.set_name(name);
    one.set_value(value);
  }
  StatusOr<suggestion::Proposal> Propose(Answer answer) {
    Fake fake(std::move(answer));
    return suggestion::MakeRemoteAlgorithm(experiment_, space_, {.endpoint = fake.endpoint()})
        ->Propose(history_, 2, Rng(1));
  }
  // The answer has this one assignment.
  void ExpectRefused(const std::string& name, const std::string& value) {
    const auto proposal = Propose([&](auto&, const Request&, Reply& reply) {
      reply.add_parameter_assignments();
      Assign(reply, name, value);
      return grpc::Status::OK;
    });
    EXPECT_TRUE(absl::IsDataLoss(proposal.status())) << proposal.status();
    EXPECT_THAT(Message(proposal.status()), HasSubstr("its answer is refused: suggestion 1 of 1"));
  }

  const v1::Experiment experiment_ = SearchOfArchitectures();
  const suggestion::Space space_ = *suggestion::Space::Create(experiment_.spec().parameters());
  suggestion::History history_{space_};
};

TEST_F(RemoteArchitectures, ItSeesTheConfigurationAndItsTextsComeBackWithTheTrials) {
  Request seen;
  const auto answer = [&](auto&, const Request& request, Reply& reply) {
    seen = request;
    for (int i = 0; i < request.current_request_number(); ++i) {  // the same twice, too
      reply.add_parameter_assignments();
      Assign(reply, "architecture", "[[0], [1, 1]]");
      Assign(reply, "nn_config", "{'num_layers': 2}");
    }
    return grpc::Status::OK;
  };
  const auto first = Propose(answer);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(first->suggestions.size(), 2u);
  EXPECT_EQ(seen.experiment().spec().nas_config().graph_config().num_layers(), 3);
  EXPECT_EQ(seen.experiment().spec().nas_config().operations().operation(0).operation_type(),
            "conv");
  history_.Add(first->suggestions[0].point,
               {.state = suggestion::TrialState::kCompleted, .loss = 0.25});
  history_.SetLabels(0, first->suggestions[0].labels);
  const auto second = Propose(answer);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->suggestions.size(), 2u);
  ASSERT_EQ(seen.trials_size(), 1);
  const auto& assigned = seen.trials(0).spec().parameter_assignments().assignments();
  ASSERT_EQ(assigned.size(), 2);
  EXPECT_EQ(assigned[0].name(), "architecture");
  EXPECT_EQ(assigned[0].value(), "[[0], [1, 1]]");
  EXPECT_EQ(assigned[1].value(), "{'num_layers': 2}");
  EXPECT_TRUE(seen.trials(0).spec().labels().empty());
}

TEST_F(RemoteArchitectures, TextsThatAreNoneAreRefused) {
  ExpectRefused("", "x");
  ExpectRefused(std::string(2000, 'n'), "x");
  ExpectRefused("architecture", std::string("a\0b", 3));
  ExpectRefused("architecture", "\x1b[2J");
  ExpectRefused("architecture", std::string((64 << 10) + 1, '['));
  const auto none = Propose([](auto&, const Request&, Reply& reply) {
    reply.add_parameter_assignments();
    return grpc::Status::OK;
  });
  EXPECT_TRUE(absl::IsDataLoss(none.status())) << none.status();
  const auto twice = Propose([](auto&, const Request&, Reply& reply) {
    reply.add_parameter_assignments();
    Assign(reply, "architecture", "1");
    Assign(reply, "architecture", "2");
    return grpc::Status::OK;
  });
  EXPECT_TRUE(absl::IsDataLoss(twice.status())) << twice.status();
}

// ---- whole experiments -------------------------------------------------------------------------

class PluginExperiment : public ::testing::Test {
 protected:
  ~PluginExperiment() override {
    if (!home_.empty()) {
      EXPECT_TRUE(RemoveFolder(home_));
    }
    EXPECT_TRUE(suggestion::SetRemoteAlgorithmTable({}).ok());
  }

  void Run(const Fake& fake, absl::Duration deadline = absl::Seconds(10)) {
    ASSERT_TRUE(suggestion::SetRemoteAlgorithmTable(
                    {.named = {{"mine", fake.endpoint()}}, .deadline = deadline})
                    .ok());
    home_ = experiment::MakeHome({.trials = 4, .parallel = 2, .steps = 1, .algorithm = "mine"});
    const Status status = experiment::RunSmall(home_, {});
    EXPECT_TRUE(status.ok()) << status;
  }
  void ExpectDone() {
    const auto store = experiment::OpenHome(home_);
    const v1::Experiment record = store->GetExperiment(experiment::kSmall)->record;
    EXPECT_EQ(record.status().trials_succeeded(), 4);
    EXPECT_EQ(record.status().trials(), 4);
    EXPECT_EQ(record.status().shirabe().waiting(), "");
  }
  int Events(const std::string& reason, const std::string& words) {
    int found = 0;
    const auto store = experiment::OpenHome(home_);
    const auto events = store->ListEvents({.experiment = experiment::kSmall});
    for (const v1::Event& event : *events) {
      if (event.reason() != reason) continue;
      EXPECT_THAT(event.message(), HasSubstr(words));
      ++found;
    }
    return found;
  }

  std::string home_;
};

TEST_F(PluginExperiment, IsDrivenByIt) {
  Fake fake([](auto&, const Request& request, Reply& reply) { return Sound(request, reply); });
  Run(fake);
  ExpectDone();
  const auto store = experiment::OpenHome(home_);
  EXPECT_THAT(store->GetExperiment(experiment::kSmall)->record.status().shirabe().algorithm(),
              HasSubstr("algorithm mine at 127.0.0.1:"));
}

TEST_F(PluginExperiment, BadAnswersAreQuarantinedAndItGoesOnOnceTheyAreGood) {
  std::atomic<int> calls = 0;
  Fake fake([&calls](auto&, const Request& request, Reply& reply) {
    if (++calls > 2) return Sound(request, reply);
    Add(reply, "nan");
    return grpc::Status::OK;
  });
  Run(fake);
  ExpectDone();
  EXPECT_EQ(Events("AlgorithmAnswerRefused", "is not finite"), 1);  // said once, not each time
}

TEST_F(PluginExperiment, SurvivesACrashInMidCall) {
  Fake* self = nullptr;
  std::atomic<int> calls = 0;
  std::jthread undertaker;
  Fake fake([&](grpc::ServerContext& context, const Request& request, Reply& reply) {
    if (++calls > 1) return Sound(request, reply);
    undertaker = std::jthread([self] {
      self->Crash();
      self->Restart();
    });
    return Hang(context);
  });
  self = &fake;
  Run(fake);
  ExpectDone();
}

TEST_F(PluginExperiment, OneThatHangsDelaysNobodyElse) {
  Fake fake([](grpc::ServerContext& context, const Request&, Reply&) { return Hang(context); });
  ASSERT_TRUE(suggestion::SetRemoteAlgorithmTable({.named = {{"mine", fake.endpoint()}}}).ok());
  home_ = experiment::MakeHome({.trials = 4, .parallel = 2, .steps = 1, .algorithm = "mine"});
  const std::string other = experiment::MakeHome({.trials = 4, .parallel = 2, .steps = 1});
  const auto store = experiment::OpenHome(home_);
  experiment::ControllerOptions options{.store = store.get(), .clock = RealClock()};
  options.executor_options = {.home = home_, .clock = RealClock()};
  // The same controller, and its two threads for algorithms, has both experiments.
  v1::Experiment quick = experiment::OpenHome(other)->GetExperiment(experiment::kSmall)->record;
  quick.mutable_metadata()->set_name("quick");
  quick.clear_status();
  ASSERT_TRUE(experiment::Submit(*store, *RealClock(), quick).ok());
  auto controller = std::move(*experiment::Controller::Create(options));
  ASSERT_TRUE(controller->Own(experiment::kSmall).ok());
  while (fake.calls() == 0) std::this_thread::yield();
  const ExperimentKey quick_key{"default", "quick"};
  ASSERT_TRUE(controller->Own(quick_key).ok());
  EXPECT_TRUE(controller->Await(quick_key, absl::Seconds(60)).ok());
  const absl::Duration before = RealClock()->Monotonic();
  controller = nullptr;  // does not wait for the deadline of the hanging call
  EXPECT_LT(RealClock()->Monotonic() - before, absl::Seconds(20));
  std::filesystem::remove_all(other);
}

// ---- who may be asked --------------------------------------------------------------------------

TEST(RemoteAlgorithmTable, OnlyAllowedAddressesAreAsked) {
  using suggestion::RemoteEndpoint;
  v1::ExperimentSpec spec = OneParameter().spec();
  const auto of = [&spec](const std::string& endpoint) {
    spec.mutable_shirabe()->mutable_algorithm()->set_endpoint(endpoint);
    return RemoteEndpoint(spec);
  };
  EXPECT_EQ(*of("localhost:6789"), "localhost:6789");
  EXPECT_EQ(*of("127.0.0.9:6789"), "127.0.0.9:6789");
  EXPECT_EQ(*of("[::1]:6789"), "[::1]:6789");
  for (const char* bad : {"svc", "svc:", ":1", "svc:0", "svc:65536", "unix:/tmp/x:1",
                          "dns:///svc:1", "a b:1", "svc:1/x", "*.svc:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(of(bad).status())) << bad;
  }
  EXPECT_TRUE(absl::IsPermissionDenied(of("svc:6789").status()));
  EXPECT_THAT(Message(of("svc:6789").status()), HasSubstr("--algorithm NAME=svc:6789"));
  EXPECT_TRUE(absl::IsPermissionDenied(of("127.0.0.1.evil.example:80").status()));
  ASSERT_TRUE(suggestion::SetRemoteAlgorithmTable({.named = {{"mine", "far:1"}},
                                                   .allowed = {"svc:6789", "*.ml.svc:6789"},
                                                   .allow_loopback = false})
                  .ok());
  EXPECT_EQ(*of("svc:6789"), "svc:6789");
  EXPECT_EQ(*of("a.ml.svc:6789"), "a.ml.svc:6789");
  EXPECT_TRUE(absl::IsPermissionDenied(of("a.ml.svc:6780").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(of("localhost:6789").status()));
  spec.clear_shirabe();
  EXPECT_EQ(*RemoteEndpoint(spec), "far:1");
  spec.mutable_algorithm()->set_algorithm_name("tpe");
  EXPECT_EQ(*RemoteEndpoint(spec), "");
  EXPECT_TRUE(
      absl::IsInvalidArgument(suggestion::SetRemoteAlgorithmTable({.named = {{"x", "far"}}})));
  EXPECT_TRUE(suggestion::SetRemoteAlgorithmTable({}).ok());
}

}  // namespace
}  // namespace shirabe
