// Pictures of what was tried and found, as SVG files: no model, no estimate. What is too much for a
// picture is thinned out, and the picture says so. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/plot/plotted_trials.h"

namespace shirabe::view {

struct PlotOptions {
  bool logarithmic = false;  // the axis of the objective, or of the metric
};

// The objective by trial, and the best so far.
std::string HistoryPlot(const PlottedTrials& trials, const PlotOptions& options);

// The objective by each of these parameters.
std::string SlicePlot(const PlottedTrials& trials, const std::vector<int>& parameters,
                      const PlotOptions& options);

// A line for each trial through all parameters that vary, up to its objective; the better, the
// darker and the later drawn.
std::string ParallelPlot(const PlottedTrials& trials, const PlotOptions& options);

// What a metric was step by step.
struct PlottedCurve {
  int64_t trial = 0;
  bool ended = true;
  std::vector<std::pair<double, double>> points;  // (step, value), finite, by step
};
struct PlottedCurves {
  std::string metric;
  std::vector<PlottedCurve> curves;  // the best first
  int64_t trials = 0;                // of which these are some
};
std::string CurvesPlot(const v1::Experiment& experiment, const PlottedCurves& plotted,
                       const PlotOptions& options);

// Every attempt from its start to its end, a row for each trial; what is open lasts until `now`.
std::string TimelinePlot(const v1::Experiment& experiment, const std::vector<v1::Attempt>& attempts,
                         absl::Time now);

}  // namespace shirabe::view
