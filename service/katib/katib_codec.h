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
};

// kInvalidArgument, naming the field as the YAML calls it, the value and the fix: all of them, one
// a line, where there are several.
StatusOr<KatibSearch> ReadSearch(const katib::Experiment& experiment);

// What Katib's services refuse beyond that, when an experiment is submitted: a grid that has fewer
// points than maxTrialCount would end without an error here, and never there.
Status CheckAsKatib(const KatibSearch& search);

// The trials as a history that also knows the ordinal of the next suggestion. kInvalidArgument for
// numbers that make no sense; kResourceExhausted, with the limit, for more than this service takes.
StatusOr<suggestion::KatibHistory> ReadHistory(const KatibSearch& search,
                                               const katib::GetSuggestionsRequest& request);

}  // namespace shirabe::service
