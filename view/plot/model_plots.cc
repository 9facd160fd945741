#include "view/plot/model_plots.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "view/analysis_text.h"
#include "view/plot/plot_frame.h"

namespace shirabe::view {
namespace {

constexpr double kBar = 26;           // pixels, with the gap
constexpr int kMaxBars = 40;          // parameters
constexpr double kNameRoom = 170;     // for their names
constexpr double kVerdictRoom = 170;  // and for what is said of them
constexpr size_t kMaxCircles = 2000;  // trials, the best ones
constexpr double kHatch = 8;          // pixels between its lines
constexpr double kWideBand = 0.5;     // a band that is hatched, as a share of all that is drawn

const std::string& ObjectiveName(const v1::Experiment& experiment) {
  return experiment.spec().objective().objective_metric_name();
}

// A band with a mark at each end.
void DrawWhisker(Svg& svg, const PlotPoint& from, const PlotPoint& to) {
  const PlotStyle ink{.stroke = kPlotInk, .width = 1.5};
  const bool level = from.y == to.y;
  const double dx = level ? 0 : 4, dy = level ? 4 : 0;
  svg.Line(from, to, ink);
  svg.Line({from.x - dx, from.y - dy}, {from.x + dx, from.y + dy}, ink);
  svg.Line({to.x - dx, to.y - dy}, {to.x + dx, to.y + dy}, ink);
}

std::string ShareWords(const v1::ParameterImportance& one) {
  if (one.has_share()) return absl::StrFormat("%.0f %%", 100 * one.share());
  switch (one.verdict()) {
    case v1::MATTERS: return absl::StrFormat("%.0f %%", 100 * one.total().value());
    case v1::DOES_NOT_MATTER: return "does not matter";
    default: return "too few trials to tell";
  }
}

void DrawBar(Svg& svg, const PlotPanel& panel, double top, const v1::ParameterImportance& one) {
  const double share = one.has_share() ? one.share() : one.total().value();
  const double height = 16;
  const PlotPoint origin = panel.Place(0, 1);
  const double y = origin.y + top;
  const auto x = [&](double value) { return panel.Place(value, 0).x; };
  const bool told = one.has_share() || one.verdict() != v1::TOO_FEW_TRIALS;
  // What cannot be told is an outline.
  const PlotStyle bar =
      told ? PlotStyle{.fill = kPlotBlue} : PlotStyle{.stroke = kPlotGrey, .dashed = true};
  svg.Rectangle({origin.x, y}, {x(share), y + height}, bar);
  if (!one.has_share()) {
    svg.Rectangle({origin.x, y + 5}, {x(one.first_order().value()), y + height - 5},
                  {.fill = told ? "#56b4e9" : kPlotPale});
    DrawWhisker(svg, {x(one.total().low()), y + height / 2},
                {x(one.total().high()), y + height / 2});
  }
  svg.Write({origin.x - 8, y + 12},
            {.text = FitText(one.parameter(), kNameRoom - 10), .anchor = PlotText::Anchor::kEnd});
  svg.Write({panel.Place(1, 0).x + 10, y + 12}, {.text = ShareWords(one), .size = 11});
}

struct Span {
  double low, high;
};

void Widen(Span& span, const v1::Estimate& estimate) {
  span.low = std::min(span.low, estimate.low());
  span.high = std::max(span.high, estimate.high());
}

// From blue by white to orange, at a share from 0 to 1.
std::string ColourAt(double share) {
  static constexpr double kLow[] = {0, 114, 178}, kMiddle[] = {247, 247, 247},
                          kHigh[] = {213, 94, 0};
  const double* from = share < 0.5 ? kLow : kMiddle;
  const double* to = share < 0.5 ? kMiddle : kHigh;
  const double part = share < 0.5 ? 2 * share : 2 * share - 1;
  int mixed[3];
  for (int i = 0; i < 3; ++i) mixed[i] = static_cast<int>(from[i] + part * (to[i] - from[i]));
  return absl::StrFormat("#%02x%02x%02x", mixed[0], mixed[1], mixed[2]);
}

// The values of a grid on the axis of their parameter, by shares of its length.
class PlottedGrid {
 public:
  PlottedGrid(const v1::GridAxis& axis, const v1::Experiment& experiment) {
    for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
      if (parameter.name() != axis.parameter()) continue;
      scale_ = PlotScale::Of(parameter);
      categories_ = parameter.parameter_type() == v1::CATEGORICAL
                        ? parameter.feasible_space().list_size()
                        : 0;
    }
    for (int i = 0; i < axis.values_size(); ++i) {
      double value = i;  // of categories, which the grid has in their order
      if (!categorical() && !absl::SimpleAtod(axis.values(i), &value)) value = 0;
      places_.push_back(scale_.At(value));
    }
  }

