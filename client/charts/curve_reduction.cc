#include "client/charts/curve_reduction.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace shirabe::client {
namespace {

double PlaceOnAxis(const CurveWindow& window, double x) {
  return window.logarithmic ? std::log(x) : x;
}

// From 0 to pixels - 1.
int PixelOf(const CurveWindow& window, double x) {
  const double from = PlaceOnAxis(window, window.from);
  const double width = PlaceOnAxis(window, window.to) - from;
  if (!(width > 0)) return 0;
  const double place = (PlaceOnAxis(window, x) - from) / width * window.pixels;
  return std::clamp(static_cast<int>(place), 0, window.pixels - 1);
}

// What has fallen into the pixel so far, as places in the curve.
struct Pixel {
  std::optional<size_t> least;
  std::optional<size_t> greatest;
  std::optional<size_t> odd;  // the first that is not finite
};

void Append(const CurvePoints& points, size_t i, CurvePoints& to) {
  to.x.push_back(points.x[i]);
  to.y.push_back(points.y[i]);
}

void Flush(const CurvePoints& points, const Pixel& pixel, CurvePoints& to) {
  if (!pixel.least) {
    if (pixel.odd) Append(points, *pixel.odd, to);
    return;
  }
  const auto [first, second] = std::minmax(*pixel.least, *pixel.greatest);
  Append(points, first, to);
  if (second != first) Append(points, second, to);
}

void Add(const CurvePoints& points, size_t i, Pixel& pixel) {
  if (!std::isfinite(points.y[i])) {
    if (!pixel.odd) pixel.odd = i;
    return;
  }
  if (!pixel.least || points.y[i] < points.y[*pixel.least]) pixel.least = i;
  if (!pixel.greatest || points.y[i] > points.y[*pixel.greatest]) pixel.greatest = i;
}

}  // namespace

bool IsWithin(const CurveWindow& window, double x) {
  return x >= window.from && x <= window.to && (!window.logarithmic || x > 0);
}

CurvePoints Reduce(const CurvePoints& points, const CurveWindow& window) {
  CurvePoints reduced;
  Pixel pixel;
  int at = -1;
  for (size_t i = 0; i < points.x.size(); ++i) {
    if (!IsWithin(window, points.x[i])) continue;
    const int place = PixelOf(window, points.x[i]);
    if (place != at) {
      Flush(points, pixel, reduced);
      pixel = {};
      at = place;
    }
    Add(points, i, pixel);
  }
  Flush(points, pixel, reduced);
  return reduced;
}

}  // namespace shirabe::client
