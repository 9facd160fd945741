// Stops a trial that is evaluated on folds, or on problem instances, once it is clear that it loses
// to the best: each step is a fold with a loss of its own, and folds are compared in pairs.
//
//   symbol  shape  meaning
//   d_j     n      loss of trial t on fold j less that of the best trial on it
//   r_j     n      rank of |d_j|, from 1; equal ones share the mean of their ranks
//   W       1      Σ_{d_j > 0} r_j + ½ Σ_{d_j = 0} r_j
//   p       1      P(W' ≥ W) where each d_j ≠ 0 has either sign with probability ½
//
//   stop t  ⇔  p < p_threshold  and  mean_j d_j > 0
//
// The one-sided signed-rank test of Wilcoxon (1945), zeros split between the signs (Pratt). The
// distribution is exact, ties included, up to kExact folds, and normal with the same mean and
// variance beyond. The mean is asked as well, as in Optuna's pruner of this name: a trial that
// loses most folds by little and wins one by much is not worse. With n folds p is never below 2^-n,
// so that nothing is stopped before the fourth fold with the default of 0.1. The best trial is the
// one with the least mean over its folds, of those that have ended by themselves.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_format.h"
#include "base/statistics.h"
#include "base/text/number.h"
#include "suggestion/early_stopping.h"
#include "suggestion/known_settings.h"

namespace shirabe::suggestion {
namespace {

constexpr size_t kExact = 64;
double OrWorst(double loss) { return std::isfinite(loss) ? loss : kInfinity; }

// Two folds without a result are equal.
double Difference(double loss, double other) {
  return loss == other ? 0 : OrWorst(loss) - OrWorst(other);
}

// Twice the ranks of |d|, so that shared ranks are integers.
std::vector<int64_t> DoubledRanks(const std::vector<double>& d) {
  std::vector<double> sizes;
  for (const double difference : d) sizes.push_back(std::abs(difference));
  std::sort(sizes.begin(), sizes.end());
  std::vector<int64_t> ranks;
  for (const double difference : d) {
    const auto [first, last] = std::equal_range(sizes.begin(), sizes.end(), std::abs(difference));
    ranks.push_back((first - sizes.begin()) + (last - sizes.begin()) + 1);
  }
  return ranks;
}

// P(the sum of a random half of `ranks` ≥ sum), each in or out with probability ½: the distribution
// of the sum, one rank after the other.
double ExactTail(const std::vector<int64_t>& ranks, int64_t sum) {
  std::vector<double> probability = {1};
  for (const int64_t rank : ranks) {
    std::vector<double> next(probability.size() + rank, 0);
    for (size_t i = 0; i < probability.size(); ++i) {
      next[i] += probability[i] / 2;
      next[i + rank] += probability[i] / 2;
    }
    probability = std::move(next);
  }
  double tail = 0;
  for (auto i = static_cast<int64_t>(probability.size()) - 1; i >= std::max<int64_t>(0, sum); --i) {
    tail += probability[i];
  }
  return tail;
}

double NormalTail(const std::vector<int64_t>& ranks, int64_t sum) {
  double mean = 0, variance = 0;
  for (const int64_t rank : ranks) {
    const auto r = static_cast<double>(rank);
    mean += r / 2;
    variance += r * r / 4;
  }
  // Half a unit of the doubled sum, for continuity.
  return NormalCdf((mean + 0.5 - static_cast<double>(sum)) / std::sqrt(variance));
}

// p of the table above. The zeros' share of W is the same whatever the signs, so it drops out.
double SignedRankTest(const std::vector<double>& d) {
  const std::vector<int64_t> all = DoubledRanks(d);
  std::vector<int64_t> ranks;
  int64_t sum = 0;
  for (size_t j = 0; j < d.size(); ++j) {
    if (d[j] == 0) continue;
    ranks.push_back(all[j]);
    if (d[j] > 0) sum += all[j];
  }
  if (ranks.empty()) return 1;
  return ranks.size() <= kExact ? ExactTail(ranks, sum) : NormalTail(ranks, sum);
}

class Wilcoxon : public Stopper {
 public:
  explicit Wilcoxon(const StopProblem& problem)
      : p_threshold_(*NumberSetting(problem.settings, "p_threshold")),
        start_step_(IntSetting(problem.settings, "start_step")),
        of_means_(*FindSetting(problem.settings, "reports") == "mean") {}

