// Pictures of what was tried and found, as SVG files: no model, no estimate. What is too much for a
// picture is thinned out, and the picture says so. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/plot/plot_frame.h"

namespace shirabe::view {

struct PlottedTrial {
  int64_t number = 0;
  std::optional<double> objective;  // of one that has ended
  bool feasible = true;             // it keeps all constraints: it may be the best
  bool ended = false;
  bool early_stopped = false;
  // On the scale of each parameter, from 0 to 1; NaN where the trial does not have it.
  std::vector<double> places;
};

// The trials of an experiment as pictures show them: a few numbers each, so that a hundred thousand
// of them take little memory. Not thread-safe while trials are added.
class PlottedTrials {
 public:
  // The experiment must outlive it.
  explicit PlottedTrials(const v1::Experiment& experiment);
  void Add(const v1::Trial& trial);

  const v1::Experiment& experiment() const { return experiment_; }
  const std::string& objective() const {
    return experiment_.spec().objective().objective_metric_name();
  }
  bool maximize() const { return experiment_.spec().objective().type() == v1::MAXIMIZE; }
  // Whether `a` is a better objective than `b`.
  bool Better(double a, double b) const { return maximize() ? a > b : a < b; }
  const std::vector<PlottedTrial>& trials() const { return trials_; }
  const std::vector<PlotScale>& scales() const { return scales_; }
  // Whether some trial with a result lacks a parameter that others have.
  bool HasGaps() const;
  const std::string& name(int parameter) const {
    return experiment_.spec().parameters(parameter).name();
  }
  // Those of which two trials have different values.
  std::vector<int> Varying() const;
  // Indices of those with an objective, best first; what breaks a constraint comes after the
  // others.
  std::vector<int64_t> Ranked() const;
  // Of all objectives; logarithmic where that is asked for and can be.
  PlotScale ObjectiveScale(bool logarithmic) const;
  // "of 120 trials, 100 with a result, 3 without one, 17 under way"
  std::string Counts() const;

 private:
  const v1::Experiment& experiment_;
  std::vector<PlotScale> scales_;
  std::vector<PlottedTrial> trials_;
};

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
