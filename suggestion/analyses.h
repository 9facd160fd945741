// What a model makes of a history: which parameters matter, what brought the gain, how the
// objective depends on a parameter or two. The questions and their answers, as plain data;
// suggestion/analysis has the mathematics. Pure but for a cache of fitted parameters, which changes
// no answer; any thread.
//
// Each is asked of AnalysesForThisProcessor (suggestion/processor_level.h), as an algorithm is: the
// model is compiled more than once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suggestion/history.h"

namespace shirabe::suggestion {

// Another function that fits the trials as well would give a value between `low` and `high` with
// 90 %; low ≤ value ≤ high. A share whose band would begin below kNegligible begins at 0. How often
// the truth lies between them stands in bench/RESULTS.md.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

// The trials that an analysis rests on.
struct Basis {
  int64_t results = 0;   // with a finite loss, early-stopped ones among them
  int64_t left_out = 0;  // of these: more than a process can take, neither late nor good
  int64_t failed = 0;    // ended without one: not used
  int64_t active = 0;    // their results are still to come
  // Of the variance of the results, what the process explains of each of them from all others:
  // 1 = all; 0 or less = no more than the mean does. Only with a model.
  double explained = 0;
  std::string too_few = {};  // why there is no model, in words; "" = there is one
};

// What these trials are; `too_few` where there is no result, or nothing to tell them apart.
Basis BasisOf(const History& history);

struct SobolIndex {
  Estimate total, first;
};

// What can be said of a parameter, with a confidence of 95 %, from the trials so far.
enum class Verdict {
  kTooFewTrials,   // neither of the two
  kMatters,        // its total share is more than kNegligible
  kDoesNotMatter,  // it is less
};
inline constexpr double kNegligible = 0.05;

struct ParameterImportance {
  SobolIndex index;
  Verdict verdict = Verdict::kTooFewTrials;
};

struct AblationStep {
  int axis = 0;
  Estimate loss;  // after it
  Estimate gain;  // the loss before it less that after it
};

struct AblationPath {
  Estimate from, to;                // the losses at both ends
  std::vector<AblationStep> steps;  // one for each parameter that differs
};

// The values of a parameter that are looked at, ascending, by their coordinates.
struct GridAxis {
  int axis = 0;
  std::vector<double> coordinates = {};
  uint64_t left_out = 0;  // values, where there are more than are looked at
};

struct PartialDependence {
  std::vector<GridAxis> axes;    // one or two
  std::vector<Estimate> losses;  // at each value; of two axes, the second varies fastest
};

// An answer, and the trials behind it; empty where those are too few for a model.
template <class Answer>
struct OfModel {
  Basis basis;
  Answer answer = {};

  bool has_model() const { return basis.too_few.empty(); }
};

struct Analyses {
  // In the order of the space.
  OfModel<std::vector<ParameterImportance>> (*importances)(const History& history);
  // Between two canonical points of its space.
  OfModel<AblationPath> (*ablation)(const History& history, const Point& from, const Point& to);
  // Of one axis, or two that differ.
  OfModel<PartialDependence> (*partial_dependence)(const History& history,
                                                   const std::vector<int>& axes);
};
// As this part of the program is compiled.
extern const Analyses kAnalyses;

}  // namespace shirabe::suggestion
