// Successive halving without waiting: of the trials that reach a rung, the best 1/eta go on.
//
//   symbol  shape  meaning
//   r       1      min_resource: the step of the first rung
//   η       1      eta
//   r η^k   1      the step of rung k, by repeated multiplication of integers
//   b_i(k)  n      the best loss of trial i up to rung k, for all n trials that have reached it:
//                  running, ended and stopped ones, and trial t, which is judged
//
//   k = the highest rung that trial t has reached
//   stop t  ⇔  n ≥ η  and  #{i : b_i(k) < b_t(k)} ≥ ⌊n / η⌋
//
// The stopping variant of ASHA: Li et al., "A System for Massively Parallel Hyperparameter Tuning"
// (MLSys 2020), §3, with the promotion of a paused trial turned into a running trial's leave to go
// on. No trial is stopped at a rung before η trials have been there: fewer cannot say what the best
// 1/η is. A trial that was let through while few had got as far is judged again at that rung, with
// those that came after it, until it reaches the next one. Equally good trials go on together.
//
// With several objectives b_i(k) is a vector, and those that are better than t are on a front
// before its own, or on its own and lonelier (R. Schmucker et al., "Multi-objective Asynchronous
// Successive Halving", 2021): who is the best of all in one objective always goes on.
#include <algorithm>
#include <limits>

#include "absl/strings/str_format.h"
#include "suggestion/known_settings.h"
#include "suggestion/objective_curves.h"

namespace shirabe::suggestion {
namespace {

class AshaStop : public Stopper {
 public:
  explicit AshaStop(const StopProblem& problem)
      : problem_(problem),
        eta_(IntSetting(problem.settings, "eta")),
        min_resource_(IntSetting(problem.settings, "min_resource")),
        sense_{problem.maximize} {}

  static StatusOr<std::unique_ptr<Stopper>> Create(const StopProblem& problem) {
    return std::make_unique<AshaStop>(problem);
  }

  StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History&,
                                                  const Curves& curves) override {
    const Curve* curve = FindCurve(curves, index);
    if (curve == nullptr || curve->last_step() < min_resource_) return std::nullopt;
    const int64_t rung = RungBelow(curve->last_step());
    // A trial that went on from its parent's checkpoint may have no report up to the rung.
    const Curve::Point* mine = curve->At(rung);
    if (mine == nullptr) return std::nullopt;
    if (!problem_.further_maximize.empty()) return WhyBehind(index, rung, curves);
    const std::vector<double> there = BestAtRung(rung, curves);
    const auto count = static_cast<int64_t>(there.size());
    const int64_t better =
        std::count_if(there.begin(), there.end(), [&](double best) { return best < mine->best; });
    if (count < eta_ || better < count / eta_) return std::nullopt;
    return absl::StrFormat("at step %d best %s up to step %d is number %d of %d, and %d go on",
                           curve->last_step(), sense_.Show(mine->best), rung, better + 1, count,
                           count / eta_);
  }

 private:
  std::optional<std::string> WhyBehind(int64_t index, int64_t rung, const Curves& curves) const {
    std::vector<int64_t> others;
    for (int64_t i = 0; i < static_cast<int64_t>(curves.size()); ++i) {
      if (i != index && curves[i].last_step() >= rung) others.push_back(i);
    }
    const auto standing = StandingAt({.trial = index, .step = rung}, others, curves, problem_);
    if (!standing) return std::nullopt;
    const int64_t count = standing->peers + 1;
    const auto better = static_cast<int64_t>(standing->place.better);
    if (count < eta_ || better < count / eta_) return std::nullopt;
    return absl::StrFormat("at step %d %s up to step %d is on front %d, behind %d of %d; %d go on",
                           curves[index].last_step(), standing->values, rung,
                           standing->place.front + 1, better, count, count / eta_);
  }

  // The step of the highest rung at or below `step` ≥ min_resource.
  int64_t RungBelow(int64_t step) const {
    int64_t rung = min_resource_;
    while (rung <= step / eta_) rung *= eta_;
    return rung;
  }

  static std::vector<double> BestAtRung(int64_t rung, const Curves& curves) {
    std::vector<double> bests;
    for (const Curve& curve : curves) {
      if (curve.last_step() < rung) continue;
      if (const Curve::Point* point = curve.At(rung)) bests.push_back(point->best);
    }
    return bests;
  }

  const StopProblem problem_;
  const int64_t eta_;
  const int64_t min_resource_;
  const MetricDirection sense_;
};

SettingInfo AtLeast(const std::string& name, const std::string& value, double min,
                    const std::string& help) {
  return {.name = name,
          .type = SettingInfo::Type::kInt,
          .default_value = value,
          .min = min,
          .max = std::numeric_limits<double>::infinity(),
          .help = help};
}

SHIRABE_REGISTER(StopperInfo,
                 {.name = "asha-stop",
                  .aliases = {"asha"},
                  .help = "Stops all but the best 1/eta of the trials at the steps min_resource, "
                          "eta times that, and so on; saves the most, for many trials.",
                  .settings = {AtLeast("eta", "3", 2, "one in eta goes on, to eta times the steps"),
                               AtLeast("min_resource", "1", 1,
                                       "step at which trials are compared first")},
                  .create = &AshaStop::Create,
                  .several_objectives = true});

}  // namespace
}  // namespace shirabe::suggestion