  static StatusOr<std::unique_ptr<Stopper>> Create(const StopProblem& problem) {
    return std::make_unique<Wilcoxon>(problem);
  }

  // Its folds may be the easy ones; on those it was worse than the best.
  static StoppedValue ValueOfStopped(const StopProblem&, double) { return StoppedValue::kPartial; }

  StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History& history,
                                                  const Curves& curves) override {
    const Curve* curve = FindCurve(curves, index);
    const int64_t best = BestEnded(index, history, curves);
    if (curve == nullptr || best < 0) return std::nullopt;
    const std::vector<double> d = Differences(FoldsOf(*curve), FoldsOf(curves[best]));
    if (d.empty() || static_cast<int64_t>(d.size()) < start_step_) return std::nullopt;
    double mean = 0;
    for (const double difference : d) mean += difference / static_cast<double>(d.size());
    const double p = SignedRankTest(d);
    // A mean that is not a number has lost a fold and won another by default: not worse.
    if (!(mean > 0) || !(p < p_threshold_)) return std::nullopt;
    return absl::StrFormat("at step %d worse than trial %d on %d folds, p = %.2g < %g",
                           curve->last_step(), best + 1, d.size(), p, p_threshold_);
  }

 private:
  using Folds = std::map<int64_t, double>;  // losses by step

  double MeanOf(const Curve& curve) const {
    return of_means_ ? curve.last().loss : curve.last().mean;
  }

  // The trial to beat; -1 if there is none.
  int64_t BestEnded(int64_t index, const History& history, const Curves& curves) const {
    int64_t best = -1;
    for (int64_t i = 0; i < history.size(); ++i) {
      const Curve* curve = FindCurve(curves, i);
      const TrialSummary& trial = history.trial(i);
      if (i == index || curve == nullptr || trial.early_stopped) continue;
      if (trial.state != TrialState::kCompleted || !std::isfinite(MeanOf(*curve))) continue;
      if (best < 0 || MeanOf(*curve) < MeanOf(curves[best])) best = i;
    }
    return best;
  }

  // Of a curve too long to be kept whole, the mean of the folds between two that were.
  Folds FoldsOf(const Curve& curve) const {
    Folds folds;
    double sum = 0, count = 0;
    for (const Curve::Point& point : curve.points()) {
      const auto reports = static_cast<double>(point.reports);
      const double total = reports * point.loss;
      folds[point.step] = of_means_ ? (total - sum) / (reports - count) : point.loss;
      sum = total;
      count = reports;
    }
    return folds;
  }

  // On the folds that both have.
  static std::vector<double> Differences(const Folds& folds, const Folds& others) {
    std::vector<double> d;
    for (const auto& [step, loss] : folds) {
      const auto other = others.find(step);
      if (other != others.end()) d.push_back(Difference(loss, other->second));
    }
    return d;
  }

  const double p_threshold_;
  const int64_t start_step_;
  const bool of_means_;
};

SHIRABE_REGISTER(
    StopperInfo,
    {.name = "wilcoxon",
     .help = "Stops a trial that loses fold by fold to the best one (signed-rank test); "
             "for cross-validation, with one report a fold.",
     .settings = {{.name = "p_threshold",
                   .type = SettingInfo::Type::kDouble,
                   .default_value = "0.1",
                   .min = 0,
                   .max = 1,
                   .help = "stop when chance explains the loss with less than this "
                           "probability"},
                  {.name = "reports",
                   .default_value = "fold",
                   .words = {"fold", "mean"},
                   .help = "what a report is: the score of its fold, or the mean of all folds so "
                           "far, which a stopped trial keeps as its value"},
                  StartStep("2")},
     .create = &Wilcoxon::Create,
     .value_of_stopped = &Wilcoxon::ValueOfStopped});

}  // namespace
}  // namespace shirabe::suggestion
