// The trials of an experiment as pictures show them: a few numbers each, so that a hundred thousand
// of them take little memory. Not thread-safe while trials are added.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace shirabe::view
