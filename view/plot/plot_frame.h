// What all pictures have around what they show: a title, a line that says what is shown, room for
// one panel or several. Not thread-safe.
#pragma once

#include <string>

#include "proto/shirabe/v1/experiment.pb.h"
#include "view/plot/plot_scale.h"
#include "view/plot/svg.h"

namespace shirabe::view {

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
