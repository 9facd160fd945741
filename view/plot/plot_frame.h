// What all pictures have around what they show: a title, a line that says what is shown, room for
// one panel or several, each with its axes (PlotScale). Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::view {

struct PlotPoint {
  double x = 0, y = 0;
};

// Of a colour-blind-safe palette: M. Okabe, K. Ito, "Color universal design" (2008).
inline constexpr char kPlotBlue[] = "#0072b2", kPlotOrange[] = "#d55e00", kPlotGreen[] = "#009e73",
                      kPlotGrey[] = "#767676", kPlotPale[] = "#d8d8d8", kPlotInk[] = "#222222";

struct PlotStyle {
  std::string fill = "none";
  std::string stroke = "none";
  double width = 1;
  double opacity = 1;
  bool dashed = false;
};

struct PlotText {
  enum class Anchor { kStart, kMiddle, kEnd };
  std::string text;
  Anchor anchor = Anchor::kStart;
  double size = 12;
  bool bold = false;
  bool upwards = false;  // turned to the left by a quarter
  bool halo = false;     // white around it, where it stands on lines
};

// Writes one SVG picture: a few shapes and texts, which are escaped, and nothing that a browser
// would run or fetch. Coordinates are pixels, y downwards. Not thread-safe.
class Svg {
 public:
  // `title` and `summary` say in words what it shows, for those who do not see it.
  Svg(double width, double height, const std::string& title, const std::string& summary);

  void Line(const PlotPoint& from, const PlotPoint& to, const PlotStyle& style);
  void Circle(const PlotPoint& centre, double radius, const PlotStyle& style);
  void Cross(const PlotPoint& centre, double radius, const PlotStyle& style);
  // From one corner to the other one.
  void Rectangle(const PlotPoint& from, const PlotPoint& to, const PlotStyle& style);
  void Polyline(const std::vector<PlotPoint>& points, const PlotStyle& style);
  void Polygon(const std::vector<PlotPoint>& points, const PlotStyle& style);
  void Write(const PlotPoint& at, const PlotText& text);

  // The whole file.
  std::string Finish();

 private:
  void Put(const char* shape, const std::string& attributes, const PlotStyle& style);

  std::string text_;
};

// As a text of XML: without control characters, and with & < > " ' written out.
std::string EscapeXml(const std::string& text);

// Numbers as people read them on an axis: 0.001, 12, 1e+06.
std::string PlotNumber(double value);

// An axis of a picture: where a value lies, from 0 to 1, and which values are marked. A plain
// value.
class PlotScale {
 public:
  struct Tick {
    double at;
    std::string label;
  };

  // From `low` to `high`, which may be the same, or not finite: then there is room around it.
  static PlotScale Linear(double low, double high);
  // The same on a logarithmic axis; Linear where low ≤ 0.
  static PlotScale Logarithmic(double low, double high);
  static PlotScale Categories(std::vector<std::string> names);
  // A parameter as it is searched.
  static PlotScale Of(const v1::ParameterSpec& parameter);

  double At(double value) const;
  // Of a parameter's value, as text or as a number.
  double At(const v1::Assignment& value) const;
  std::vector<Tick> Ticks() const;

 private:
  double low_ = 0, high_ = 1;
  bool logarithmic_ = false;
  std::vector<std::string> names_;  // of categories; empty = numbers
};

// Where an axis upwards stands, and where its values begin, as shares of the panel: what has no
// value lies below, if there is room.
struct UprightAxis {
  double x = 0;
  double foot = 0;
};

// A rectangle of a picture with an axis at the bottom and one at the left.
class PlotPanel {
 public:
  PlotPanel(const PlotPoint& top_left, const PlotPoint& bottom_right, PlotScale x, PlotScale y)
      : from_(top_left), to_(bottom_right), x_(std::move(x)), y_(std::move(y)) {}

  const PlotScale& x() const { return x_; }
  const PlotScale& y() const { return y_; }
  // Of shares of the two axes, from 0 to 1.
  PlotPoint Place(double x, double y) const {
    return {from_.x + x * (to_.x - from_.x), to_.y - y * (to_.y - from_.y)};
  }
  PlotPoint At(double x, double y) const { return Place(x_.At(x), y_.At(y)); }

  // Lines across it, then the axes.
  void Draw(Svg& svg, const std::string& x_name, const std::string& y_name) const;
  // Marks and names of the axes.
  void DrawAxes(Svg& svg, const std::string& x_name, const std::string& y_name) const;
  // The axis at the bottom alone.
  void DrawAxisBelow(Svg& svg, const std::string& name) const;
  // An axis upwards, at a share of the width.
  void DrawUpright(Svg& svg, const UprightAxis& axis, const PlotScale& scale,
                   const std::string& name) const;

 private:
  PlotPoint from_, to_;
  PlotScale x_, y_;
};

// As much of a text as `width` pixels have room for, at this size.
std::string FitText(const std::string& text, double width, double size = 12);

struct PlotLayout {
  std::string title;
  std::string note;                  // a sentence or two under the title
  int panels = 1;                    // side by side, three in a row
  double width = 760, height = 340;  // of one panel alone
  double left = 80;                  // room for the marks and names of the axis there
  double right = 24;                 // and for what stands beside it
};

class PlotFrame {
 public:
  PlotFrame(const PlotLayout& layout, const v1::Experiment& experiment);

  Svg& svg() { return svg_; }
  // The next panel.
  PlotPanel Panel(PlotScale x, PlotScale y);
  std::string Finish() { return svg_.Finish(); }
  // In place of panels: why there are none.
  std::string FinishEmpty(const std::string& why);

 private:
  struct Size {
    double panel_width, panel_height, width, height;
    int columns;
  };
  static Size SizeOf(const PlotLayout& layout);

  const PlotLayout layout_;
  const Size size_;
  int drawn_ = 0;
  Svg svg_;
};

}  // namespace shirabe::view
