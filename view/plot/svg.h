// Writes one SVG picture: a few shapes and texts, which are escaped, and nothing that a browser
// would run or fetch. Coordinates are pixels, y downwards. Not thread-safe.
#pragma once

#include <string>
#include <vector>

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

}  // namespace shirabe::view
