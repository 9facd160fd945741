// Pictures of what a model makes of the trials, as SVG files, each with the band of 90 % in which
// it lies; where the trials are too few to tell, a picture that says so. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "proto/shirabe/v1/analysis.pb.h"
#include "view/plot/trial_plots.h"

namespace shirabe::view {

// A bar for each parameter, the largest first.
std::string ImportancePlot(const v1::Experiment& experiment, const v1::Importance& importance);

// The objective after each change, from one trial to the other.
std::string AblationPlot(const v1::Experiment& experiment, const v1::Ablation& ablation);

// A panel for each, of one parameter.
std::string DependencePlot(const v1::Experiment& experiment,
                           const std::vector<v1::PartialDependence>& dependences);

// Of two parameters: a field of colours, hatched where the band is wide, under the trials.
std::string ContourPlot(const PlottedTrials& trials, const v1::PartialDependence& dependence);

}  // namespace shirabe::view
