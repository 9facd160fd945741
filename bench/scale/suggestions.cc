// How long a client waits for one suggestion over Katib's wire, on loopback.
//
//   suggestions_bench serve                                  prints its port
//   suggestions_bench load PORT ALGORITHM TRIALS CLIENTS repeated|fresh SECONDS
//
// Each client has an experiment of its own, of seven parameters with TRIALS trials in every
// request, as Katib's controller sends them, and asks for one point at a time as fast as it gets
// it. `repeated`: nothing has changed since the last request (a controller that retries, a second
// worker); `fresh`: one more trial has its result, so that a model must be fitted again. Prints
// requests, milliseconds (p50, p99) and requests a second.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "service/katib/katib_suggestion.h"

namespace shirabe {
namespace {

namespace katib = ::api::v1::beta1;

struct Load {
  std::string port, algorithm;
  int trials = 0, clients = 0;
  bool fresh = false;
  absl::Duration time;
};

int Serve() {
  // All clients are one caller here, who is to have the whole machine.
  service::SuggestionLimits limits;
  limits.running = limits.running_of_one = static_cast<int>(std::thread::hardware_concurrency());
  limits.of_one = 10'000;
  limits.bytes_of_one = int64_t{1} << 40;
  service::SuggestionScheduler turns(limits, RealClock());
  const auto service = service::MakeKatibSuggestion(
      [](const grpc::ServerContext&, const std::string&) { return std::string("everybody"); },
      &turns);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.get());
  const auto server = builder.BuildAndStart();
  std::printf("%d\n", port);
  std::fflush(stdout);
  server->Wait();
  return 0;
}

void AddParameter(katib::Experiment& experiment, const std::string& name,
                  katib::ParameterType type) {
  auto& parameter = *experiment.mutable_spec()->mutable_parameter_specs()->add_parameters();
  parameter.set_name(name);
  parameter.set_parameter_type(type);
  katib::FeasibleSpace& feasible = *parameter.mutable_feasible_space();
  if (type == katib::CATEGORICAL) {
    for (const char* word : {"sgd", "adam", "lion"}) feasible.add_list(word);
  } else {
    feasible.set_min("1");
    feasible.set_max("64");
  }
}

katib::Experiment MakeExperiment(const Load& load, int client) {
  katib::Experiment experiment;
  experiment.set_name("load-" + std::to_string(client));
  for (int i = 0; i < 5; ++i) AddParameter(experiment, "x" + std::to_string(i), katib::DOUBLE);
  AddParameter(experiment, "units", katib::INT);
  AddParameter(experiment, "optimizer", katib::CATEGORICAL);
  auto& spec = *experiment.mutable_spec();
  spec.mutable_objective()->set_type(katib::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  spec.mutable_algorithm()->set_algorithm_name(load.algorithm);
  return experiment;
}

void AddTrial(katib::GetSuggestionsRequest& request, Rng& rng) {
  katib::Trial& trial = *request.add_trials();
  trial.set_name(request.experiment().name() + "-" + std::to_string(request.trials_size()));
  double loss = 0;
  for (const auto& parameter : request.experiment().spec().parameter_specs().parameters()) {
    auto& one = *trial.mutable_spec()->mutable_parameter_assignments()->add_assignments();
    one.set_name(parameter.name());
    const double value = 1 + 63 * rng.Uniform();
    switch (parameter.parameter_type()) {
      case katib::DOUBLE: one.set_value(FormatNumber(value)); break;
      case katib::INT: one.set_value(std::to_string(static_cast<int>(value))); break;
      default: one.set_value("adam");
    }
    loss += (value - 20) * (value - 20);
  }
  trial.mutable_status()->set_condition(katib::TrialStatus::SUCCEEDED);
  auto& metric = *trial.mutable_status()->mutable_observation()->add_metrics();
  metric.set_name("loss");
  metric.set_value(FormatNumber(loss));
}

// The milliseconds of every request.
std::vector<double> RunClient(const Load& load, int client) {
  grpc::ChannelArguments own;
  own.SetInt("shirabe.client", client);  // a connection of its own
  const auto stub = katib::Suggestion::NewStub(
      grpc::CreateCustomChannel("127.0.0.1:" + load.port, grpc::InsecureChannelCredentials(), own));
  katib::GetSuggestionsRequest request;
  *request.mutable_experiment() = MakeExperiment(load, client);
  Rng rng(static_cast<uint64_t>(client) + 1);
  for (int i = 0; i < load.trials; ++i) AddTrial(request, rng);
  request.set_current_request_number(1);
  std::vector<double> times;
  const absl::Duration end = RealClock()->Monotonic() + load.time;
  for (bool warm = false; !warm || RealClock()->Monotonic() < end; warm = true) {
    if (load.fresh) {
      request.mutable_trials()->RemoveLast();
      AddTrial(request, rng);
    }
    request.set_total_request_number(load.trials + 1);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    katib::GetSuggestionsReply reply;
    const absl::Duration start = RealClock()->Monotonic();
    const grpc::Status status = stub->GetSuggestions(&context, request, &reply);
    if (!status.ok() || reply.parameter_assignments_size() != 1) {
      std::fprintf(stderr, "no suggestion: %s\n", status.error_message().c_str());
      std::exit(1);
    }
    if (warm) times.push_back(absl::ToDoubleMilliseconds(RealClock()->Monotonic() - start));
  }
  return times;
}

int Run(const Load& load) {
  std::vector<std::vector<double>> of(load.clients);
  const absl::Duration start = RealClock()->Monotonic();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < load.clients; ++i) {
      threads.emplace_back([&load, &of, i] { of[i] = RunClient(load, i); });
    }
  }
  const double seconds = absl::ToDoubleSeconds(RealClock()->Monotonic() - start);
  std::vector<double> all;
  for (const auto& times : of) all.insert(all.end(), times.begin(), times.end());
  if (all.empty()) return 1;
  std::sort(all.begin(), all.end());
  const auto at = [&all](double q) { return all[static_cast<size_t>(q * (all.size() - 1))]; };
  std::printf("| %s | %s | %d | %d | %zu | %.2f | %.2f | %.0f |\n", load.algorithm.c_str(),
              load.fresh ? "fresh" : "repeated", load.trials, load.clients, all.size(), at(0.5),
              at(0.99), static_cast<double>(all.size()) / seconds);
  return 0;
}

}  // namespace
}  // namespace shirabe

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  shirabe::KeepFreedMemory();  // as `shirabe serve` does
  if (arguments == std::vector<std::string>{"serve"}) return shirabe::Serve();
  if (arguments.size() != 7 || arguments[0] != "load") {
    std::fprintf(stderr, "usage: see the head of bench/scale/suggestions.cc\n");
    return 2;
  }
  return shirabe::Run({.port = arguments[1],
                       .algorithm = arguments[2],
                       .trials = std::atoi(arguments[3].c_str()),
                       .clients = std::atoi(arguments[4].c_str()),
                       .fresh = arguments[5] == "fresh",
                       .time = absl::Seconds(std::atof(arguments[6].c_str()))});
}
