#include "view/plot/plot_frame.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

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

}  // namespace shirabe::view
