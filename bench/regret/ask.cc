// One algorithm of Shirabe behind the protocol of bench/regret: a JSON object a line, in and out.
// Called by run.py: regret_ask ALGORITHM [SETTING=VALUE …]
//
//   {"space": [{"name", "type", "min", "max", "step", "log", "values", "when"}], "seed",
//    "max_trials", "parallel", "objectives", "constraints"}
//                                    first line; another one starts again from nothing. `when`: the
//                                    parameter exists where each of those named has one of a list
//   {"add": [[{name: value}, loss]]}  trials that somebody else has run
//   {"ask": k}                       → {"points": [{name: value}], "seconds": s}
//   {"tell": [[id, loss or null]]}   id: place among the points asked for; null: it failed; a list
//                                    where there are several objectives; {"loss", "margins"} where
//                                    there are constraints, below 0 what breaks one
//   {"recommend": true}              → {"point": {name: value}}
//
// The history is kept as the reconciler keeps it: points as they were proposed, labels and the memo
// with them. `seconds` is the processor time of Propose alone.
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/memory.h"
#include "suggestion/algorithm.h"

namespace shirabe::bench {
namespace {

using Json = nlohmann::json;
using suggestion::History;
using suggestion::Point;
using suggestion::Proposal;
using suggestion::Space;
using suggestion::TrialState;
using suggestion::TrialSummary;

v1::ParameterSpec ParameterOf(const Json& json) {
  v1::ParameterSpec spec;
  spec.set_name(json.at("name"));
  v1::FeasibleSpace& feasible = *spec.mutable_feasible_space();
  const std::string type = json.at("type");
  if (type == "categorical") {
    spec.set_parameter_type(v1::CATEGORICAL);
    for (const Json& value : json.at("values")) feasible.add_list(value);
  } else if (type == "discrete") {
    spec.set_parameter_type(v1::DISCRETE);
    for (const Json& value : json.at("values")) feasible.add_numbers(value);
  } else {
    spec.set_parameter_type(type == "int" ? v1::INT : v1::DOUBLE);
    feasible.set_min(json.at("min"));
    feasible.set_max(json.at("max"));
    if (json.contains("step")) feasible.set_step(json.at("step"));
    feasible.set_distribution(json.value("log", false) ? v1::LOG_UNIFORM : v1::UNIFORM);
  }
  return spec;
}

Space SpaceOf(const Json& json) {
  google::protobuf::RepeatedPtrField<v1::ParameterSpec> specs;
  v1::SpaceRules rules;
  for (const Json& parameter : json) {
    *specs.Add() = ParameterOf(parameter);
    if (!parameter.contains("when")) continue;
    v1::ParameterCondition& condition = *rules.add_conditions();
    condition.set_parameter(parameter.at("name"));
    for (const auto& [name, values] : parameter.at("when").items()) {
      auto& list = *(*condition.mutable_when()->mutable_fields())[name].mutable_list_value();
      for (const Json& value : values) list.add_values()->set_string_value(value);
    }
  }
  const Space space = Space::Create(specs).value();
  return rules.conditions().empty() ? space : space.WithRules(rules).value();
}

Json JsonOf(const std::vector<v1::Assignment>& assignments) {
  Json json;
  for (const v1::Assignment& assignment : assignments) {
    Json& value = json[assignment.name()];
    switch (assignment.value_case()) {
      case v1::Assignment::kInteger: value = assignment.integer(); break;
      case v1::Assignment::kNumber: value = assignment.number(); break;
      case v1::Assignment::kCategory: value = assignment.category(); break;
      default: break;
    }
  }
  return json;
}

std::vector<v1::Assignment> AssignmentsOf(const Json& point) {
  std::vector<v1::Assignment> assignments;
  for (const auto& [name, value] : point.items()) {
    v1::Assignment& assignment = assignments.emplace_back();
    assignment.set_name(name);
    if (value.is_string()) {
      assignment.set_category(value);
    } else if (value.is_number_integer()) {
      assignment.set_integer(value);
    } else {
      assignment.set_number(value);
    }
  }
  return assignments;
}

TrialSummary Ended(const Json& loss) {
  if (loss.is_null()) return {.state = TrialState::kInfeasible};
  if (loss.is_object()) {
    return {.state = TrialState::kCompleted,
            .loss = loss.at("loss"),
            .margins = loss.at("margins").get<std::vector<double>>()};
  }
  if (!loss.is_array()) return {.state = TrialState::kCompleted, .loss = loss};
  const auto losses = loss.get<std::vector<double>>();
  return {.state = TrialState::kCompleted,
          .loss = losses.front(),
          .further_losses = {losses.begin() + 1, losses.end()}};
}

double ProcessorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Session {
 public:
  Session(const std::string& name, const suggestion::Settings& settings, const Json& header)
      : Session({.space = SpaceOf(header.at("space")),
                 .settings = settings,
                 .max_trials = header.at("max_trials"),
                 .parallel = header.at("parallel"),
                 .objectives = header.value("objectives", 1),
                 .constraints = header.value("constraints", 0)},
                name, header.at("seed")) {}

  Session(const suggestion::Problem& problem, const std::string& name, uint64_t seed)
      : space_(suggestion::SearchSpace(name, problem).value()),
        history_(space_),
        root_(seed),
        algorithm_(suggestion::CreateAlgorithm(name, problem).value()) {}

  // What to answer; null where nothing is to be.
  Json Handle(const Json& request) {
    if (request.contains("add")) return Add(request.at("add"));
    if (request.contains("tell")) return Tell(request.at("tell"));
    if (request.contains("recommend")) return Recommend();
    return Ask(request.at("ask"));
  }

 private:
  Json Add(const Json& trials) {
    for (const Json& trial : trials) {
      history_.Add(space_.Encode(AssignmentsOf(trial.at(0))).value(), Ended(trial.at(1)));
    }
    return nullptr;
  }

  Json Tell(const Json& results) {
    for (const Json& result : results) {
      history_.Update(asked_.at(result.at(0)), Ended(result.at(1)));
    }
    return nullptr;
  }

  Json Ask(int count) {
    const double start = ProcessorSeconds();
    const Proposal proposal = algorithm_->Propose(history_, count, root_).value();
    const double seconds = ProcessorSeconds() - start;
    Json points = Json::array(), whys = Json::array();
    for (const suggestion::Suggestion& suggestion : proposal.suggestions) {
      points.push_back(JsonOf(space_.Decode(suggestion.point)));
      whys.push_back(suggestion.explanation);
      asked_.push_back(history_.size());
      history_.Add(suggestion.point, {});
      history_.SetLabels(history_.size() - 1, suggestion.labels);
    }
    if (!proposal.suggestions.empty()) history_.set_memo(proposal.memo);
    return {{"points", points}, {"seconds", seconds}, {"reason", proposal.reason}, {"why", whys}};
  }

  // What the algorithm says; else the best told.
  Json Recommend() {
    const auto recommended = algorithm_->Recommend(history_).value();
    int64_t best = recommended ? recommended->trial : -1;
    if (recommended) return {{"point", JsonOf(space_.Decode(history_.point(best)))}};
    for (int64_t i = 0; i < history_.size(); ++i) {
      if (history_.trial(i).state != TrialState::kCompleted) continue;
      if (best < 0 || history_.trial(i).loss < history_.trial(best).loss) best = i;
    }
    CHECK(best >= 0);
    return {{"point", JsonOf(space_.Decode(history_.point(best)))}};
  }

  Space space_;
  History history_;
  Rng root_;
  std::unique_ptr<suggestion::Algorithm> algorithm_;
  std::vector<int64_t> asked_;  // index in the history, by id
};

int Run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: regret_ask ALGORITHM [SETTING=VALUE …]\n");
    return 2;
  }
  suggestion::Settings settings;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t cut = text.find('=');
    settings.emplace_back(text.substr(0, cut),
                          cut == std::string::npos ? "" : text.substr(cut + 1));
  }
  std::optional<Session> session;
  std::string line;
  while (std::getline(std::cin, line)) {
    const Json request = Json::parse(line);
    if (request.contains("space")) {
      session.emplace(argv[1], settings, request);
      continue;
    }
    CHECK(session.has_value());
    const Json answer = session->Handle(request);
    if (!answer.is_null()) std::cout << answer.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace shirabe::bench

int main(int argc, char** argv) {
  shirabe::KeepFreedMemory();
  return shirabe::bench::Run(argc, argv);
}
