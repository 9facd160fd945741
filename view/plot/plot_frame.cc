#include "view/plot/plot_frame.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

constexpr int kInARow = 3;
constexpr double kSmallWidth = 330, kSmallHeight = 240;  // of one of several
constexpr double kHead = 64, kFoot = 48, kMargin = 24;
constexpr double kNoteSize = 11;

std::string TitleFor(const PlotLayout& layout, const v1::Experiment& experiment) {
  return absl::StrCat(experiment.metadata().name(), ": ", layout.title);
}

}  // namespace

PlotFrame::Size PlotFrame::SizeOf(const PlotLayout& layout) {
  Size size{.panel_width = layout.width, .panel_height = layout.height, .columns = 1};
  if (layout.panels > 1) {
    size.columns = std::min(layout.panels, kInARow);
    size.panel_width = kSmallWidth;
    size.panel_height = kSmallHeight;
  }
  const int rows = (std::max(layout.panels, 1) + size.columns - 1) / size.columns;
  size.width = size.columns * size.panel_width;
  size.height = kHead + rows * size.panel_height;
  return size;
}

PlotFrame::PlotFrame(const PlotLayout& layout, const v1::Experiment& experiment)
    : layout_(layout),
      size_(SizeOf(layout)),
      svg_(size_.width, size_.height, TitleFor(layout, experiment), layout.note) {
  const double room = size_.width - 2 * kMargin;
  svg_.Write({kMargin, 26},
             {.text = FitText(TitleFor(layout, experiment), room, 16), .size = 16, .bold = true});
  svg_.Write({kMargin, 46}, {.text = FitText(layout.note, room, kNoteSize), .size = kNoteSize});
}

PlotPanel PlotFrame::Panel(PlotScale x, PlotScale y) {
  const double left = (drawn_ % size_.columns) * size_.panel_width;
  const double top = kHead + (drawn_ / size_.columns) * size_.panel_height;
  ++drawn_;
  return PlotPanel({left + layout_.left, top + 8},
                   {left + size_.panel_width - layout_.right, top + size_.panel_height - kFoot},
                   std::move(x), std::move(y));
}

std::string PlotFrame::FinishEmpty(const std::string& why) {
  svg_.Write({size_.width / 2, (kHead + size_.height) / 2},
             {.text = FitText(why, size_.width - 2 * kMargin, 14),
              .anchor = PlotText::Anchor::kMiddle,
              .size = 14});
  return svg_.Finish();
}

namespace {

constexpr int kMarks = 5;             // about as many on an axis
constexpr size_t kMaxNames = 12;      // of categories
constexpr double kGlyphWidth = 0.55;  // of a letter, in units of its size
constexpr double kMarkRoom = 60;      // pixels for a category's name
constexpr double kNameOfUpright = 110;

// The round number, 1, 2 or 5 times a power of ten, that is next above.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= step * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

}  // namespace

PlotScale PlotScale::Linear(double low, double high) {
  PlotScale scale;
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(high - low)) return scale;
  if (high <= low) {
    const double room = std::max(std::abs(low) * 0.1, 1e-12);
    low -= room;
    high += room;
  }
  scale.low_ = low;
  scale.high_ = high;
  return scale;
}

PlotScale PlotScale::Logarithmic(double low, double high) {
  if (!(low > 0) || !std::isfinite(high)) return Linear(low, high);
  PlotScale scale;
  if (high <= low) {
    low /= 2;
    high *= 2;
  }
  scale.low_ = std::log10(low);
  scale.high_ = std::log10(high);
  scale.logarithmic_ = true;
  return scale;
}

PlotScale PlotScale::Categories(std::vector<std::string> names) {
  PlotScale scale;
  scale.names_ = std::move(names);
  return scale;
}

PlotScale PlotScale::Of(const v1::ParameterSpec& parameter) {
  const v1::FeasibleSpace& space = parameter.feasible_space();
  if (parameter.parameter_type() == v1::CATEGORICAL) {
    return Categories({space.list().begin(), space.list().end()});
  }
  double low = space.min(), high = space.max();
  if (parameter.parameter_type() == v1::DISCRETE && space.numbers_size() > 0) {
    const auto [least, most] = std::minmax_element(space.numbers().begin(), space.numbers().end());
    low = *least;
    high = *most;
  }
  const bool logarithmic =
      space.distribution() == v1::LOG_UNIFORM || space.distribution() == v1::LOG_NORMAL;
  return logarithmic ? Logarithmic(low, high) : Linear(low, high);
}

double PlotScale::At(double value) const {
  if (!names_.empty()) {
    return std::clamp((value + 0.5) / static_cast<double>(names_.size()), 0.0, 1.0);
  }
  if (logarithmic_) value = std::log10(value);
  const double at = (value - low_) / (high_ - low_);
  return std::isfinite(at) ? std::clamp(at, 0.0, 1.0) : 0;
}

