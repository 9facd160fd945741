// What a request of Katib's clients asks for, checked: the experiment by the rules that a YAML file
// is checked by, as far as they concern the search, and its trials as a history. Used by the
// services katib_suggestion and katib_early_stopping. Pure functions.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "proto/katib/v1beta1/api.pb.h"
#include "suggestion/algorithm.h"
#include "suggestion/remote/katib_trials.h"

namespace shirabe::service {

namespace katib = ::api::v1::beta1;

// More than these make an answer that no caller would wait for.
inline constexpr int kMaxKatibTrials = 100'000;
inline constexpr int kMaxKatibSuggestions = 1000;

struct KatibSearch {
  v1::Experiment experiment;
  suggestion::Problem problem;
  suggestion::Space space;  // in which the algorithm searches
  std::unique_ptr<suggestion::Algorithm> algorithm;
  std::string left_out;  // settings that the algorithm does not have, in words; "" = none
  bool adds_resource;    // the last parameter is in `space` alone: see ReadSearch
};

// For GetSuggestions, as leniently as Katib's services read it: a missing objective type minimises,
// a missing metric name means the one that a trial names, else its first; settings that the
// algorithm does not have are left out; and where no parameter has the name that resource_name
// says, trials are promoted all the same, and their rung travels in a label. Otherwise
// kInvalidArgument, naming the field as the YAML calls it, the value and the fix: all of them, one
// a line, where there are several.
StatusOr<KatibSearch> ReadSearch(const katib::Experiment& experiment);

// For ValidateAlgorithmSettings. Katib's services look at the settings, which here must all be
// known, and at what else their algorithm depends on: cmaes at the number of parameters, hyperband
// at its resource, and grid at maxTrialCount, because a grid with fewer points would never end
// there. Parameters are checked where there are any. Errors as above.
Status CheckAsKatib(const katib::Experiment& experiment);

// The trials as a history that also knows the ordinal of the next suggestion. kInvalidArgument for
// numbers that make no sense; kResourceExhausted, with the limit, for more than this service takes.
StatusOr<suggestion::KatibHistory> ReadHistory(const KatibSearch& search,
                                               const katib::GetSuggestionsRequest& request);

// One suggestion as the client gets it.
katib::GetSuggestionsReply::ParameterAssignments FormatAnswer(
    const KatibSearch& search, const suggestion::KatibHistory& known,
    const suggestion::Suggestion& suggestion);

}  // namespace shirabe::service