  bool categorical() const { return categories_ > 0; }
  int size() const { return static_cast<int>(places_.size()); }
  const PlotScale& scale() const { return scale_; }
  double At(int i) const { return places_[i]; }
  // The edge of the cell of a value (`side` -1 or 1): halfway to its neighbour.
  double Edge(int i, int side) const {
    if (categorical()) return places_[i] + 0.5 * side / categories_;
    const int next = i + side;
    if (next >= 0 && next < size()) return (places_[i] + places_[next]) / 2;
    return size() == 1 ? 0.5 + 0.5 * side : places_[i];
  }

 private:
  PlotScale scale_ = PlotScale::Linear(0, 1);
  int categories_ = 0;  // 0 = numbers
  std::vector<double> places_;
};

Span SpanOf(const google::protobuf::RepeatedField<double>& low,
            const google::protobuf::RepeatedField<double>& high) {
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
}

void DrawDependence(Svg& svg, const PlotPanel& panel, const PlottedGrid& grid,
                    const v1::PartialDependence& dependence) {
  const auto at = [&](int i, double value) { return panel.Place(grid.At(i), panel.y().At(value)); };
  std::vector<PlotPoint> band, line;
  for (int i = 0; i < grid.size(); ++i) {
    line.push_back(at(i, dependence.mean(i)));
    band.push_back(at(i, dependence.high(i)));
    if (!grid.categorical()) continue;
    svg.Circle(line.back(), 4, {.fill = kPlotBlue});
    DrawWhisker(svg, at(i, dependence.low(i)), band.back());
  }
  if (grid.categorical()) return;
  for (int i = grid.size() - 1; i >= 0; --i) band.push_back(at(i, dependence.low(i)));
  svg.Polygon(band, {.fill = kPlotBlue, .opacity = 0.2});
  svg.Polyline(line, {.stroke = kPlotBlue, .width = 2});
}

// Lines from the upper right to the lower left, at equal distances, within a cell.
void Hatch(Svg& svg, const PlotPoint& from, const PlotPoint& to) {
  const double x = std::min(from.x, to.x), y = std::min(from.y, to.y);
  const double width = std::abs(to.x - from.x), height = std::abs(to.y - from.y);
  for (double sum = kHatch; sum < width + height; sum += kHatch) {
    svg.Line({x + std::min(sum, width), y + std::max(0.0, sum - width)},
             {x + std::max(0.0, sum - height), y + std::min(sum, height)},
             {.stroke = kPlotGrey, .width = 0.7});
  }
}

// Where the trials with a result lie. Their places are shares of the axes, as are the grid's.
void DrawTrials(Svg& svg, const PlotPanel& panel, const PlottedTrials& trials,
                const v1::PartialDependence& dependence) {
  const auto index = [&](const std::string& name) {
    const auto& parameters = trials.experiment().spec().parameters();
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const auto& one) { return one.name() == name; });
    return static_cast<size_t>(found - parameters.begin());
  };
  const size_t x = index(dependence.axes(0).parameter()), y = index(dependence.axes(1).parameter());
  if (x >= trials.scales().size() || y >= trials.scales().size()) return;
  const auto ranked = trials.Ranked();
  for (size_t i = 0; i < std::min(ranked.size(), kMaxCircles); ++i) {
    const PlottedTrial& trial = trials.trials()[ranked[i]];
    if (std::isnan(trial.places[x]) || std::isnan(trial.places[y])) continue;
    svg.Circle(panel.Place(trial.places[x], trial.places[y]), 2.5,
               {.fill = "#ffffff", .stroke = kPlotInk, .width = 0.7, .opacity = 0.8});
  }
}

