// Stops a trial whose best so far is worse than what half of the others had on average by then.
//
//   symbol  shape  meaning
//   s       1      the step that trial t has reached
//   b_t(s)  1      its best loss at the steps up to s
//   m_i(s)  n      the running average of the losses of trial i, from its report number start_step
//                  to step s, for the n trials that have reached s, whether they run or have ended
//
//   stop t  ⇔  b_t(s) > median_i m_i(s)
//
// The rule of Golovin et al., "Google Vizier" (KDD 2017), §3.2.1, but that reports before
// start_step count in no average, and that running trials count, both as in Ray Tune's: the first
// losses of a training say little of it, and make averages that everything passes. Best against
// averages favours the trial that is judged: only what was never as good as the others usually were
// is given up. The median is the middle value, or the mean of the two middle ones. Nothing is
// stopped before min_trials_required others have ended that had reached s. Katib's program of this
// name compares with a mean of averages over the first start_step reports, whatever the step.
//
// With several objectives b_t and m_i are vectors: t stops if more than half of the others are
// better, being on a front before its own, or on its own and lonelier; but never while t is on the
// first front, where none is better than it in everything.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "suggestion/known_settings.h"
#include "suggestion/objective_curves.h"

namespace shirabe::suggestion {
namespace {

class MedianStop : public Stopper {
 public:
  explicit MedianStop(const StopProblem& problem)
      : problem_(problem),
        min_trials_(IntSetting(problem.settings, "min_trials_required")),
        start_step_(IntSetting(problem.settings, "start_step")),
        sense_{problem.maximize} {}

  static StatusOr<std::unique_ptr<Stopper>> Create(const StopProblem& problem) {
    return std::make_unique<MedianStop>(problem);
  }

  StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History& history,
                                                  const Curves& curves) override {
    const Curve* curve = FindCurve(curves, index);
    if (curve == nullptr || curve->last().reports < start_step_) return std::nullopt;
    const Curve::Point& now = curve->last();
    if (!problem_.further_maximize.empty()) return WhyBehind(index, now.step, history, curves);
    const CurvePeers peers = PeersAt(index, now.step, history, curves);
    if (static_cast<int64_t>(peers.ended.size()) < min_trials_) return std::nullopt;
    std::vector<double> means;
    for (const int64_t peer : peers.all) {
      means.push_back(curves[peer].MeanFrom(start_step_, *curves[peer].At(now.step)));
    }
    const double median = Median(means);
    if (!(now.best > median)) return std::nullopt;
    return absl::StrFormat("at step %d best %s %s median %s of %d trials", now.step,
                           sense_.Show(now.best), sense_.Worse(), sense_.Show(median),
                           means.size());
  }

 private:
  std::optional<std::string> WhyBehind(int64_t index, int64_t step, const History& history,
                                       const Curves& curves) const {
    const CurvePeers peers = PeersAt(index, step, history, curves);
    if (static_cast<int64_t>(peers.ended.size()) < min_trials_) return std::nullopt;
    const auto standing = StandingAt({.trial = index, .step = step, .means_from = start_step_},
                                     peers.all, curves, problem_);
    if (!standing || standing->peers < min_trials_ || standing->place.front == 0) {
      return std::nullopt;
    }
    const auto better = static_cast<int64_t>(standing->place.better);
    if (2 * better <= standing->peers) return std::nullopt;
    return absl::StrFormat(
        "at step %d best %s is on front %d, behind the averages of %d of %d trials", step,
        standing->values, standing->place.front + 1, better, standing->peers);
  }

  const StopProblem problem_;
  const int64_t min_trials_;
  const int64_t start_step_;
  const MetricDirection sense_;
};

SHIRABE_REGISTER(
    StopperInfo,
    {.name = "medianstop",
     .aliases = {"median"},
     .help = "Stops a trial whose best is worse than the median of the others' running "
             "averages at the same step; for curves that rarely cross.",
     .settings = {MinTrialsRequired("3"), StartStep("4")},
     .create = &MedianStop::Create,
     .several_objectives = true});

}  // namespace
}  // namespace shirabe::suggestion
