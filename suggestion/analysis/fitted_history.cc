#include "suggestion/analysis/fitted_history.h"

#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "suggestion/gp/scored_results.h"

namespace shirabe::suggestion {
namespace analysis {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr uint64_t kDrawSeed = 2;
constexpr Index kMostForTheta = 200;  // of the space
constexpr double kLargest = 1e150;
constexpr double kExplainsEnough = 0.5, kExplainsMore = 0.1;
// Parameters of the memo are used as they are beyond so many points, up to so many times those that
// they were fitted to.
constexpr Index kAlwaysFitted = 60;
constexpr double kFitGrowth = 1.2;
constexpr Index kMostFitted = 400;
constexpr size_t kFitsKept = 64;

// Of Bayesian optimisation; `auto` puts its choice in a line before it. Empty where it is another
// algorithm's.
gp::SurrogateMemo FittedMemo(const History& history) {
  const int size = gp::Theta::Size(0, 0) + history.space().size();
  gp::SurrogateMemo memo = gp::SurrogateMemo::Parse(history.memo(), size);
  if (memo.fitted_at > 0) return memo;
  const size_t line = history.memo().find('\n');
  if (line == std::string::npos) return memo;
  return gp::SurrogateMemo::Parse(history.memo().substr(line + 1), size);
}

VectorXd ScoresOf(const gp::Results& results) {
  return Eigen::Map<const VectorXd>(results.scores.data(),
                                    static_cast<Index>(results.scores.size()));
}

// Of a thousand points the parameters are fitted to some, evenly: a step costs their cube.
gp::Theta FitSome(const gp::Inputs& inputs, const VectorXd& y, const gp::Theta& start) {
  const Index n = inputs.rows();
  if (n <= kMostFitted) return gp::Fit(inputs, y, start).theta;
  std::vector<Index> some;
  for (Index i = 0; i < kMostFitted; ++i) some.push_back(i * n / kMostFitted);
  return gp::Fit({inputs.x(some, Eigen::all), inputs.u(some, Eigen::all)}, y(some), start).theta;
}

// The last parameters fitted, by a digest of what they were fitted to, so that a page that asks for
// many analyses of one history waits for one fit. Thread-safe.
class FitCache {
 public:
  static FitCache& Shared() {
    static FitCache cache;
    return cache;
  }
  std::optional<gp::Theta> Find(uint64_t digest) {
    const MutexLock lock(mutex_);
    for (const auto& [known, theta] : fits_) {
      if (known == digest) return theta;
    }
    return std::nullopt;
  }
  void Insert(uint64_t digest, const gp::Theta& theta) {
    const MutexLock lock(mutex_);
    fits_.emplace_front(digest, theta);
    if (fits_.size() > kFitsKept) fits_.pop_back();
  }

 private:
  Mutex mutex_;
  std::deque<std::pair<uint64_t, gp::Theta>> fits_ ABSL_GUARDED_BY(mutex_);  // the last one first
};

std::string Bytes(const Eigen::MatrixXd& matrix) {
  return {reinterpret_cast<const char*>(matrix.data()), matrix.size() * sizeof(double)};
}

gp::Theta ThetaFor(const gp::Inputs& inputs, const VectorXd& y, gp::WarpKind kind,
                   const gp::SurrogateMemo& memo) {
  const gp::Theta& known = memo.thetas[static_cast<int>(kind)];
  const bool has_known = memo.fitted_at > 0 && known.values.size() > 0;
  const auto fitted_at = static_cast<double>(memo.fitted_at);
  if (has_known && inputs.rows() > kAlwaysFitted &&
      static_cast<double>(inputs.rows()) < kFitGrowth * fitted_at) {
    return known;
  }
  const gp::Theta start =
      has_known ? known : gp::DefaultTheta(inputs.numeric(), inputs.categorical());
  const uint64_t digest =
      Fingerprint(Bytes(inputs.x) + Bytes(inputs.u) + Bytes(y) + Bytes(start.values));
  if (const auto found = FitCache::Shared().Find(digest)) return *found;
  const gp::Theta theta = FitSome(inputs, y, start);
  if (!IsCancelled()) FitCache::Shared().Insert(digest, theta);
  return theta;
}

gp::Surrogate LearnAs(gp::WarpKind kind, const gp::Inputs& inputs, const VectorXd& scores,
                      const gp::SurrogateMemo& memo) {
  gp::Warp warp(kind, scores);
  gp::Posterior posterior(ThetaFor(inputs, warp.warped(), kind, memo), inputs);
  posterior.SetTargets(warp.warped());
  return {std::move(warp), std::move(posterior)};
}

double ExplainedBy(const gp::Surrogate& surrogate, const VectorXd& scores) {
  const VectorXd others = surrogate.posterior.LeaveOneOut().unaryExpr(
      [&](double y) { return surrogate.warp.Unwarp(y); });
  const double unit = scores.cwiseAbs().maxCoeff();
  const Eigen::ArrayXd centred = scores.array() / unit - (scores / unit).mean();
  return 1 - ((scores - others) / unit).squaredNorm() / centred.square().sum();
}

}  // namespace
}  // namespace analysis

