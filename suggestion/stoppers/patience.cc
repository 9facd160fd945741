// Stops a trial that no longer gets better: it has had `patience` reports since its last real gain.
//
//   symbol  shape  meaning
//   l_j     n      the loss of report j
//   δ       1      min_delta: a gain must be greater, in units of the metric
//   g       1      the loss of the last report that was a gain: l_j < g_before − δ
//   j(g)    1      that report's number
//
//   stop  ⇔  n − j(g) ≥ patience
//
// Prechelt, "Early Stopping — But When?" (1998), the criterion UP with a tolerance. A report that
// is not a finite number is no gain. With several objectives it holds for each of them: a gain in
// any is one.
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/text/number.h"
#include "suggestion/known_settings.h"
#include "suggestion/objective_curves.h"

namespace shirabe::suggestion {
namespace {

class Patience : public Stopper {
 public:
  explicit Patience(const StopProblem& problem)
      : problem_(problem),
        patience_(IntSetting(problem.settings, "patience")),
        min_delta_(*NumberSetting(problem.settings, "min_delta")),
        start_step_(IntSetting(problem.settings, "start_step")),
        sense_{problem.maximize} {}

  static StatusOr<std::unique_ptr<Stopper>> Create(const StopProblem& problem) {
    if (!problem.further_maximize.empty() && NumberSetting(problem.settings, "min_delta") > 0) {
      return absl::InvalidArgumentError(
          "early-stopping rule patience: setting \"min_delta\" is in units of one objective, and "
          "there are several; leave it out");
    }
    return std::make_unique<Patience>(problem);
  }

  StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History&,
                                                  const Curves& curves) override {
    const Curve* curve = FindCurve(curves, index);
    if (curve == nullptr || curve->last().reports < start_step_) return std::nullopt;
    const Curve::Point gain = LastGain(*curve);
    const int64_t since = curve->last().reports - gain.reports;
    if (since < patience_) return std::nullopt;
    for (const std::vector<Curve>& further : curves.further) {
      const bool known = index < static_cast<int64_t>(further.size()) && !further[index].empty();
      if (!known) continue;
      const Curve& other = further[index];
      if (other.last().reports - LastGain(other).reports < patience_) return std::nullopt;
    }
    if (!problem_.further_maximize.empty()) {
      return absl::StrFormat("at step %d no report of the last %d was better in any objective",
                             curve->last_step(), since);
    }
    if (gain.reports == 0) {
      return absl::StrFormat("at step %d none of its %d reports was a finite number",
                             curve->last_step(), since);
    }
    const std::string more = min_delta_ == 0 ? "" : absl::StrFormat(" by more than %g", min_delta_);
    return absl::StrFormat("at step %d no report of the last %d was better%s than %s of step %d",
                           curve->last_step(), since, more, sense_.Show(gain.loss), gain.step);
  }

 private:
  Curve::Point LastGain(const Curve& curve) const {
    Curve::Point gain{.loss = std::numeric_limits<double>::infinity()};
    for (const Curve::Point& point : curve.points()) {
      if (std::isfinite(point.loss) && point.loss < gain.loss - min_delta_) gain = point;
    }
    return gain;
  }

  const StopProblem problem_;
  const int64_t patience_;
  const double min_delta_;
  const int64_t start_step_;
  const MetricDirection sense_;
};

SHIRABE_REGISTER(StopperInfo,
                 {.name = "patience",
                  .help = "Stops a trial that has not got better for some reports; for training "
                          "that runs longer than it needs to.",
                  .settings = {{.name = "patience",
                                .type = SettingInfo::Type::kInt,
                                .default_value = "10",
                                .min = 1,
                                .max = kInfinity,
                                .help = "reports without a gain after which a trial is stopped"},
                               {.name = "min_delta",
                                .type = SettingInfo::Type::kDouble,
                                .default_value = "0",
                                .min = 0,
                                .max = kInfinity,
                                .help = "a smaller change of the metric is no gain"},
                               StartStep("1")},
                  .create = &Patience::Create,
                  .several_objectives = true});

}  // namespace
}  // namespace shirabe::suggestion
