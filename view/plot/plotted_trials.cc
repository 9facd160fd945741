#include "view/plot/plotted_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "experiment/spec/trial_result.h"

namespace shirabe::view {
namespace {

constexpr double kRoom = 0.03;  // beyond the best and the worst, as a share of what is between

}  // namespace

PlottedTrials::PlottedTrials(const v1::Experiment& experiment) : experiment_(experiment) {
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    scales_.push_back(PlotScale::Of(parameter));
  }
}

void PlottedTrials::Add(const v1::Trial& trial) {
  PlottedTrial plotted{.number = trial.number()};
  plotted.ended = trial.phase() != v1::TRIAL_PENDING && trial.phase() != v1::TRIAL_RUNNING;
  plotted.early_stopped = trial.phase() == v1::TRIAL_EARLY_STOPPED;
  const bool counts = trial.phase() == v1::TRIAL_SUCCEEDED || plotted.early_stopped;
  if (counts && trial.has_objective()) plotted.objective = trial.objective();
  const auto result = experiment::ResultOf(experiment_.spec(), trial);
  plotted.feasible = result && result->feasible();
  plotted.places.assign(scales_.size(), std::numeric_limits<double>::quiet_NaN());
  for (const v1::Assignment& assignment : trial.assignments()) {
    for (size_t j = 0; j < scales_.size(); ++j) {
      if (name(static_cast<int>(j)) != assignment.name()) continue;
      plotted.places[j] = scales_[j].At(assignment);
    }
  }
  trials_.push_back(std::move(plotted));
}

std::vector<int> PlottedTrials::Varying() const {
  std::vector<int> varying;
  for (size_t j = 0; j < scales_.size(); ++j) {
    const bool varies = std::any_of(trials_.begin(), trials_.end(), [&](const auto& trial) {
      const double place = trial.places[j], first = trials_[0].places[j];
      return place != first && !(std::isnan(place) && std::isnan(first));
    });
    if (varies) varying.push_back(static_cast<int>(j));
  }
  return varying;
}

bool PlottedTrials::HasGaps() const {
  const std::vector<int> varying = Varying();
  return std::any_of(trials_.begin(), trials_.end(), [&](const PlottedTrial& trial) {
    const auto lacks = [&](int j) { return std::isnan(trial.places[j]); };
    return trial.objective && std::any_of(varying.begin(), varying.end(), lacks);
  });
}

std::vector<int64_t> PlottedTrials::Ranked() const {
  std::vector<int64_t> ranked;
  for (size_t i = 0; i < trials_.size(); ++i) {
    if (trials_[i].objective) ranked.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](int64_t a, int64_t b) {
    if (trials_[a].feasible != trials_[b].feasible) return trials_[a].feasible;
    return Better(*trials_[a].objective, *trials_[b].objective);
  });
  return ranked;
}

PlotScale PlottedTrials::ObjectiveScale(bool logarithmic) const {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const PlottedTrial& trial : trials_) {
    if (!trial.objective) continue;
    low = std::min(low, *trial.objective);
    high = std::max(high, *trial.objective);
  }
  if (logarithmic && low > 0) {
    const double room = std::pow(high / low, kRoom);
    return PlotScale::Logarithmic(low / room, high * room);
  }
  const double room = kRoom * (high - low);
  return PlotScale::Linear(low - room, high + room);
}

std::string PlottedTrials::Counts() const {
  int64_t results = 0, ended = 0;
  for (const PlottedTrial& trial : trials_) {
    results += trial.objective ? 1 : 0;
    ended += trial.ended ? 1 : 0;
  }
  const auto all = static_cast<int64_t>(trials_.size());
  return absl::StrCat("of ", all, all == 1 ? " trial, " : " trials, ", results, " with a result, ",
                      ended - results, " without one, ", all - ended, " under way");
}

}  // namespace shirabe::view