// What the colours mean, beside the panel.
void DrawKey(Svg& svg, const PlotPanel& panel, const Span& span, const std::string& name) {
  constexpr int kSteps = 32;
  const PlotPoint foot = panel.Place(1, 0), head = panel.Place(1, 1);
  const double x = foot.x + 20, height = (foot.y - head.y) / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const double y = foot.y - i * height;
    svg.Rectangle({x, y}, {x + 16, y - height - 0.5}, {.fill = ColourAt((i + 0.5) / kSteps)});
  }
  for (const double share : {0.0, 0.5, 1.0}) {
    svg.Write({x + 22, foot.y - share * (foot.y - head.y) + 4},
              {.text = PlotNumber(span.low + share * (span.high - span.low))});
  }
  svg.Write({x, head.y - 8}, {.text = FitText(name, kVerdictRoom - 30)});
}

}  // namespace

std::string ImportancePlot(const v1::Experiment& experiment, const v1::Importance& importance) {
  const bool ped = importance.method() == v1::IMPORTANCE_PED;
  const int bars = std::min(importance.parameters_size(), kMaxBars);
  std::string note = BasisLine(importance.basis());
  if (bars < importance.parameters_size()) {
    note = absl::StrCat(bars, " of ", importance.parameters_size(), " parameters shown; ", note);
  }
  PlotFrame frame({.title = ped ? "What separates the best tenth (PED-ANOVA)"
                                : "Importance for " + ObjectiveName(experiment),
                   .note = note,
                   .height = std::max(120.0, 80 + bars * kBar),
                   .left = kNameRoom,
                   .right = kVerdictRoom},
                  experiment);
  if (bars == 0) return frame.FinishEmpty("too few trials to tell");
  const PlotPanel panel = frame.Panel(PlotScale::Linear(0, 1), PlotScale::Linear(0, 1));
  for (int i = 0; i < bars; ++i) DrawBar(frame.svg(), panel, i * kBar, importance.parameters(i));
  panel.DrawAxisBelow(
      frame.svg(),
      ped ? "share of the sum" : "share of the variance: with others, by itself (inner bar)");
  return frame.Finish();
}

std::string AblationPlot(const v1::Experiment& experiment, const v1::Ablation& ablation) {
  const int steps = ablation.steps_size(), shown = std::min(steps, kMaxBars);
  PlotFrame frame({.title = absl::StrCat("What brought the gain, from trial ",
                                         ablation.from_trial(), " to trial ", ablation.to_trial()),
                   .note = BasisLine(ablation.basis()),
                   .height = std::max(120.0, 80 + (shown + 1) * kBar),
                   .left = kNameRoom,
                   .right = kVerdictRoom},
                  experiment);
  if (!ablation.has_from()) return frame.FinishEmpty("too few trials to tell");
  Span span{ablation.from().low(), ablation.from().high()};
  for (const v1::AblationStep& step : ablation.steps()) Widen(span, step.objective());
  const PlotPanel panel =
      frame.Panel(PlotScale::Linear(span.low, span.high), PlotScale::Linear(0, 1));
  double before = ablation.from().value();
  for (int i = 0; i <= shown; ++i) {
    const bool first = i == 0;
    const v1::Estimate& now = first ? ablation.from() : ablation.steps(i - 1).objective();
    const double y = panel.Place(0, 1).y + i * kBar;
    const auto x = [&](double value) { return panel.At(value, 0).x; };
    if (!first) {
      const bool better = ablation.steps(i - 1).gain().value() >= 0;
      frame.svg().Rectangle({x(before), y}, {x(now.value()), y + 16},
                            {.fill = better ? kPlotGreen : kPlotOrange});
    }
    DrawWhisker(frame.svg(), {x(now.low()), y + 8}, {x(now.high()), y + 8});
    frame.svg().Circle({x(now.value()), y + 8}, 3, {.fill = kPlotInk});
    const std::string name =
        first ? absl::StrCat("trial ", ablation.from_trial()) : ablation.steps(i - 1).parameter();
    frame.svg().Write({panel.Place(0, 0).x - 8, y + 12},
                      {.text = FitText(name, kNameRoom - 10), .anchor = PlotText::Anchor::kEnd});
    const std::string change = first ? ""
                                     : absl::StrCat(ablation.steps(i - 1).from_value(), " → ",
                                                    ablation.steps(i - 1).to_value());
    frame.svg().Write({panel.Place(1, 0).x + 10, y + 12},
                      {.text = FitText(change, kVerdictRoom - 20, 11), .size = 11});
    before = now.value();
  }
  panel.DrawAxisBelow(frame.svg(), ObjectiveName(experiment) + ", as predicted");
  return frame.Finish();
}