double PlotScale::At(const v1::Assignment& value) const {
  switch (value.value_case()) {
    case v1::Assignment::kNumber: return At(value.number());
    case v1::Assignment::kInteger: return At(static_cast<double>(value.integer()));
    case v1::Assignment::kCategory: {
      const auto found = std::find(names_.begin(), names_.end(), value.category());
      return At(static_cast<double>(found - names_.begin()));
    }
    default: return 0;
  }
}

std::vector<PlotScale::Tick> PlotScale::Ticks() const {
  std::vector<Tick> ticks;
  if (!names_.empty()) {
    const size_t step = (names_.size() + kMaxNames - 1) / kMaxNames;
    for (size_t i = 0; i < names_.size(); i += step) {
      ticks.push_back({At(static_cast<double>(i)), FitText(names_[i], kMarkRoom)});
    }
    return ticks;
  }
  double step = RoundStep((high_ - low_) / kMarks);
  if (logarithmic_) step = std::max(1.0, std::ceil(step));
  const double first = std::ceil(low_ / step - 1e-9);
  for (double i = first; i * step <= high_ + step * 1e-9 && ticks.size() < 12; ++i) {
    const double mark = i == 0 ? 0 : i * step;  // not -0
    const double at = (mark - low_) / (high_ - low_);
    ticks.push_back({at, PlotNumber(logarithmic_ ? std::pow(10, mark) : mark)});
  }
  if (logarithmic_ && ticks.size() < 2) {  // less than a decade: its ends
    ticks = {{0, PlotNumber(std::pow(10, low_))}, {1, PlotNumber(std::pow(10, high_))}};
  }
  return ticks;
}

void PlotPanel::Draw(Svg& svg, const std::string& x_name, const std::string& y_name) const {
  const PlotStyle grid{.stroke = kPlotPale};
  for (const PlotScale::Tick& tick : x_.Ticks())
    svg.Line(Place(tick.at, 0), Place(tick.at, 1), grid);
  for (const PlotScale::Tick& tick : y_.Ticks())
    svg.Line(Place(0, tick.at), Place(1, tick.at), grid);
  DrawAxes(svg, x_name, y_name);
}

void PlotPanel::DrawAxes(Svg& svg, const std::string& x_name, const std::string& y_name) const {
  DrawAxisBelow(svg, x_name);
  for (const PlotScale::Tick& tick : y_.Ticks()) {
    const PlotPoint at = Place(0, tick.at);
    svg.Write({at.x - 6, at.y + 4}, {.text = tick.label, .anchor = PlotText::Anchor::kEnd});
  }
  svg.Line(Place(0, 0), Place(0, 1), {.stroke = kPlotInk});
  const PlotPoint middle = Place(0, 0.5);
  svg.Write({middle.x - 62, middle.y}, {.text = FitText(y_name, to_.y - from_.y),
                                        .anchor = PlotText::Anchor::kMiddle,
                                        .upwards = true});
}

void PlotPanel::DrawAxisBelow(Svg& svg, const std::string& name) const {
  svg.Line(Place(0, 0), Place(1, 0), {.stroke = kPlotInk});
  for (const PlotScale::Tick& tick : x_.Ticks()) {
    const PlotPoint at = Place(tick.at, 0);
    svg.Line(at, {at.x, at.y + 4}, {.stroke = kPlotInk});
    svg.Write({at.x, at.y + 16}, {.text = tick.label, .anchor = PlotText::Anchor::kMiddle});
  }
  const PlotPoint middle = Place(0.5, 0);
  svg.Write({middle.x, middle.y + 36},
            {.text = FitText(name, to_.x - from_.x), .anchor = PlotText::Anchor::kMiddle});
}

void PlotPanel::DrawUpright(Svg& svg, const UprightAxis& axis, const PlotScale& scale,
                            const std::string& name) const {
  svg.Line(Place(axis.x, axis.foot), Place(axis.x, 1), {.stroke = kPlotInk});
  for (const PlotScale::Tick& tick : scale.Ticks()) {
    const PlotPoint at = Place(axis.x, axis.foot + (1 - axis.foot) * tick.at);
    svg.Line({at.x - 3, at.y}, at, {.stroke = kPlotInk});
    svg.Write({at.x - 5, at.y + 4},
              {.text = tick.label, .anchor = PlotText::Anchor::kEnd, .size = 10, .halo = true});
  }
  const PlotPoint end = Place(axis.x, 0);
  svg.Write({end.x, end.y + 20},
            {.text = FitText(name, kNameOfUpright), .anchor = PlotText::Anchor::kMiddle});
}

