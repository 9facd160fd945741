#include "suggestion/cmaes/cma_search.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/statistics.h"

namespace shirabe::suggestion {
namespace {

using Tier = CmaMember::Tier;

Cma::Options CmaOptionsOf(Eigen::Index dimensions, bool adapt_rates) {
  return {.separable = dimensions >= CmaSearch::kSeparableFrom, .adapt_rates = adapt_rates};
}

Eigen::VectorXd Middle(const CmaShape& shape) {
  return Eigen::VectorXd::Constant(static_cast<Eigen::Index>(shape.continuous.size()), 0.5);
}

// Ranks by tier, then by loss; all infeasible ones are equally bad.
Eigen::VectorXd RanksByLoss(const std::vector<CmaMember>& members) {
  std::vector<std::pair<Tier, double>> order;
  for (const CmaMember& member : members) {
    order.emplace_back(member.tier, member.tier == Tier::kInfeasible ? 0 : member.loss);
  }
  std::vector<std::pair<Tier, double>> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> places;
  for (const auto& pair : order) {
    const auto place = std::lower_bound(sorted.begin(), sorted.end(), pair);
    places.push_back(static_cast<double>(place - sorted.begin()));
  }
  return AverageRanks(places);
}

}  // namespace

int64_t DefaultPopulation(int parameters) {
  return 4 + static_cast<int64_t>(3 * std::log(static_cast<double>(std::max(1, parameters))));
}

CmaSearch::CmaSearch(CmaShape shape, const CmaOptions& options)
    : shape_(std::move(shape)),
      options_(options),
      plan_({.population = options.population, .sigma = options.sigma}),
      restarts_(options.restarts, plan_),
      cma_({.mean = Middle(shape_), .sigma = options.sigma},
           CmaOptionsOf(Middle(shape_).size(), options.adapt_rates)),
      categories_(shape_.categories),
      progress_(cma_.dimensions(), plan_.population) {}

void CmaSearch::WarmStartFrom(const CmaSource& source, const Eigen::MatrixXi& categories) {
  Begin(WarmStart(source, options_.sigma));
  const std::vector<int> promising = Promising(source.losses);
  Eigen::MatrixXi best(categories.rows(), promising.size());
  for (size_t i = 0; i < promising.size(); ++i) {
    best.col(static_cast<Eigen::Index>(i)) = categories.col(promising[i]);
  }
  categories_.Begin(best);
}

void CmaSearch::Begin(const CmaStart& start) {
  cma_ = Cma(start, CmaOptionsOf(start.mean.size(), options_.adapt_rates));
  categories_ = CmaCategories(shape_.categories);
  progress_ = CmaProgress(cma_.dimensions(), plan_.population);
}

CmaDraw CmaSearch::Draw(Rng& rng, const OrthogonalSampler& sampler) const {
  CmaDraw draw{.z = Eigen::VectorXd(cma_.dimensions()),
               .categories = Eigen::VectorXi(categories_.size())};
  for (double& z : draw.z) z = rng.Normal();
  draw.z = sampler.Turned(draw.z);
  for (int k = 0; k < categories_.size(); ++k) {
    draw.categories[k] = categories_.Draw(k, rng.Uniform());
  }
  draw.x = cma_.At(draw.z);
  return draw;
}

CmaDraw CmaSearch::Injected(const Eigen::VectorXd& x, const Eigen::VectorXi& categories) const {
  return {.z = cma_.Injected(x), .x = x, .categories = categories};
}

void CmaSearch::Tell(const std::vector<CmaMember>& members, int64_t trials, const EdgesOf& edges) {
  trials_ += trials;
  if (members.size() < 2) return;  // one alone is neither better nor worse
  Eigen::MatrixXd z(cma_.dimensions(), members.size());
  std::vector<double> losses;
  for (size_t i = 0; i < members.size(); ++i) {
    z.col(static_cast<Eigen::Index>(i)) = members[i].draw.z;
    if (members[i].tier == Tier::kCompleted) losses.push_back(members[i].loss);
  }
  const Eigen::VectorXd ranks = Keys(members);
  TellCategories(members, ranks);
  cma_.Tell(z, ranks);
  progress_.Observe(std::move(losses));
  ApplyMargin(edges);
}

// The ranks of the members with the penalty for what lies outside.
Eigen::VectorXd CmaSearch::Keys(const std::vector<CmaMember>& members) const {
  const Eigen::VectorXd ranks = RanksByLoss(members);
  const Eigen::VectorXd deviations = cma_.Deviations();
  const double weight = static_cast<double>(members.size()) / cma_.dimensions();
  std::vector<double> keys;
  for (size_t i = 0; i < members.size(); ++i) {
    const Eigen::VectorXd& x = members[i].draw.x;
    const Eigen::VectorXd outside = x - x.cwiseMax(0).cwiseMin(1);
    const double penalty = outside.cwiseQuotient(deviations).squaredNorm();
    keys.push_back(ranks[static_cast<Eigen::Index>(i)] + weight * penalty);
  }
  return AverageRanks(keys);
}

void CmaSearch::TellCategories(const std::vector<CmaMember>& members,
                               const Eigen::VectorXd& ranks) {
  const CmaWeights weights = MakeCmaWeights(ranks, cma_.dimensions(), /*separable=*/false);
  if (categories_.size() == 0 || !weights.informative) return;
  Eigen::MatrixXi chosen(categories_.size(), members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    chosen.col(static_cast<Eigen::Index>(i)) = members[i].draw.categories;
  }
  categories_.Tell(chosen, weights.w);
}

void CmaSearch::ApplyMargin(const EdgesOf& edges) {
  const double alpha = 1 / (static_cast<double>(plan_.population) * cma_.dimensions());
  const Eigen::VectorXd deviations = cma_.Deviations();
  for (int axis = 0; axis < cma_.dimensions(); ++axis) {
    if (shape_.continuous[axis]) continue;
    const CmaMarginal now{.mean = cma_.mean()[axis], .deviation = deviations[axis]};
    const CmaMarginal next = WithMargin(now, edges(axis, now.mean), alpha);
    if (next.deviation > 0) cma_.Place(axis, next.mean, next.deviation / now.deviation);
  }
}

bool CmaSearch::RunEnded() const {
  if (!restarts_.allowed()) return false;
  if (cma_.broken() || progress_.Ended()) return true;
  if (plan_.limit > 0 && trials_ >= plan_.limit) return true;
  const Eigen::VectorXd deviations = cma_.Deviations();
  std::vector<double> continuous;
  for (int axis = 0; axis < cma_.dimensions(); ++axis) {
    if (shape_.continuous[axis]) continuous.push_back(deviations[axis]);
  }
  return CmaProgress::Narrow(Eigen::Map<const Eigen::VectorXd>(
      continuous.data(), static_cast<Eigen::Index>(continuous.size())));
}

void CmaSearch::Restart(Rng& rng) {
  plan_ = restarts_.Next(trials_, rng);
  trials_ = 0;
  Eigen::VectorXd mean(cma_.dimensions());
  for (double& m : mean) m = rng.Uniform();
  Begin({.mean = mean, .sigma = plan_.sigma});
}

void CmaSearch::Fields(CmaRecord& record) {
  record.Integer(trials_);
  record.Integer(plan_.population);
  record.Number(plan_.sigma);
  record.Integer(plan_.limit);
  if (record.reads()) progress_ = CmaProgress(cma_.dimensions(), plan_.population);
  restarts_.Fields(record);
  cma_.Fields(record);
  categories_.Fields(record);
  progress_.Fields(record);
  if (record.reads() && !(plan_.population > 0 && plan_.sigma > 0)) record.Reject();
}

namespace {

constexpr int kOneIn = 10;       // 1/γ
constexpr double kAround = 0.1;  // α

// Σ* = (1/n) Σ (x − m*)(x − m*)ᵀ + α² I.
Eigen::MatrixXd Covariance(const Eigen::MatrixXd& best, const Eigen::VectorXd& mean) {
  const Eigen::MatrixXd centred = best.colwise() - mean;
  Eigen::MatrixXd covariance = centred * centred.transpose() / static_cast<double>(best.cols());
  covariance.diagonal().array() += kAround * kAround;
  return covariance;
}

}  // namespace

std::vector<int> Promising(const std::vector<double>& losses) {
  std::vector<int> order(losses.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t kept = std::min(losses.size(), std::max<size_t>(1, losses.size() / kOneIn));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(),
      [&losses](int a, int b) { return losses[a] != losses[b] ? losses[a] < losses[b] : a < b; });
  order.resize(kept);
  return order;
}

CmaStart WarmStart(const CmaSource& source, double sigma) {
  const Eigen::Index d = source.points.rows();
  const std::vector<int> promising = Promising(source.losses);
  if (promising.empty()) return {.mean = Eigen::VectorXd::Constant(d, 0.5), .sigma = sigma};
  if (source.losses.size() < kOneIn) {
    return {.mean = source.points.col(promising[0]), .sigma = sigma};
  }
  Eigen::MatrixXd best(d, promising.size());
  for (size_t i = 0; i < promising.size(); ++i) {
    best.col(static_cast<Eigen::Index>(i)) = source.points.col(promising[i]);
  }
  const Eigen::VectorXd mean = best.rowwise().mean();
  const Eigen::MatrixXd covariance = Covariance(best, mean);
  // σ^2d = det Σ*, through the Cholesky factor so that many dimensions do not underflow.
  const Eigen::MatrixXd factor = covariance.llt().matrixL();
  const double scale = std::exp(factor.diagonal().array().log().mean());
  return {.mean = mean, .sigma = scale, .covariance = covariance / (scale * scale)};
}

namespace {

// Pr(N(0, 1) > t).
double Beyond(double t) { return NormalCdf(-t); }

// ξ: the reverse of Beyond.
double BeyondQuantile(double p) { return -NormalQuantile(p); }

// At an end: at least `alpha` on the other side of the edge.
CmaMarginal AtEnd(const CmaMarginal& marginal, const CmaEdges& edges, double alpha) {
  const double farthest = BeyondQuantile(alpha) * marginal.deviation;
  CmaMarginal changed = marginal;
  if (edges.above) changed.mean = std::max(marginal.mean, *edges.above - farthest);
  if (edges.below) changed.mean = std::min(marginal.mean, *edges.below + farthest);
  return changed;
}

// Within: raises each side to alpha / 2, takes what that adds from the probabilities above their
// bounds, in proportion, and solves for the mean and deviation that have these probabilities.
CmaMarginal Inside(const CmaMarginal& marginal, const CmaEdges& edges, double alpha) {
  const double least = alpha / 2;
  const double below = Beyond((marginal.mean - *edges.below) / marginal.deviation);
  const double above = Beyond((*edges.above - marginal.mean) / marginal.deviation);
  if (below >= least && above >= least) return marginal;
  const double within = 1 - below - above;
  const double raised_below = std::max(below, least);
  const double raised_above = std::max(above, least);
  const double sum = raised_below + raised_above + within;
  const double share = (1 - sum) / (sum - 3 * least);
  const double low = BeyondQuantile(raised_below + share * (raised_below - least));
  const double high = BeyondQuantile(raised_above + share * (raised_above - least));
  return {.mean = (*edges.below * high + *edges.above * low) / (low + high),
          .deviation = (*edges.above - *edges.below) / (low + high)};
}

}  // namespace

CmaMarginal WithMargin(const CmaMarginal& marginal, const CmaEdges& edges, double alpha) {
  if (edges.below && edges.above) return Inside(marginal, edges, alpha);
  return AtEnd(marginal, edges, alpha);
}

namespace {

constexpr double kFlat = 1e-11;
constexpr double kNarrow = 1e-9;

// b - a ≥ 0 for finite numbers, without overflow to infinity.
double Distance(double a, double b) { return std::min(b - a, std::numeric_limits<double>::max()); }

}  // namespace

CmaProgress::CmaProgress(int dimensions, int64_t population) {
  const auto slow = static_cast<int64_t>(
      std::ceil(30.0 * dimensions / static_cast<double>(std::max<int64_t>(1, population))));
  flat_after_ = 10 + slow;
  stagnant_after_ = 120 + slow;
}

void CmaProgress::Observe(std::vector<double> losses) {
  if (losses.empty()) return;
  const auto [least, greatest] = std::minmax_element(losses.begin(), losses.end());
  const double best = *least;
  latest_ = Distance(best, *greatest);
  range_ = std::max(range_, Distance(best, UpperMedian(losses)));
  if (static_cast<int64_t>(bests_.size()) == stagnant_after_) bests_.erase(bests_.begin());
  bests_.push_back(best);
}

bool CmaProgress::Ended() const { return Flat() || Stagnant(); }

bool CmaProgress::Flat() const {
  if (static_cast<int64_t>(bests_.size()) < flat_after_) return false;
  const auto [least, greatest] = std::minmax_element(bests_.end() - flat_after_, bests_.end());
  return std::max(Distance(*least, *greatest), latest_) <= kFlat * range_;
}

bool CmaProgress::Stagnant() const {
  if (static_cast<int64_t>(bests_.size()) < stagnant_after_) return false;
  const int64_t part = stagnant_after_ * 3 / 10;
  return UpperMedian(std::vector(bests_.end() - part, bests_.end())) >=
         UpperMedian(std::vector(bests_.begin(), bests_.begin() + part));
}

bool CmaProgress::Narrow(const Eigen::VectorXd& deviations) {
  return deviations.size() > 0 && deviations.maxCoeff() < kNarrow;
}

void CmaProgress::Fields(CmaRecord& record) {
  record.List(bests_, stagnant_after_);
  record.Number(range_);
  record.Number(latest_);
}

namespace {

// A generation beyond this hardly ever ends; doubling must not overflow either.
constexpr int64_t kMaxPopulation = 1 << 20;

}  // namespace

CmaRunPlan CmaRestarts::Next(int64_t trials, Rng& rng) {
  (small_ ? small_trials_ : large_trials_) += trials;
  if (!small_) latest_large_ = trials;
  const double u_population = rng.Uniform();
  const double u_sigma = rng.Uniform();
  small_ = strategy_ == Strategy::kBipop && small_trials_ < large_trials_ &&
           large_population_ > first_.population;
  if (!small_) {
    large_population_ = std::min(2 * large_population_, kMaxPopulation);
    return {.population = large_population_, .sigma = first_.sigma};
  }
  const auto base = static_cast<double>(first_.population);
  const double ratio = static_cast<double>(large_population_) / (2 * base);
  const double population = base * std::pow(ratio, u_population * u_population);
  return {.population = std::max(first_.population, static_cast<int64_t>(population)),
          .sigma = first_.sigma * std::pow(10, -2 * u_sigma),
          .limit = std::max(first_.population, latest_large_ / 2)};
}

void CmaRestarts::Fields(CmaRecord& record) {
  record.Integer(large_population_);
  record.Integer(large_trials_);
  record.Integer(small_trials_);
  record.Integer(latest_large_);
  int64_t small = small_ ? 1 : 0;
  record.Integer(small);
  small_ = small == 1;
}

}  // namespace shirabe::suggestion