std::string DependencePlot(const v1::Experiment& experiment,
                           const std::vector<v1::PartialDependence>& dependences) {
  PlotFrame frame({.title = "Partial dependence of " + ObjectiveName(experiment),
                   .note = dependences.empty() ? "" : BasisLine(dependences[0].basis()),
                   .panels = static_cast<int>(dependences.size())},
                  experiment);
  if (dependences.empty()) return frame.FinishEmpty("no parameter varies");
  if (dependences[0].axes().empty()) return frame.FinishEmpty("too few trials to tell");
  // One scale for all of them, so that they can be compared.
  Span span = SpanOf(dependences[0].low(), dependences[0].high());
  for (const v1::PartialDependence& one : dependences) {
    const Span own = SpanOf(one.low(), one.high());
    span = {std::min(span.low, own.low), std::max(span.high, own.high)};
  }
  for (const v1::PartialDependence& one : dependences) {
    const PlottedGrid grid(one.axes(0), experiment);
    const PlotPanel panel = frame.Panel(grid.scale(), PlotScale::Linear(span.low, span.high));
    panel.Draw(frame.svg(), one.axes(0).parameter(), ObjectiveName(experiment));
    DrawDependence(frame.svg(), panel, grid, one);
  }
  return frame.Finish();
}

std::string ContourPlot(const PlottedTrials& trials, const v1::PartialDependence& dependence) {
  const v1::Experiment& experiment = trials.experiment();
  PlotFrame frame(
      {.title = "Partial dependence of " + ObjectiveName(experiment),
       .note = "hatched: the band is wide; circles: trials; " + BasisLine(dependence.basis()),
       .height = 480,
       .right = kVerdictRoom},
      experiment);
  if (dependence.axes_size() < 2) return frame.FinishEmpty("too few trials to tell");
  const PlottedGrid x(dependence.axes(0), experiment), y(dependence.axes(1), experiment);
  const PlotPanel panel = frame.Panel(x.scale(), y.scale());
  const Span span = SpanOf(dependence.mean(), dependence.mean());
  const double range = std::max(span.high - span.low, 1e-300);
  for (int i = 0; i < x.size(); ++i) {
    for (int j = 0; j < y.size(); ++j) {
      const int cell = i * y.size() + j;
      const double share = (dependence.mean(cell) - span.low) / range;
      const PlotPoint from = panel.Place(x.Edge(i, -1), y.Edge(j, -1)),
                      to = panel.Place(x.Edge(i, 1), y.Edge(j, 1));
      frame.svg().Rectangle(from, to, {.fill = ColourAt(share)});
      if (dependence.high(cell) - dependence.low(cell) > kWideBand * range) {
        Hatch(frame.svg(), from, to);
      }
    }
  }
  DrawTrials(frame.svg(), panel, trials, dependence);
  DrawKey(frame.svg(), panel, span, ObjectiveName(experiment));
  panel.DrawAxes(frame.svg(), dependence.axes(0).parameter(), dependence.axes(1).parameter());
  return frame.Finish();
}

}  // namespace shirabe::view