std::string FitText(const std::string& text, double width, double size) {
  const std::string shown = Printable(text);
  const int columns = std::max(3, static_cast<int>(width / (kGlyphWidth * size)));
  if (DisplayWidth(shown) <= columns) return shown;
  return Truncate(shown, columns - 1) + "…";
}

namespace {

// Two digits after the point: a hundredth of a pixel. What is no number would be no SVG.
std::string Pixels(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string PointList(const std::vector<PlotPoint>& points) {
  std::string text = "points=\"";
  for (const PlotPoint& point : points) {
    absl::StrAppend(&text, text.back() == '"' ? "" : " ", Pixels(point.x), ",", Pixels(point.y));
  }
  return text + "\"";
}

}  // namespace

std::string EscapeXml(const std::string& text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

std::string PlotNumber(double value) { return absl::StrFormat("%.4g", value); }

Svg::Svg(double width, double height, const std::string& title, const std::string& summary) {
  const std::string box = absl::StrCat(Pixels(width), " ", Pixels(height));
  text_ = absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", box,
                       "\" width=\"", Pixels(width), "\" height=\"", Pixels(height),
                       "\" role=\"img\" font-family=\"system-ui, sans-serif\" fill=\"", kPlotInk,
                       "\">\n<title>", EscapeXml(title), "</title>\n<desc>", EscapeXml(summary),
                       "</desc>\n");
  Rectangle({0, 0}, {width, height}, {.fill = "#ffffff"});
}

void Svg::Put(const char* shape, const std::string& attributes, const PlotStyle& style) {
  absl::StrAppend(&text_, "<", shape, " ", attributes, " fill=\"", style.fill, "\"");
  if (style.stroke != "none") {
    absl::StrAppend(&text_, " stroke=\"", style.stroke, "\" stroke-width=\"", Pixels(style.width),
                    "\"");
  }
  if (style.opacity < 1) absl::StrAppend(&text_, " opacity=\"", Pixels(style.opacity), "\"");
  if (style.dashed) text_ += " stroke-dasharray=\"4 3\"";
  text_ += "/>\n";
}

void Svg::Line(const PlotPoint& from, const PlotPoint& to, const PlotStyle& style) {
  Put("line",
      absl::StrCat("x1=\"", Pixels(from.x), "\" y1=\"", Pixels(from.y), "\" x2=\"", Pixels(to.x),
                   "\" y2=\"", Pixels(to.y), "\""),
      style);
}

void Svg::Circle(const PlotPoint& centre, double radius, const PlotStyle& style) {
  Put("circle",
      absl::StrCat("cx=\"", Pixels(centre.x), "\" cy=\"", Pixels(centre.y), "\" r=\"",
                   Pixels(radius), "\""),
      style);
}

void Svg::Cross(const PlotPoint& centre, double radius, const PlotStyle& style) {
  const auto [x, y] = centre;
  Line({x - radius, y - radius}, {x + radius, y + radius}, style);
  Line({x - radius, y + radius}, {x + radius, y - radius}, style);
}

void Svg::Rectangle(const PlotPoint& from, const PlotPoint& to, const PlotStyle& style) {
  Put("rect",
      absl::StrCat("x=\"", Pixels(std::min(from.x, to.x)), "\" y=\"",
                   Pixels(std::min(from.y, to.y)), "\" width=\"", Pixels(std::abs(to.x - from.x)),
                   "\" height=\"", Pixels(std::abs(to.y - from.y)), "\""),
      style);
}

void Svg::Polyline(const std::vector<PlotPoint>& points, const PlotStyle& style) {
  Put("polyline", PointList(points), style);
}

void Svg::Polygon(const std::vector<PlotPoint>& points, const PlotStyle& style) {
  Put("polygon", PointList(points), style);
}

void Svg::Write(const PlotPoint& at, const PlotText& text) {
  static constexpr const char* kAnchors[] = {"start", "middle", "end"};
  absl::StrAppend(&text_, "<text x=\"", Pixels(at.x), "\" y=\"", Pixels(at.y), "\" font-size=\"",
                  Pixels(text.size), "\" text-anchor=\"", kAnchors[static_cast<int>(text.anchor)],
                  "\"");
  if (text.bold) text_ += " font-weight=\"bold\"";
  if (text.halo) text_ += " stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\"";
  if (text.upwards) {
    absl::StrAppend(&text_, " transform=\"rotate(-90 ", Pixels(at.x), " ", Pixels(at.y), ")\"");
  }
  absl::StrAppend(&text_, ">", EscapeXml(text.text), "</text>\n");
}

std::string Svg::Finish() { return text_ + "</svg>\n"; }

}  // namespace shirabe::view
