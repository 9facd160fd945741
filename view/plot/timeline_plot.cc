#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "view/plot/plot_frame.h"
#include "view/plot/trial_plots.h"

namespace shirabe::view {
namespace {

constexpr size_t kMaxRows = 300;  // trials
constexpr double kRow = 12;       // pixels

struct Look {
  std::string colour;
  const char* word;
};

// Of an attempt that has ended for this cause, or has not ended.
Look LookOf(const v1::Attempt& attempt) {
  if (!attempt.has_end_time()) return {kPlotPale, "under way"};
  switch (attempt.cause()) {
    case v1::COMPLETED: return {kPlotGreen, "completed"};
    case v1::EARLY_STOPPED: return {kPlotBlue, "stopped early"};
    case v1::OOM:
    case v1::APP_ERROR: return {kPlotInk, "failed"};
    case v1::PREEMPTED_SCHEDULER:
    case v1::PREEMPTED_EVICTION:
    case v1::PREEMPTED_NODE:
    case v1::PREEMPTED_SPOT: return {kPlotOrange, "preempted"};
    default: return {kPlotGrey, "ended otherwise"};
  }
}

struct Bounds {
  absl::Time from, to;
};

Bounds BoundsOf(const std::vector<v1::Attempt>& attempts, absl::Time now) {
  Bounds bounds{absl::InfiniteFuture(), absl::InfinitePast()};
  for (const v1::Attempt& attempt : attempts) {
    if (!attempt.has_start_time()) continue;
    bounds.from = std::min(bounds.from, FromProto(attempt.start_time()));
    bounds.to = std::max(bounds.to, attempt.has_end_time() ? FromProto(attempt.end_time()) : now);
  }
  return bounds;
}

// The latest trials, by their rows from the top.
std::map<int64_t, size_t> RowsOf(const std::vector<v1::Attempt>& attempts) {
  std::map<int64_t, size_t> rows;
  for (const v1::Attempt& attempt : attempts) {
    if (attempt.has_start_time()) rows[attempt.trial()] = 0;
  }
  while (rows.size() > kMaxRows) rows.erase(rows.begin());
  size_t row = 0;
  for (auto& [trial, place] : rows) place = row++;
  return rows;
}

size_t StartedTrials(const std::vector<v1::Attempt>& attempts) {
  std::map<int64_t, bool> started;
  for (const v1::Attempt& attempt : attempts) {
    if (attempt.has_start_time()) started[attempt.trial()] = true;
  }
  return started.size();
}

// Minutes, hours or days, whichever there are a few of.
struct TimeUnit {
  const char* name;
  absl::Duration length;
};

TimeUnit UnitFor(absl::Duration span) {
  if (span < absl::Minutes(3)) return {"seconds", absl::Seconds(1)};
  if (span < absl::Hours(3)) return {"minutes", absl::Minutes(1)};
  if (span < absl::Hours(72)) return {"hours", absl::Hours(1)};
  return {"days", absl::Hours(24)};
}

void DrawLegend(Svg& svg, const PlotPanel& panel, const std::map<std::string, std::string>& looks) {
  double x = panel.Place(0, 1).x;
  for (const auto& [word, colour] : looks) {
    const double y = panel.Place(0, 1).y - 8;
    svg.Rectangle({x, y - 9}, {x + 10, y}, {.fill = colour});
    svg.Write({x + 14, y}, {.text = word, .size = 11});
    x += 26 + 7 * static_cast<double>(word.size());
  }
}

}  // namespace

std::string TimelinePlot(const v1::Experiment& experiment, const std::vector<v1::Attempt>& attempts,
                         absl::Time now) {
  const auto rows = RowsOf(attempts);
  const size_t trials = StartedTrials(attempts);
  const Bounds bounds = BoundsOf(attempts, now);
  const TimeUnit unit = UnitFor(bounds.to - bounds.from);
  const auto count = static_cast<double>(rows.size());
  const std::string shown =
      rows.size() < trials ? absl::StrCat("the latest ", rows.size(), " of ", trials) : "all";
  PlotFrame frame({.title = "Attempts over time",
                   .note = absl::StrCat(shown, " trials that have started; a bar is an attempt"),
                   .width = 1000,
                   .height = 110 + count * kRow},
                  experiment);
  if (rows.empty()) return frame.FinishEmpty("no attempt has started yet");
  const auto since = [&](absl::Time time) {
    return absl::FDivDuration(time - bounds.from, unit.length);
  };
  const PlotPanel panel =
      frame.Panel(PlotScale::Linear(0, since(bounds.to)), PlotScale::Linear(0, 1));
  std::map<std::string, std::string> looks;
  for (const v1::Attempt& attempt : attempts) {
    const auto row = rows.find(attempt.trial());
    if (row == rows.end() || !attempt.has_start_time()) continue;
    const Look look = LookOf(attempt);
    looks[look.word] = look.colour;
    const absl::Time end = attempt.has_end_time() ? FromProto(attempt.end_time()) : now;
    const double top = 1 - static_cast<double>(row->second) / count;
    const PlotPoint from = panel.Place(panel.x().At(since(FromProto(attempt.start_time()))), top);
    PlotPoint to = panel.Place(panel.x().At(since(end)), top - 0.8 / count);
    to.x = std::max(to.x, from.x + 1);
    frame.svg().Rectangle(from, to, {.fill = look.colour, .stroke = "#ffffff", .width = 0.5});
  }
  const size_t step = (rows.size() + 29) / 30;
  for (const auto& [trial, row] : rows) {
    if (row % step != 0) continue;
    const PlotPoint at = panel.Place(0, 1 - (static_cast<double>(row) + 0.7) / count);
    frame.svg().Write(
        {at.x - 6, at.y},
        {.text = absl::StrCat("trial ", trial), .anchor = PlotText::Anchor::kEnd, .size = 10});
  }
  DrawLegend(frame.svg(), panel, looks);
  panel.DrawAxisBelow(frame.svg(), absl::StrCat(unit.name, " since the first start"));
  return frame.Finish();
}

}  // namespace shirabe::view
