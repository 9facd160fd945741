// Stops a trial whose best so far is not among the best `percentile` percent of what the others had
// by then.
//
//   symbol  shape  meaning
//   s       1      the step that trial t has reached
//   b_i(s)  n      the best loss of trial i at the steps up to s, for the n trials that have ended
//                  and reached s; b_t(s) is that of the trial that is judged
//   q       1      percentile / 100
//
//   stop t  ⇔  b_t(s) > Q_q(b_1(s), …, b_n(s)),   Q_q linear between order statistics
//
// Like is compared with like, so the setting means what it says: of trials that are all alike, one
// in four is stopped with the default of 75. A generous percentile is the safe choice: in Optuna's
// own comparison (issue 2906) keeping 75 % came out before no pruning at all, and keeping half, or
// a quarter, after it.
//
// With several objectives b_i is a vector: t stops if more than `percentile` percent of the others
// are better, being on a front before its own, or on its own and lonelier; but never while t is on
// the first front, where none is better than it in everything.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "suggestion/known_settings.h"
#include "suggestion/objective_curves.h"

namespace shirabe::suggestion {
namespace {

class Percentile : public Stopper {
 public:
  explicit Percentile(const StopProblem& problem)
      : problem_(problem),
        percent_(*NumberSetting(problem.settings, "percentile")),
        min_trials_(IntSetting(problem.settings, "min_trials_required")),
        start_step_(IntSetting(problem.settings, "start_step")),
        sense_{problem.maximize} {}

  static StatusOr<std::unique_ptr<Stopper>> Create(const StopProblem& problem) {
    return std::make_unique<Percentile>(problem);
  }

  StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History& history,
                                                  const Curves& curves) override {
    const Curve* curve = FindCurve(curves, index);
    if (curve == nullptr || curve->last().reports < start_step_) return std::nullopt;
    const Curve::Point& now = curve->last();
    if (!problem_.further_maximize.empty()) return WhyNotAmong(index, now.step, history, curves);
    std::vector<double> bests;
    const CurvePeers peers = PeersAt(index, now.step, history, curves);
    for (const int64_t peer : peers.ended) {
      bests.push_back(curves[peer].At(now.step)->best);
    }
    if (static_cast<int64_t>(bests.size()) < min_trials_) return std::nullopt;
    const double limit = Quantile(bests, percent_ / 100);
    if (!(now.best > limit)) return std::nullopt;
    return absl::StrFormat("at step %d best %s %s %s, the limit of the best %g %% of %d trials",
                           now.step, sense_.Show(now.best), sense_.Worse(), sense_.Show(limit),
                           percent_, bests.size());
  }

 private:
  std::optional<std::string> WhyNotAmong(int64_t index, int64_t step, const History& history,
                                         const Curves& curves) const {
    const auto standing = StandingAt({.trial = index, .step = step},
                                     PeersAt(index, step, history, curves).ended, curves, problem_);
    if (!standing || standing->peers < min_trials_ || standing->place.front == 0) {
      return std::nullopt;
    }
    const auto better = static_cast<double>(standing->place.better);
    if (!(better > percent_ / 100 * static_cast<double>(standing->peers))) return std::nullopt;
    return absl::StrFormat("at step %d best %s is on front %d, behind %d of %d trials, over %g %%",
                           step, standing->values, standing->place.front + 1,
                           standing->place.better, standing->peers, percent_);
  }

  const StopProblem problem_;
  const double percent_;
  const int64_t min_trials_;
  const int64_t start_step_;
  const MetricDirection sense_;
};

SHIRABE_REGISTER(StopperInfo,
                 {.name = "percentile",
                  .help = "Stops a trial that is not among the best at the same step; the safe "
                          "choice where curves cross.",
                  .settings = {{.name = "percentile",
                                .type = SettingInfo::Type::kDouble,
                                .default_value = "75",
                                .min = 0,
                                .max = 100,
                                .help = "how many percent of the trials are kept"},
                               // A quarter of fewer than four is none of them.
                               MinTrialsRequired("4"),
                               StartStep("4")},
                  .create = &Percentile::Create,
                  .several_objectives = true});

}  // namespace
}  // namespace shirabe::suggestion
