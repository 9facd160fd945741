// Records as JSON trees, shaped as Katib's Kubernetes objects where Katib has them, so that scripts
// written for `kubectl get … -o json` read ours; what Katib has not lies under status.shirabe. The
// only way a record becomes JSON or YAML for people. Pure functions, any thread.
#pragma once

#include <string>

#include "client/client.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/shaped_json.h"

namespace shirabe::view {

Json ExperimentJson(const v1::Experiment& experiment);

// Trials of one experiment: what is the same for all of them is made once.
class TrialRenderer {
 public:
  // The experiment must outlive it.
  explicit TrialRenderer(const v1::Experiment& experiment);
  // Conditions are told from the phase and its times: Katib keeps them, we can always say them.
  Json operator()(const v1::Trial& trial) const;

 private:
  const v1::Experiment& experiment_;
  Json objective_;
};

// The ledger's entry, flat, for scripts: trial, number, node, capacity, start, end, exitCode (128 +
// the signal that ended it, as a shell shows it), cause, resumedFromStep, stepsGained, stepsRedone,
// seconds, cost; null where it is not known yet. All the rest lies under status. `log` is where its
// log lies; an open attempt shows what it has taken by `now`.
struct AttemptExtras {
  std::string log;
  absl::Time now;
};
Json AttemptJson(const v1::Attempt& attempt, const AttemptExtras& extras);
// {trial, attempt, step, bytes, digest, time, objective, location, gone}
Json CheckpointJson(const v1::Checkpoint& checkpoint);
Json FileJson(const v1::FileInfo& file);
Json EventJson(const v1::Event& event);
Json ObservationJson(const TrialKey& trial, const db::StoredObservation& row);
// {"parameterAssignments": […], "explanation": …}
Json CandidateJson(const v1::SuggestReply::Point& point);

// Parts of these, in Katib's shape. A metric that was never seen is "unavailable".
Json AssignmentsJson(const google::protobuf::RepeatedPtrField<v1::Assignment>& assignments);
Json MetricsJson(const v1::ExperimentSpec& spec, const v1::Observation& observation);
Json TextOrNull(const std::string& text);

// {apiVersion: v1, kind: List, items: […]}, piece by piece, so that a list of any length takes
// little memory. The pieces are to be printed in their order.
class ListWriter {
 public:
  explicit ListWriter(bool yaml) : yaml_(yaml) {}
  std::string Begin() const;
  std::string Item(const Json& item);
  std::string End() const;

 private:
  const bool yaml_;
  bool empty_ = true;
};

// The value as a number or a text, as JSON has them.
Json TypedValue(const v1::Assignment& assignment);
// A number, 16 and not 16.0; text (NaN, Infinity) where JSON has none.
Json NumberJson(double value);

// Indented by two, with a newline at the end; bytes that are no UTF-8 are replaced.
std::string PrintJson(const Json& tree);
// One line, without the newline.
std::string PrintJsonLine(const Json& tree);
std::string PrintYaml(const Json& tree);

}  // namespace shirabe::view