Basis BasisOf(const History& history) {
  Basis basis;
  std::optional<double> first;
  bool differ = false;
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.outside) continue;
    if (trial.state == TrialState::kActive) {
      ++basis.active;
    } else if (trial.state == TrialState::kInfeasible || !std::isfinite(trial.loss)) {
      ++basis.failed;
    } else {
      ++basis.results;
      differ = differ || trial.loss != first.value_or(trial.loss);
      first = first.value_or(trial.loss);
    }
  }
  if (basis.results == 0) {
    basis.too_few = "no trial has a result yet";
  } else if (basis.results == 1) {
    basis.too_few = "one trial has a result; there is nothing to compare it with";
  } else if (!differ) {
    basis.too_few = absl::StrCat("all ", basis.results, " results are the same");
  }
  return basis;
}

namespace analysis {

FittedHistory::FittedHistory(const History& history)
    : basis_(BasisOf(history)), layout_(history.space()) {
  if (!basis_.too_few.empty()) return;
  if (basis_.results < kMinResults) {
    basis_.too_few = absl::StrCat(basis_.results, " trials have a result; it takes ", kMinResults);
    return;
  }
  const gp::Results results = gp::Gather(history, 0);
  if (history.space().size() == 0 || !results.Learnable()) {
    basis_.too_few = "the results differ by no more than rounding";
    return;
  }
  const VectorXd scores = ScoresOf(results);
  if (!(scores.cwiseAbs().maxCoeff() <= kLargest)) {
    basis_.too_few = absl::StrCat("a result is beyond ", kLargest, ": its square is no number");
    return;
  }
  basis_.left_out = basis_.results - static_cast<int64_t>(results.points.size());
  const gp::Inputs inputs = layout_.From(results.points);
  const gp::SurrogateMemo memo = FittedMemo(history);
  surrogate_ = LearnAs(gp::WarpKind::kNone, inputs, scores, memo);
  basis_.explained = ExplainedBy(*surrogate_, scores);
  if (basis_.explained > kExplainsEnough) return;
  gp::Surrogate warped = LearnAs(gp::WarpKind::kYeoJohnson, inputs, scores, memo);
  const double explained = ExplainedBy(warped, scores);
  if (!(explained > basis_.explained + kExplainsMore)) return;
  surrogate_ = std::move(warped);
  basis_.explained = explained;
}

PosteriorFunctions FittedHistory::Draw(int draws) const {
  return PosteriorFunctions(layout_, surrogate(), {.count = draws}, Rng(kDrawSeed));
}

PosteriorFunctions FittedHistory::DrawOfSpace(int draws) const {
  return PosteriorFunctions(layout_, surrogate(),
                            {.count = draws, .most_for_theta = kMostForTheta, .of_space = true},
                            Rng(kDrawSeed));
}

}  // namespace analysis
}  // namespace shirabe::suggestion
