#include "view/plot/trial_plots.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/sorting.h"
#include "experiment/spec/trial_result.h"
#include "view/plot/plot_frame.h"

namespace shirabe::view {
namespace {

constexpr int64_t kMaxMarks = 5000;  // of one panel
constexpr int64_t kMaxLines = 1000;
constexpr double kParallelWidth = 1000, kParallelHeight = 420;
// Of the height, for lines through parameters that a trial does not have.
constexpr double kLaneOfNone = 0.1;

// Every `step`-th, so that at most `most` are left.
int64_t StepFor(int64_t count, int64_t most) {
  return std::max<int64_t>(1, (count + most - 1) / most);
}

std::string ShownOf(int64_t shown, int64_t all) {
  return shown < all ? absl::StrCat(shown, " of ", all, " shown; ") : "";
}

void DrawMark(Svg& svg, const PlotPoint& at, const PlottedTrial& trial) {
  if (trial.early_stopped) {
    svg.Circle(at, 3, {.stroke = kPlotBlue, .opacity = 0.7});
  } else {
    svg.Circle(at, 3, {.fill = kPlotBlue, .opacity = 0.6});
  }
}

}  // namespace

std::string HistoryPlot(const PlottedTrials& trials, const PlotOptions& options) {
  const auto& all = trials.trials();
  const auto count = static_cast<int64_t>(all.size());
  const int64_t step = StepFor(count, kMaxMarks);
  std::string note = ShownOf((count + step - 1) / step, count) + trials.Counts();
  if (count > 0) note += "; rings: stopped early; crosses: no result";
  PlotFrame frame({.title = "History of " + trials.objective(), .note = note}, trials.experiment());
  if (count == 0) return frame.FinishEmpty("there is no trial yet");
  const PlotPanel panel =
      frame.Panel(PlotScale::Linear(1, static_cast<double>(std::max<int64_t>(count, 2))),
                  trials.ObjectiveScale(options.logarithmic));
  panel.Draw(frame.svg(), "trial", trials.objective());
  std::optional<double> best;
  std::vector<PlotPoint> line;
  for (int64_t i = 0; i < count; ++i) {
    const PlottedTrial& trial = all[i];
    const auto number = static_cast<double>(trial.number);
    if (trial.objective && trial.feasible && (!best || trials.Better(*trial.objective, *best))) {
      if (best) line.push_back(panel.At(number, *best));
      best = *trial.objective;
      line.push_back(panel.At(number, *best));
    }
    if (i % step != 0) continue;
    if (trial.objective) DrawMark(frame.svg(), panel.At(number, *trial.objective), trial);
    if (trial.ended && !trial.objective) {
      frame.svg().Cross(panel.Place(panel.x().At(number), 0), 3, {.stroke = kPlotOrange});
    }
  }
  if (best) line.push_back(panel.At(static_cast<double>(count), *best));
  frame.svg().Polyline(line, {.stroke = kPlotOrange, .width = 2});
  return frame.Finish();
}

std::string SlicePlot(const PlottedTrials& trials, const std::vector<int>& parameters,
                      const PlotOptions& options) {
  const std::vector<int64_t> ranked = trials.Ranked();
  const auto count = static_cast<int64_t>(ranked.size());
  const int64_t step = StepFor(count, kMaxMarks);
  PlotFrame frame({.title = trials.objective() + " by parameter",
                   .note = ShownOf((count + step - 1) / step, count) + trials.Counts(),
                   .panels = static_cast<int>(parameters.size())},
                  trials.experiment());
  if (ranked.empty()) return frame.FinishEmpty("no trial has a result yet");
  if (parameters.empty()) return frame.FinishEmpty("no parameter varies");
  for (const int parameter : parameters) {
    const PlotPanel panel =
        frame.Panel(trials.scales()[parameter], trials.ObjectiveScale(options.logarithmic));
    panel.Draw(frame.svg(), trials.name(parameter), trials.objective());
    for (int64_t i = 0; i < count; i += step) {
      const PlottedTrial& trial = trials.trials()[ranked[i]];
      if (std::isnan(trial.places[parameter])) continue;
      DrawMark(frame.svg(), panel.Place(trial.places[parameter], panel.y().At(*trial.objective)),
               trial);
    }
  }
  return frame.Finish();
}

std::string ParallelPlot(const PlottedTrials& trials, const PlotOptions& options) {
  const std::vector<int64_t> ranked = trials.Ranked();
  const auto count = static_cast<int64_t>(ranked.size());
  // The best half of what has room, and of the rest evenly.
  const int64_t best = std::min(count, kMaxLines / 2);
  const int64_t step = StepFor(count - best, kMaxLines / 2);
  const int64_t shown = best + (count - best + step - 1) / step;
  PlotFrame frame({.title = "Parallel coordinates: " + trials.objective(),
                   .note = ShownOf(shown, count) + trials.Counts() + "; the darker, the better",
                   .width = kParallelWidth,
                   .height = kParallelHeight},
                  trials.experiment());
  if (ranked.empty()) return frame.FinishEmpty("no trial has a result yet");
  const std::vector<int> varying = trials.Varying();
  const PlotScale objective = trials.ObjectiveScale(options.logarithmic);
  const PlotPanel panel = frame.Panel(PlotScale::Linear(0, 1), PlotScale::Linear(0, 1));
  const auto axes = static_cast<double>(std::max<size_t>(varying.size(), 1));
  const bool gaps = trials.HasGaps();
  const double foot = gaps ? kLaneOfNone : 0;
  for (int64_t i = count - 1; i >= 0; --i) {
    if (i >= best && (i - best) % step != 0) continue;
    const PlottedTrial& trial = trials.trials()[ranked[i]];
    std::vector<PlotPoint> line;
    for (size_t a = 0; a < varying.size(); ++a) {
      const double place = trial.places[varying[a]];
      line.push_back(panel.Place(static_cast<double>(a) / axes,
                                 std::isnan(place) ? foot / 4 : foot + (1 - foot) * place));
    }
    line.push_back(panel.Place(1, foot + (1 - foot) * objective.At(*trial.objective)));
    const double rank =
        static_cast<double>(i) / static_cast<double>(std::max<int64_t>(count - 1, 1));
    frame.svg().Polyline(line, {.stroke = rank < 0.1 ? kPlotOrange : kPlotBlue,
                                .width = rank < 0.1 ? 1.5 : 1,
                                .opacity = 0.1 + 0.7 * (1 - rank) * (1 - rank)});
  }
  for (size_t a = 0; a <= varying.size(); ++a) {
    const bool last = a == varying.size();
    const double x = last ? 1 : static_cast<double>(a) / axes;
    const std::string& name = last ? trials.objective() : trials.name(varying[a]);
    panel.DrawUpright(frame.svg(), {x, foot}, last ? objective : trials.scales()[varying[a]], name);
  }
  if (gaps) {
    const PlotPoint lane = panel.Place(0, foot / 4);
    frame.svg().Write({lane.x - 5, lane.y + 4},
                      {.text = "none", .anchor = PlotText::Anchor::kEnd, .size = 10, .halo = true});
  }
  return frame.Finish();
}

std::string CurvesPlot(const v1::Experiment& experiment, const PlottedCurves& plotted,
                       const PlotOptions& options) {
  const auto& [metric, curves, trials] = plotted;
  const auto shown = static_cast<int64_t>(curves.size());
  PlotFrame frame({.title = "Curves of " + metric,
                   .note = absl::StrCat(ShownOf(shown, trials), "dashed: under way")},
                  experiment);
  double last = 1, low = std::numeric_limits<double>::infinity(), high = -low;
  for (const PlottedCurve& curve : curves) {
    for (const auto& [step, value] : curve.points) {
      last = std::max(last, step);
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  if (!(low <= high)) return frame.FinishEmpty("no trial has reported this metric");
  const PlotPanel panel = frame.Panel(
      PlotScale::Linear(0, last),
      options.logarithmic ? PlotScale::Logarithmic(low, high) : PlotScale::Linear(low, high));
  panel.Draw(frame.svg(), "step", metric);
  for (auto curve = curves.rbegin(); curve != curves.rend(); ++curve) {
    std::vector<PlotPoint> line;
    for (const auto& [step, value] : curve->points) line.push_back(panel.At(step, value));
    const bool first = std::next(curve) == curves.rend();
    const PlotStyle style{.stroke = first ? kPlotOrange : kPlotBlue,
                          .width = first ? 2.0 : 1,
                          .opacity = first ? 1 : 0.5,
                          .dashed = !curve->ended};
    if (line.size() == 1) frame.svg().Circle(line[0], 2, {.fill = style.stroke});
    frame.svg().Polyline(line, style);
  }
  return frame.Finish();
}

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
  StableSort(ranked, [&](int64_t a, int64_t b) {
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
