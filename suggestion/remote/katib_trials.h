// Trials on Katib's wire, both ways: as a history for an algorithm of ours, and a history of ours
// as trials for a remote algorithm. Pure functions.
//
// What an algorithm must find again of its suggestions travels in labels, which Katib's controller
// keeps with the trial: those of our algorithms as "shirabe.io/<name>", and "shirabe.io/parent",
// the name of the trial that it goes on from. Values are what Kubernetes allows in a label: other
// characters are written _xx, in hexadecimal.
//
//   condition                          state
//   CREATED, RUNNING                   active
//   UNKNOWN                            active; infeasible once it has a completion time
//   SUCCEEDED, EARLYSTOPPED            completed, if the objective's value is a finite number;
//                                      else infeasible ("unavailable", nan, no such metric)
//                                      The metric is the one that the experiment names, else the
//                                      trial, else its first.
//   KILLED, FAILED, METRICSUNAVAILABLE infeasible
#pragma once

#include <string>
#include <vector>

#include "base/names.h"
#include "suggestion/algorithm.h"
#include "suggestion/remote/katib_wire.h"

namespace shirabe::suggestion {

using KatibTrials = google::protobuf::RepeatedPtrField<katib::Trial>;

struct KatibHistory {
  History history;
  std::vector<std::string> names;  // of the trials in it, by index
  int64_t left_out = 0;            // trials whose parameters are not a point of the space
  std::string why;                 // of the first of them, in words
};

// In the order in which they started: by name where they started together, and as the request has
// them where none has a time. Each knows its place in the order of the completion times.
KatibHistory ReadTrials(const Space& space, const v1::ObjectiveSpec& objective,
                        const KatibTrials& trials);

// One suggestion of ours as Katib's clients read it.
katib::GetSuggestionsReply::ParameterAssignments FormatSuggestion(const v1::ExperimentSpec& spec,
                                                                  const KatibHistory& known,
                                                                  const Suggestion& suggestion);

// What a remote algorithm is told: each trial under the name that it gave it, else its own, with
// the labels that it gave it, and of the observation what History holds, the objective.
KatibTrials FormatTrials(const v1::Experiment& experiment, const History& history);
std::string KatibName(const ExperimentKey& experiment, const History& history, int64_t index);

// The label under which a trial keeps the name that a remote algorithm gave it.
inline constexpr char kKatibName[] = "shirabe.io/katib-name";

// A text as a label's value, and back.
std::string EscapeLabel(const std::string& text);
std::string UnescapeLabel(const std::string& value);

}  // namespace shirabe::suggestion
