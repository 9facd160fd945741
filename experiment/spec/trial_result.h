// What a trial has come to in all that the experiment asks for: spec.objective and
// spec.shirabe.additionalObjectives as losses, spec.shirabe.constraints as margins. Pure functions.
//
//   m   objectives, spec.objective the first      c   bounds of constraints, min before max of each
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "suggestion/early_stopping.h"
#include "suggestion/history.h"

namespace shirabe::experiment {

// The part of a specification that results depend on, without the rest of it.
v1::ExperimentSpec ResultSpecOf(const v1::ExperimentSpec& spec);

// Whether there is more than one objective, or any constraint.
bool HasSeveralObjectives(const v1::ExperimentSpec& spec);
bool HasFurtherMetrics(const v1::ExperimentSpec& spec);
int CountBounds(const v1::ExperimentSpec& spec);  // c

// A value of an objective of this type as something to minimise, and back.
double LossOfType(v1::ObjectiveType type, double value);

// The metrics that are optimised, spec.objective's the first.
struct ObjectiveMetric {
  std::string metric;
  v1::ObjectiveType type = v1::MINIMIZE;
};
std::vector<ObjectiveMetric> ObjectiveMetrics(const v1::ExperimentSpec& spec);

struct TrialResult {
  std::vector<double> losses;   // m, finite, to be minimised
  std::vector<double> margins;  // c, finite: ≥ 0 keeps the bound, < 0 breaks it by so much
  bool feasible() const;        // it keeps all of them
};

// Of spec.earlyStopping, which there must be.
suggestion::StopProblem StopProblemOf(const v1::ExperimentSpec& spec);

inline constexpr char kStoppedByRule[] = "TrialEarlyStopped";  // the reason of such a trial

// What the value of the trial counts for: of one that was stopped early its rule says it.
suggestion::StoppedValue StoppedValueOf(const v1::ExperimentSpec& spec, const v1::Trial& trial);

// nullopt where a metric of them was never seen, or the value that counts is not finite, and where
// it is no result (StoppedValueOf): of several values of a metric, objective.metricStrategies say
// which counts.
std::optional<TrialResult> ResultOf(const v1::ExperimentSpec& spec, const v1::Trial& trial);

// The metric that was never seen, or was never finite, and the field that asks for it; "" where
// there is none.
std::string MissingFrom(const v1::ExperimentSpec& spec, const v1::Trial& trial);

// The value of a metric that counts; nullopt where it is not known or not finite.
std::optional<double> CountedValue(const v1::ExperimentSpec& spec, const v1::Observation& metrics,
                                   const std::string& metric);

// How far a value is outside the constraint; 0 where it keeps it.
double BrokenBy(const v1::ResultConstraint& constraint, double value);

// Why a running trial can no longer keep a constraint that asks for its end then (stopEarly), with
// figures; "" while it can, or has not reported the metric. By the metric's strategy the greatest,
// or the least, of its values counts, and what has broken the bound counts to the end.
std::string WhyBrokenForGood(const v1::ExperimentSpec& spec, const v1::Trial& trial);
// Whether that can ever be said: the strategy goes with the bound.
bool CanBreakForGood(const v1::ExperimentSpec& spec, const v1::ResultConstraint& constraint);

// As an algorithm sees the trial.
suggestion::TrialSummary TrialSummaryOf(const v1::ExperimentSpec& spec, const v1::Trial& trial);

// Whether an algorithm learns from the trial, which has ended, where it does well.
bool IsOfUse(const v1::ExperimentSpec& spec, const v1::Trial& trial);

// Whether the losses reach the goal of every objective that has one; false where none has.
bool ReachesGoals(const v1::ExperimentSpec& spec, const std::vector<double>& losses);

// The values behind losses, in their objectives' own direction, and back.
std::vector<double> ValuesOf(const v1::ExperimentSpec& spec, const std::vector<double>& losses);
std::vector<double> LossesOf(const v1::ExperimentSpec& spec,
                             const google::protobuf::RepeatedField<double>& values);

// A trial that has ended with a result. I5: only finite values that keep all constraints count, and
// only better ones replace the best so far: by the first objective that differs, so that the best
// of several is on the front.
void OfferBest(const v1::Trial& trial, v1::Experiment& experiment);

bool IsTerminal(v1::TrialPhase phase);

}  // namespace shirabe::experiment
