#include "view/plot/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "view/text_table.h"

namespace shirabe::view {
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
