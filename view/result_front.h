// What an experiment of several objectives, or with constraints on results, has come to: its front
// (status.shirabe.front) as a table, the one trial of it that a person wants, and what
// became of each constraint. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/text_table.h"

namespace shirabe::view {

bool HasFront(const v1::Experiment& experiment);
// Their metrics, in the order of the specification.
std::vector<std::string> ObjectiveNames(const v1::ExperimentSpec& spec);

// A row a trial; of more than `most` trials the last line says so.
std::string FrontTable(const v1::Experiment& experiment, bool with_header, int most);
// "12 trials, hypervolume 0.81 measured from accuracy 0.5, latency 90", or why there is no volume.
std::string FrontLine(const v1::Experiment& experiment);

// Which trial of the front is meant by "the best".
struct FrontChoice {
  // Metric=weight. Values are taken as parts of the front's range, 0 the best, 1 the worst.
  std::vector<std::string> weights = {};
  // Metrics, the most important first: a later one decides between trials that are equal in it.
  std::vector<std::string> order = {};
  bool given() const { return !weights.empty() || !order.empty(); }
};
// kInvalidArgument, naming the flag, where a metric is no objective, a weight no positive number,
// there is one objective, or both are given.
Status CheckChoice(const v1::ExperimentSpec& spec, const FrontChoice& choice);

// A trial with a result that keeps all constraints.
struct FrontCandidate {
  int64_t number = 0;
  std::vector<double> losses;  // of the objectives, to be minimised
};
// nullopt of any other trial.
std::optional<FrontCandidate> CandidateOf(const v1::ExperimentSpec& spec, const v1::Trial& trial);
// The number of the chosen one, of equals the lowest; nullopt where there is none. The choice has
// been checked.
std::optional<int64_t> ChooseTrial(const v1::ExperimentSpec& spec, const FrontChoice& choice,
                                   std::vector<FrontCandidate> candidates);
// The same experiment with this trial as its best one, and without its front.
v1::Experiment WithBest(v1::Experiment experiment, const v1::Trial& trial);

// "accuracy ≥ 0.9", "memory ≤ 16e9", "loss 0.1 .. 0.3"
std::string ConstraintWords(const v1::ResultConstraint& constraint);
// Of a trial: "" where all are kept or there are none; "memory by 1.2e+09" of those that are not.
std::string BrokenWords(const v1::ExperimentSpec& spec, const v1::Trial& trial);
// A row a constraint and its value; "" without any.
std::string ConstraintsTable(const v1::ExperimentSpec& spec, const v1::Trial& trial);

}  // namespace shirabe::view
