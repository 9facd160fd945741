// A curve with any number of points as one with at most two for each pixel of a picture: the least
// and the greatest value that fall into it, so that no spike is lost. Used by curve_reader.h. Pure
// functions.
#pragma once

#include <vector>

namespace shirabe::client {

struct CurvePoints {
  std::vector<double> x;
  std::vector<double> y;
};

// The part of the axis that a picture shows, and how many pixels it has.
struct CurveWindow {
  double from = 0;
  double to = 0;
  int pixels = 1;
  bool logarithmic = false;  // the pixels are even on a logarithmic axis: x above 0 only
};

// Whether a point is in it; with a logarithmic axis none that is not above 0.
bool IsWithin(const CurveWindow& window, double x);

// Of points in the order of x. Within a pixel the two keep their order. Values that are not finite
// are never the least or the greatest; a pixel that has only such ones shows the first of them.
CurvePoints Reduce(const CurvePoints& points, const CurveWindow& window);

}  // namespace shirabe::client
