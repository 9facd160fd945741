// Stops a trial that has left the range where results make sense: past a bound, no longer a number,
// or diverging. It looks at nothing but the trial itself, so it works from the first trial on. Of
// several objectives it watches the one of spec.objective.
//
//   symbol   shape  meaning
//   v        1      a value of the metric, reported as start_step or later; its loss is l
//   l_1      1      the loss of the first report, or of the first that was finite
//   b        1      the best loss until then
//   f        1      divergence
//
//   stop  ⇔  for any v                                  (the newest is one of many that came at
//   once)
//            v < lower  or  v > upper                                     past a bound
//         or nan_reports reports in a row were NaN or infinite            no longer a number
//         or l − b > f · max(l_1 − b, |b|)                                diverging
//
// The scale of a divergence is what the trial had gained, and at least the size of its best loss:
// a trial that has gained little is not stopped for noise, whatever the units of the metric.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/text/number.h"
#include "suggestion/early_stopping.h"
#include "suggestion/known_settings.h"

namespace shirabe::suggestion {
namespace {

using Points = std::vector<Curve::Point>;

double FirstFinite(const Points& points) {
  return std::find_if(points.begin(), points.end(),
                      [](const auto& point) { return std::isfinite(point.loss); })
      ->loss;
}

class Threshold : public Stopper {
 public:
  explicit Threshold(const StopProblem& problem)
      : lower_(NumberSetting(problem.settings, "lower")),
        upper_(NumberSetting(problem.settings, "upper")),
        divergence_(*NumberSetting(problem.settings, "divergence")),
        nan_reports_(IntSetting(problem.settings, "nan_reports")),
        start_step_(IntSetting(problem.settings, "start_step")),
        sense_{problem.maximize} {}

  static StatusOr<std::unique_ptr<Stopper>> Create(const StopProblem& problem) {
    const auto lower = NumberSetting(problem.settings, "lower");
    const auto upper = NumberSetting(problem.settings, "upper");
    if (lower && upper && *lower > *upper) {
      return absl::InvalidArgumentError(
          absl::StrFormat("early-stopping rule threshold: setting \"lower\" is %g and must not be "
                          "greater than \"upper\", %g",
                          *lower, *upper));
    }
    return std::make_unique<Threshold>(problem);
  }

  // One beyond the bound where values are better than there are makes no sense; beyond the other it
  // is bad, and that is all.
  static StoppedValue ValueOfStopped(const StopProblem& problem, double value) {
    const auto bound = NumberSetting(problem.settings, problem.maximize ? "upper" : "lower");
    if (!bound) return StoppedValue::kResult;
    const bool beyond = problem.maximize ? value > *bound : value < *bound;
    return beyond ? StoppedValue::kNone : StoppedValue::kResult;
  }

  StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History&,
                                                  const Curves& curves) override {
    const Curve* curve = FindCurve(curves, index);
    if (curve == nullptr) return std::nullopt;
    int64_t finite = 0;  // the last report that was
    for (const Curve::Point& point : curve->points()) {
      if (std::isfinite(point.loss)) finite = point.reports;
      if (point.reports < start_step_) continue;
      auto why = finite == point.reports ? WhyOut(curve->points(), point)
                                         : WhyNotFinite(point, point.reports - finite);
      if (why) return why;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> WhyOut(const Points& points, const Curve::Point& point) const {
    const double value = sense_.maximize ? -point.loss : point.loss;
    if (lower_ && value < *lower_) {
      return absl::StrFormat("at step %d %.4g < lower bound %.4g", point.step, value, *lower_);
    }
    if (upper_ && value > *upper_) {
      return absl::StrFormat("at step %d %.4g > upper bound %.4g", point.step, value, *upper_);
    }
    return WhyDiverging(points, point);
  }

  std::optional<std::string> WhyNotFinite(const Curve::Point& point, int64_t reports) const {
    if (nan_reports_ == 0 || reports < nan_reports_) return std::nullopt;
    return absl::StrFormat("at step %d the last %d %s not finite", point.step, reports,
                           reports == 1 ? "report was" : "reports were");
  }

  std::optional<std::string> WhyDiverging(const Points& points, const Curve::Point& point) const {
    if (divergence_ == 0) return std::nullopt;
    const double scale = std::max(FirstFinite(points) - point.best, std::abs(point.best));
    // Halves, so that no difference of two losses is too large.
    if (!(point.loss / 2 - point.best / 2 > divergence_ * (scale / 2))) return std::nullopt;
    return absl::StrFormat("at step %d diverging: %s after best %s, further than %g times the gain",
                           point.step, sense_.Show(point.loss), sense_.Show(point.best),
                           divergence_);
  }

  const std::optional<double> lower_;
  const std::optional<double> upper_;
  const double divergence_;
  const int64_t nan_reports_;
  const int64_t start_step_;
  const MetricDirection sense_;
};

SHIRABE_REGISTER(
    StopperInfo,
    {.name = "threshold",
     .help = "Stops a trial whose metric leaves a range, is no longer a number, or diverges; a "
             "safeguard that needs no other trials.",
     .settings = {{.name = "lower",
                   .type = SettingInfo::Type::kDouble,
                   .help = "stop at a value of the metric below this one"},
                  {.name = "upper",
                   .type = SettingInfo::Type::kDouble,
                   .help = "stop at a value of the metric above this one"},
                  {.name = "nan_reports",
                   .type = SettingInfo::Type::kInt,
                   .default_value = "1",
                   .min = 0,
                   .max = kInfinity,
                   .help = "stop after so many NaN or infinite values in a row; 0 = never"},
                  {.name = "divergence",
                   .type = SettingInfo::Type::kDouble,
                   .default_value = "0",
                   .min = 0,
                   .max = kInfinity,
                   .help = "stop once it is this many times its gain worse than its best; 0 = "
                           "never"},
                  StartStep("1")},
     .create = &Threshold::Create,
     .several_objectives = true,
     .value_of_stopped = &Threshold::ValueOfStopped});

}  // namespace
}  // namespace shirabe::suggestion
