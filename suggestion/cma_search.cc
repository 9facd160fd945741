#include "suggestion/cma_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

CmaDraw CmaSearch::Draw(Rng& rng, const CmaFrame& frame) const {
  CmaDraw draw{.z = Eigen::VectorXd(cma_.dimensions()),
               .categories = Eigen::VectorXi(categories_.size())};
  for (double& z : draw.z) z = rng.Normal();
  draw.z = frame.Turned(draw.z);
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

}  // namespace shirabe::suggestion
