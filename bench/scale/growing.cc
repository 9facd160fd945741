// What the next point costs an experiment of the Gaussian process that grows by one result at a
// time: asked of Katib's wire, whose requests have every trial and nothing else, and of the
// algorithm as ask-and-tell has it, with its memo, in turn and of the same trials.
//
//   growing_bench PORT PID TRIALS COUNT       PORT and PID: of `suggestions_bench serve`
//   growing_bench 0 0 TRIALS COUNT            without a server: what it would ask, the algorithm
//                                             without a memo, in this process, where the first
//                                             two steps are not those after a restart
//
// The first TRIALS points of the ten parameters are random, the others what ask-and-tell proposes.
// Prints milliseconds of processor time, which other work on the machine does not change much, of a
// step over COUNT of them, on the wire that of the server: means, medians, the ratio of the means;
// the same of the time that passed; and the wire's first and second step, by a server that knew
// nothing of the experiment before.
#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "suggestion/algorithm.h"
#include "suggestion/remote/katib_wire.h"

namespace shirabe {
namespace {

namespace katib = ::api::v1::beta1;
using suggestion::History;
using suggestion::Point;

constexpr int kParameters = 10;
constexpr char kSeed[] = "7";

// The function of bench/latency: a bowl with ripples.
double Smooth(const Point& x) {
  double sum = 0;
  for (int i = 0; i < kParameters; ++i) {
    const double part = i / (kParameters - 1.0), weight = 1 + part, centre = 0.2 + 0.6 * part;
    sum += weight * (x[i] - centre) * (x[i] - centre);
    if (i + 1 < kParameters) sum += 0.3 * std::sin(3 * x[i]) * x[i + 1];
  }
  return sum;
}

katib::Experiment MakeExperiment(int trials) {
  katib::Experiment experiment;
  experiment.set_name("growing-" + std::to_string(trials));
  auto& spec = *experiment.mutable_spec();
  for (int i = 0; i < kParameters; ++i) {
    auto& parameter = *spec.mutable_parameter_specs()->add_parameters();
    parameter.set_name("x" + std::to_string(i));
    parameter.set_parameter_type(katib::DOUBLE);
    parameter.mutable_feasible_space()->set_min("0");
    parameter.mutable_feasible_space()->set_max("1");
  }
  spec.mutable_objective()->set_type(katib::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  spec.mutable_algorithm()->set_algorithm_name("bayesianoptimization");
  auto& seed = *spec.mutable_algorithm()->add_algorithm_settings();
  seed.set_name("random_state");
  seed.set_value(kSeed);
  return experiment;
}

// Milliseconds.
struct Spent {
  double passed = 0, processor = 0;
};

double Read(clockid_t clock) {
  timespec time;
  CHECK(clock_gettime(clock, &time) == 0);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// Of what is done until Stop, by the process of the clock.
class Watch {
 public:
  explicit Watch(clockid_t processor) : processor_(processor) {}
  Spent Stop() const { return {Read(CLOCK_MONOTONIC) - passed_, Read(processor_) - used_}; }

 private:
  const clockid_t processor_;
  const double used_ = Read(processor_), passed_ = Read(CLOCK_MONOTONIC);
};

clockid_t ClockOf(pid_t process) {
  clockid_t clock;
  CHECK(clock_getcpuclockid(process, &clock) == 0);
  return clock;
}

// One experiment, told to both.
class Growing {
 public:
  Growing(const std::string& port, pid_t server, int trials)
      : server_(server == 0 ? CLOCK_PROCESS_CPUTIME_ID : ClockOf(server)),
        stub_(port == "0" ? nullptr
                          : katib::Suggestion::NewStub(grpc::CreateChannel(
                                "127.0.0.1:" + port, grpc::InsecureChannelCredentials()))),
        spec_(suggestion::FromKatib(MakeExperiment(trials))->spec()),
        history_(suggestion::Space::Create(spec_.parameters()).value()),
        algorithm_(suggestion::CreateAlgorithm("gp", {.space = history_.space()}).value()) {
    *request_.mutable_experiment() = MakeExperiment(trials);
    Rng rng(1);
    for (int i = 0; i < trials; ++i) Tell(history_.space().Sample(rng));
  }

  Spent AskWire() {
    if (stub_ == nullptr) return AskWithoutMemo();
    request_.set_current_request_number(1);
    request_.set_total_request_number(request_.trials_size() + 1);
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    katib::GetSuggestionsReply reply;
    const Watch watch(server_);
    const grpc::Status status = stub_->GetSuggestions(&context, request_, &reply);
    CHECK(status.ok() && reply.parameter_assignments_size() == 1);
    return watch.Stop();
  }

  Spent AskWithoutMemo() {
    const std::string memo = history_.memo();
    history_.set_memo("");
    const Watch watch(server_);
    CHECK(algorithm_->Propose(history_, 1, Rng(7)).ok());
    const Spent spent = watch.Stop();
    history_.set_memo(memo);
    return spent;
  }

  // Asks, runs what is proposed, and tells its result.
  Spent AskAndTell() {
    const Watch watch(CLOCK_PROCESS_CPUTIME_ID);
    const auto proposal = algorithm_->Propose(history_, 1, Rng(7)).value();
    const Spent spent = watch.Stop();
    history_.set_memo(proposal.memo);
    Tell(proposal.suggestions.at(0).point);
    return spent;
  }

 private:
  void Tell(const Point& point) {
    const double loss = Smooth(point);
    history_.Add(point, {.state = suggestion::TrialState::kCompleted, .loss = loss});
    katib::Trial& trial = *request_.add_trials();
    trial.set_name("growing-" + std::to_string(request_.trials_size()));
    *trial.mutable_spec()->mutable_parameter_assignments()->mutable_assignments() =
        suggestion::FormatPoint(spec_, history_.space(), point);
    trial.mutable_status()->set_condition(katib::TrialStatus::SUCCEEDED);
    auto& metric = *trial.mutable_status()->mutable_observation()->add_metrics();
    metric.set_name("loss");
    metric.set_value(FormatNumber(loss));
  }

  const clockid_t server_;
  const std::unique_ptr<katib::Suggestion::Stub> stub_;
  const v1::ExperimentSpec spec_;
  History history_;
  const std::unique_ptr<suggestion::Algorithm> algorithm_;
  katib::GetSuggestionsRequest request_;
};

using Part = double Spent::*;

double Mean(const std::vector<Spent>& steps, Part part) {
  double sum = 0;
  for (const Spent& step : steps) sum += step.*part;
  return sum / static_cast<double>(steps.size());
}

double Median(std::vector<Spent> steps, Part part) {
  std::sort(steps.begin(), steps.end(),
            [part](const Spent& a, const Spent& b) { return a.*part < b.*part; });
  return steps[steps.size() / 2].*part;
}

void Run(const std::string& port, pid_t server, int trials, int count) {
  Growing growing(port, server, trials);
  growing.AskAndTell();  // without a memo it is no step yet
  const Spent first = growing.AskWire();
  growing.AskAndTell();
  const Spent second = growing.AskWire();
  std::vector<Spent> wire, own;
  for (int i = 0; i < count; ++i) {
    own.push_back(growing.AskAndTell());
    wire.push_back(growing.AskWire());
  }
  std::printf("| %d |", trials);
  for (const Part part : {&Spent::processor, &Spent::passed}) {
    std::printf(" %.1f | %.1f | %.1f | %.1f | %.2f |", Mean(own, part), Median(own, part),
                Mean(wire, part), Median(wire, part), Mean(wire, part) / Mean(own, part));
  }
  std::printf(" %.0f | %.0f |\n", first.processor, second.processor);
}

}  // namespace
}  // namespace shirabe

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: growing_bench PORT PID TRIALS COUNT\n");
    return 2;
  }
  shirabe::KeepFreedMemory();
  shirabe::Run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  return 0;
}
