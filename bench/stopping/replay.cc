// What each early-stopping rule saves on real learning curves, and what it costs in quality: trials
// whose curves are known (curves.py) run again on a few workers, epoch by epoch in lock-step, and
// every report is put to the rule, as the reconciler does it. Many orders of the trials: how much a
// rule stops depends on who comes first.
//
//   stopping_replay bench/stopping/curves.jsonl [WORKERS] [ORDERS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "suggestion/early_stopping.h"

namespace shirabe::suggestion {
namespace {

using Values = std::vector<double>;  // of a metric to be maximised, by epoch

// A rule, or several settings of one.
struct Candidate {
  std::string name;
  Settings settings;
};

struct Outcome {
  int64_t epochs = 0;
  int64_t stopped = 0;
  double best = 0;
};

// One run over all curves in this order.
class Replay {
 public:
  Replay(const std::vector<Values>& curves, Stopper* stopper)
      : known_(curves), stopper_(stopper), history_(OneParameter()) {}

  Outcome Run(const std::vector<int>& order, size_t workers) {
    std::vector<int64_t> running;
    size_t next = 0;
    while (next < order.size() || !running.empty()) {
      while (running.size() < workers && next < order.size()) {
        running.push_back(history_.size());
        history_.Add({0.5}, {});
        curves_.emplace_back();
        trials_.push_back(order[next++]);
      }
      std::erase_if(running, [this](int64_t index) { return !GoesOn(index); });
    }
    return outcome_;
  }

 private:
  static Space OneParameter() {
    v1::ParameterSpec parameter;
    parameter.set_name("x");
    parameter.set_parameter_type(v1::DOUBLE);
    parameter.mutable_feasible_space()->set_min(0);
    parameter.mutable_feasible_space()->set_max(1);
    google::protobuf::RepeatedPtrField<v1::ParameterSpec> parameters;
    *parameters.Add() = parameter;
    return *Space::Create(parameters);
  }

  // One epoch of this trial.
  bool GoesOn(int64_t index) {
    const Values& values = known_[trials_[index]];
    const auto epoch = static_cast<int64_t>(curves_[index].points().size());
    curves_[index].Append(epoch + 1, -values[epoch]);
    ++outcome_.epochs;
    outcome_.best = std::max(outcome_.best, values[epoch]);
    const bool done = epoch + 1 == static_cast<int64_t>(values.size());
    const auto reason = stopper_->ShouldStop(index, history_, curves_);
    const bool stop = !done && reason.ok() && reason->has_value();
    outcome_.stopped += stop;
    if (!done && !stop) return true;
    history_.Update(index, {.state = TrialState::kCompleted,
                            .early_stopped = stop,
                            .loss = curves_[index].last().best,
                            .last_step = epoch + 1});
    return false;
  }

  const std::vector<Values>& known_;
  Stopper* stopper_;
  History history_;
  Curves curves_;
  std::vector<int> trials_;  // which known curve a trial has
  Outcome outcome_;
};

std::vector<Values> ReadCurves(const char* path) {
  std::ifstream file(path);
  std::vector<Values> curves;
  for (std::string line; std::getline(file, line);) {
    curves.push_back(nlohmann::json::parse(line)["values"].get<Values>());
  }
  return curves;
}

std::vector<int> Shuffled(int count, uint64_t seed) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  Rng rng(seed);
  for (int i = count - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);
  return order;
}

void Report(const Candidate& rule, const std::vector<Values>& curves, size_t workers, int orders) {
  const auto stopper = CreateStopper(rule.name, {.settings = rule.settings, .maximize = true});
  CHECK(stopper.ok());
  double all = 0, best = 0;
  for (const Values& values : curves) {
    all += static_cast<double>(values.size());
    best = std::max(best, *std::max_element(values.begin(), values.end()));
  }
  double epochs = 0, stopped = 0, lost = 0, worst = 0;
  for (int i = 0; i < orders; ++i) {
    const auto order = Shuffled(static_cast<int>(curves.size()), i);
    const Outcome outcome = Replay(curves, stopper->get()).Run(order, workers);
    epochs += static_cast<double>(outcome.epochs) / orders;
    stopped += static_cast<double>(outcome.stopped) / orders;
    lost += (best - outcome.best) / orders;
    worst = std::max(worst, best - outcome.best);
  }
  std::string settings;
  for (const auto& [name, value] : rule.settings) settings += " " + name + "=" + value;
  std::printf("| %s%s | %.0f %% | %.1f of %zu | %.4f | %.4f |\n", rule.name.c_str(),
              settings.c_str(), 100 * (1 - epochs / all), stopped, curves.size(), lost, worst);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: stopping_replay CURVES.jsonl [WORKERS] [ORDERS]\n");
    return 2;
  }
  const std::vector<Values> curves = ReadCurves(argv[1]);
  const size_t workers = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 4;
  const int orders = argc > 3 ? std::atoi(argv[3]) : 100;
  std::printf("| rule | epochs saved | trials stopped | best lost, mean | at most |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: |\n");
  const std::vector<Candidate> rules = {
      {"medianstop", {}},
      {"percentile", {}},
      {"percentile", {{"percentile", "50"}}},
      {"asha-stop", {}},
      {"asha-stop", {{"min_resource", "4"}}},
      {"patience", {}},
      {"threshold", {{"lower", "0.5"}, {"start_step", "5"}}},
  };
  for (const Candidate& rule : rules) Report(rule, curves, workers, orders);
  return 0;
}

}  // namespace
}  // namespace shirabe::suggestion

int main(int argc, char** argv) { return shirabe::suggestion::Main(argc, argv); }
