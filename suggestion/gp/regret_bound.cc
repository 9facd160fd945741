#include "suggestion/gp/regret_bound.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/candidate_selector.h"
#include "suggestion/gp/fit_chain.h"
#include "suggestion/gp/scored_results.h"
#include "suggestion/gp/surrogate.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kKappa = 1.96;
constexpr size_t kFewest = 3;  // of fewer results a process knows no length
// Of the stream of the next suggestion, which uses 0 to 2.
constexpr uint64_t kStream = 3;

}  // namespace

std::optional<double> BoundRegret(const History& history, int64_t initial, const Rng& root) {
  SurrogateMemo memory = MemoryOf(history);
  const Results data =
      Gather(history, initial, MostResults(memory.past(), history.size(), history.space().size()));
  if (!data.Learnable() || data.points.size() < kFewest) return std::nullopt;
  const VectorXd scores =
      Eigen::Map<const VectorXd>(data.scores.data(), static_cast<Index>(data.scores.size()));
  const InputLayout layout(history.space());
  const Inputs observed = layout.From(data.points);
  if (memory.fitted_at <= 0) memory = MemoryFrom(history);
  const auto learned = SurrogateCache::Shared().Learn(observed, scores, memory);
  Surrogate surrogate = learned->surrogate;
  const Posterior::Prediction known = surrogate.posterior.Predict(observed);
  const VectorXd lower = known.mean.col(0) - kKappa * known.variance.cwiseSqrt();
  const VectorXd upper = known.mean.col(0) + kKappa * known.variance.cwiseSqrt();
  if (!data.failed.empty()) LearnFailures(layout, data, learned->memo.engine, surrogate.posterior);
  ScoreBy(learned->memo.engine, surrogate.posterior);
  Index best = 0;
  upper.maxCoeff(&best);
  const Inputs start = layout.From({data.points[best]});
  const Index numeric = start.x.cols();
  const Region everywhere{{VectorXd::Zero(numeric), VectorXd::Ones(numeric)}, start};
  const ObjectiveAcquisition bound(
      Utility::kUcb, surrogate.posterior,
      Eigen::RowVectorXd::Constant(1, surrogate.warp.warped().maxCoeff()), {});
  const Rng rng = root.Fork(static_cast<uint64_t>(history.next_ordinal())).Fork(kStream);
  const double most = AcquisitionSearch(layout, bound, everywhere, rng).Run(true).front().value;
  const double above = surrogate.warp.Unwarp(std::max(most, upper[best]));
  const double regret = above - surrogate.warp.Unwarp(lower.maxCoeff());
  if (!std::isfinite(regret)) return std::nullopt;
  return std::max(0.0, regret);
}

}  // namespace shirabe::suggestion::gp
