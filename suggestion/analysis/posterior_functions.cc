#include "suggestion/analysis/posterior_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/cancellation.h"
#include "suggestion/analysis/estimate.h"
#include "suggestion/gp/gaussian_process.h"

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::ArrayXf;
using Eigen::ArrayXXf;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::MatrixXf;
using Eigen::VectorXd;

constexpr Index kFeatures = 128;  // M, of each block of a set
constexpr int kSets = 8;
constexpr double kUneven = 0.5;  // trials that stand for the space no better than half as many
constexpr Index kChosen = 128;   // of those, where they are too many to draw θ for
constexpr uint64_t kMaxSigns = 16384;
constexpr uint64_t kMaxCategories = 1024;  // beyond them two may share their signs
constexpr Index kBatch = 64;               // points whose covariances are in memory together
constexpr Index kRowsTogether = 4;         // that a processor multiplies at once
constexpr int kKnots = 2048;               // of a table
constexpr double kEnd = 0.1;               // the share of the range that tells a slope at its end
constexpr double kFreedom = 5;             // degrees, of a Matérn-5/2

// χ² with kFreedom degrees.
double ChiSquared(Rng& rng) {
  double sum = 0;
  for (int i = 0; i < static_cast<int>(kFreedom); ++i) {
    const double z = rng.Normal();
    sum += z * z;
  }
  return sum;
}

constexpr double kLeastDeviation = 1e-9;  // of values to fit to
constexpr Index kLeastSample = 4;

// m, of n trials that are worth e.
Index SampledOf(const Crowding& crowding, Index n) {
  const Index e = crowding.even();
  return std::max(kLeastSample, (e * e + n / 2) / n);
}

// Parameters that a Gaussian process may have, after its observations. Pure; any thread.
//
// The most probable ones of all trials are those of the crowd where the search has stayed: what is
// flat there is taken to be flat everywhere, and nothing but the few trials outside speaks against
// it. So each draw is fitted to another sample of the trials, by the share of the space that each
// stands for. Their spread is both how little the trials tell of the parameters, and how far a
// stationary process is from being true.
//
//   n   trials    e   how many that are spread evenly they are worth (Crowding::even)
//   m   trials drawn for a sample, e · e / n, and 4 at least
//
// Trials that are spread evenly are all drawn for (m = n, each of them perhaps twice, and then
// counted once): J. Huggins, J. Miller, "Reproducible model selection using bagged posteriors",
// Bayesian Analysis 18 (2023). Of trials that crowd, a sample of e has a spread as if the process
// were true; it is the less so the fewer of them stand for the space, since the crowd and the rest
// then differ, so that e is cut by that share, e / n. Samples smaller than what is known give what
// is drawn from them the spread that full ones lack: P. Bickel, F. Götze, W. van Zwet, "Resampling
// fewer than n observations", Statistica Sinica 7 (1997). bench/RESULTS.md has what it does for the
// bands: of trained networks they hold 89 % in place of 75 %.
//
// One for each generator; those of `fitted` are the most probable ones, `y` its targets.
std::vector<gp::Theta> DrawThetas(const gp::InputLayout& layout, const gp::Posterior& fitted,
                                  const VectorXd& y, const std::vector<Rng>& rngs) {
  const gp::Inputs& inputs = fitted.inputs();
  const Crowding crowding(layout, inputs);
  const gp::Theta start = gp::DefaultTheta(inputs.numeric(), inputs.categorical());
  const Index scale = inputs.numeric() + inputs.categorical();
  const Index sampled_count = SampledOf(crowding, inputs.rows());
  std::vector<gp::Theta> drawn;
  for (Rng rng : rngs) {
    const std::vector<Index> rows = crowding.Sample(sampled_count, rng);
    const VectorXd own = y(rows);
    const double mean = own.mean();
    const double deviation =
        std::sqrt((own.array() - mean).square().sum() / static_cast<double>(own.size()));
    if (!(deviation > kLeastDeviation) || IsCancelled()) {
      drawn.push_back(fitted.theta());
      continue;
    }
    const gp::Inputs sampled{inputs.x(rows, Eigen::all), inputs.u(rows, Eigen::all)};
    gp::Theta theta = gp::Fit(sampled, (own.array() - mean) / deviation, start).theta;
    // Of the values as they are: s² and σ².
    theta.values.segment(scale, 2).array() += 2 * std::log(deviation);
    drawn.push_back(std::move(theta));
  }
  return drawn;
}

}  // namespace

LossTable::LossTable(const gp::Warp& warp)
    : low_(warp.warped().minCoeff()), high_(warp.warped().maxCoeff()) {
  const double step = (high_ - low_) / (kKnots - 1);
  for (int i = 0; i < kKnots; ++i) losses_.push_back(-warp.Unwarp(low_ + i * step));
  const int end = static_cast<int>(kEnd * kKnots);
  const double mean = (losses_.back() - losses_.front()) / (high_ - low_);
  const auto gentler = [&](double from, double to) {
    const double slope = (to - from) / (end * step);
    return std::abs(slope) < std::abs(mean) ? slope : mean;
  };
  below_ = gentler(losses_.front(), losses_[end]);
  above_ = gentler(losses_[kKnots - 1 - end], losses_.back());
}

double LossTable::At(double y) const {
  if (!(y > low_)) return losses_.front() + below_ * (y - low_);
  if (y >= high_) return losses_.back() + above_ * (y - high_);
  const double place = (y - low_) / (high_ - low_) * (kKnots - 1);
  const auto knot = std::min<size_t>(static_cast<size_t>(place), kKnots - 2);
  const double share = place - static_cast<double>(knot);
  return losses_[knot] + share * (losses_[knot + 1] - losses_[knot]);
}

std::vector<PosteriorFunctions::Block> PosteriorFunctions::MakeBlocks(const gp::InputLayout& layout,
                                                                      const gp::Theta& theta,
                                                                      Rng& rng) {
  const bool numeric = !layout.numeric().empty(), categorical = !layout.categorical().empty();
  std::vector<Block> blocks;
  const auto add = [&](double variance, bool with_numbers, bool with_categories) {
    // The mean of cos² is a half.
    const double squares = static_cast<double>(kFeatures) / (with_numbers ? 2 : 1);
    Block block{static_cast<float>(std::sqrt(variance / squares)), {}, {}, {}};
    if (with_numbers) FillNumeric(block, layout, theta, rng);
    if (with_categories) FillCategorical(block, layout, theta, rng);
    blocks.push_back(std::move(block));
  };
  if (!numeric || !categorical) {
    add(theta.scale(), numeric, categorical);
    return blocks;
  }
  const double mix = theta.mix(), half = 0.5 * (1 - mix) * theta.scale();
  add(half, true, false);
  add(half, false, true);
  add(mix * theta.scale(), true, true);
  return blocks;
}

void PosteriorFunctions::FillNumeric(Block& block, const gp::InputLayout& layout,
                                     const gp::Theta& theta, Rng& rng) {
  const Eigen::ArrayXd lengths = theta.Lengths(static_cast<int>(layout.numeric().size()));
  block.frequencies.resize(kFeatures, lengths.size());
  block.phases.resize(kFeatures);
  for (Index m = 0; m < kFeatures; ++m) {
    const double spread = std::sqrt(kFreedom / ChiSquared(rng));
    for (Index j = 0; j < lengths.size(); ++j) {
      block.frequencies(m, j) = static_cast<float>(rng.Normal() * spread / lengths[j]);
    }
    block.phases[m] = static_cast<float>(2 * std::numbers::pi * rng.Uniform());
  }
}

void PosteriorFunctions::FillCategorical(Block& block, const gp::InputLayout& layout,
                                         const gp::Theta& theta, Rng& rng) {
  const auto p = static_cast<int>(layout.numeric().size());
  const auto c = static_cast<int>(layout.categorical().size());
  for (int j = 0; j < c; ++j) {
    const double same = std::exp(-std::exp(-theta.lengths_at(p + j)));
    const uint64_t categories = layout.categorical_axis(j).levels();
    // All axes together have no more than kMaxSigns: beyond, categories share theirs.
    const uint64_t most = std::clamp<uint64_t>(kMaxSigns / c, 16, kMaxCategories);
    ArrayXXf signs(kFeatures, static_cast<Index>(std::min(categories, most)));
    for (Index m = 0; m < kFeatures; ++m) {
      const bool shared = rng.Uniform() < same;
      const uint64_t seed = rng.Next();
      for (Index k = 0; k < signs.cols(); ++k) {
        const uint64_t bits = Mix(seed, shared ? 0 : static_cast<uint64_t>(k));
        signs(m, k) = bits % 2 == 0 ? 1.0F : -1.0F;
      }
    }
    block.signs.push_back(std::move(signs));
  }
}

PosteriorFunctions::PosteriorFunctions(const gp::InputLayout& layout,
                                       const gp::Surrogate& surrogate, const Draws& draws,
                                       const Rng& rng)
    : table_(surrogate.warp), rng_(rng), of_space_(draws.of_space) {
  const gp::Posterior& posterior = surrogate.posterior;
  const VectorXd& y = surrogate.warp.warped();
  const gp::Inputs& inputs = posterior.inputs();
  if (draws.count > 0 && inputs.rows() <= draws.most_for_theta) {
    AddModel(layout, posterior, y, {});
    AddModels(layout, posterior, y, draws.count);
    return;
  }
  if (draws.count > 0 && draws.of_space) {
    const Crowding crowding(layout, inputs);
    if (static_cast<double>(crowding.even()) < kUneven * static_cast<double>(inputs.rows())) {
      const std::vector<Index> rows = crowding.Largest(kChosen);
      const gp::Inputs chosen{inputs.x(rows, Eigen::all), inputs.u(rows, Eigen::all)};
      AddModel(layout, posterior, y, {});
      AddModels(layout, gp::Posterior(posterior.theta(), chosen), y(rows), draws.count);
      return;
    }
  }
  AddModel(layout, posterior, y, {draws.count, draws.count == 0 ? 0 : kSets});
}

void PosteriorFunctions::AddModels(const gp::InputLayout& layout, const gp::Posterior& posterior,
                                   const VectorXd& y, int draws) {
  std::vector<Rng> rngs;
  for (uint64_t i = 0; i < kSets; ++i) rngs.push_back(rng_.Fork(0).Fork(i));
  const auto thetas = DrawThetas(layout, posterior, y, rngs);
  for (int i = 0; i < kSets; ++i) {
    const int share = draws / kSets + (i < draws % kSets ? 1 : 0);
    if (share > 0) AddModel(layout, gp::Posterior(thetas[i], posterior.inputs()), y, {share, 1});
  }
}

void PosteriorFunctions::AddModel(const gp::InputLayout& layout, const gp::Posterior& posterior,
                                  const VectorXd& y, Share part) {
  const auto [draws, sets] = part;
  const double deviation = std::sqrt(posterior.theta().noise());
  Model model{{posterior.theta(), posterior.inputs()}, {}, posterior.MeanOf(y), {}, draws};
  MatrixXd targets = (y.array() - model.mean).matrix().replicate(1, draws + 1);
  Rng rng = rng_.Fork(models_.size() + 1);
  Index first = 1;
  for (int i = 0; i < sets; ++i) {
    FeatureSet set{MakeBlocks(layout, posterior.theta(), rng), {}};
    const int share = draws / sets + (i < draws % sets ? 1 : 0);
    set.weights.resize(kFeatures * static_cast<Index>(set.blocks.size()), share);
    for (float& weight : set.weights.reshaped()) weight = static_cast<float>(rng.Normal());
    auto own = targets.middleCols(first, share);
    own -= set.At(posterior.inputs());
    for (double& target : own.reshaped()) target -= deviation * rng.Normal();
    first += share;
    model.sets.push_back(std::move(set));
  }
  const Index rows = (draws + kRowsTogether) / kRowsTogether * kRowsTogether;
  model.weights = MatrixXd::Zero(rows, y.size());
  model.weights.topRows(draws + 1) = posterior.Solve(targets).transpose();
  for (int i = 0; i < draws; ++i) {
    // Evenly between 0 and 1, also those of one model among themselves.
    const double share = std::fmod((draws_ + i + 1) * (std::numbers::phi - 1), 1.0);
    if (of_space_) rough_.push_back(std::sqrt(share) * deviation);
  }
  draws_ += draws;
  models_.push_back(std::move(model));
}

Index PosteriorFunctions::cost() const {
  Index cost = 0;
  for (const Model& model : models_) cost += model.covariances.rows();
  return cost;
}

MatrixXd PosteriorFunctions::FeatureSet::At(const gp::Inputs& points) const {
  MatrixXf features(weights.rows(), points.rows());
  const MatrixXf x = points.x.transpose().cast<float>();
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    auto part = features.middleRows(static_cast<Index>(b) * kFeatures, kFeatures);
    if (block.frequencies.size() > 0) {
      const MatrixXf angles = (block.frequencies * x).colwise() + block.phases.matrix();
      part = block.amplitude * angles.array().cos().matrix();
    } else {
      part.setConstant(block.amplitude);
    }
    for (size_t j = 0; j < block.signs.size(); ++j) {
      const ArrayXXf& signs = block.signs[j];
      for (Index i = 0; i < points.rows(); ++i) {
        const auto category = static_cast<Index>(points.u(i, static_cast<Index>(j)));
        part.col(i).array() *= signs.col(category % signs.cols());
      }
    }
  }
  return (features.transpose() * weights).cast<double>();
}

// Of the same point the same sign, of points that differ at all another one by chance.
void PosteriorFunctions::AddRoughness(const gp::Inputs& points, Eigen::Ref<MatrixXd> values) const {
  constexpr size_t kBits = 64;
  for (Index i = 0; i < points.rows(); ++i) {
    uint64_t signs = 0;
    for (const double x : points.x.row(i)) signs = Mix(signs, std::bit_cast<uint64_t>(x));
    for (const double u : points.u.row(i)) signs = Mix(signs, std::bit_cast<uint64_t>(u));
    for (size_t s = 0; s < rough_.size(); ++s) {
      if (s % kBits == 0) signs = Mix(signs, s);
      const bool up = (signs >> (s % kBits)) % 2 == 0;
      values(i, static_cast<Index>(s) + 1) += up ? rough_[s] : -rough_[s];
    }
  }
}

MatrixXd PosteriorFunctions::Losses(const gp::Inputs& points) const {
  MatrixXd losses = MatrixXd::Zero(points.rows(), count()), k, means;
  for (Index begin = 0; begin < points.rows() && !IsCancelled(); begin += kBatch) {
    const Index size = std::min(kBatch, points.rows() - begin);
    const gp::Inputs batch = points.Rows(begin, size);
    auto part = losses.middleRows(begin, size);
    Index first = 1;
    for (const Model& model : models_) {
      model.covariances.With(batch, k);
      means.noalias() = model.weights * k;
      means.array() += model.mean;
      if (&model == &models_.front()) part.col(0) = means.row(0).transpose();
      part.middleCols(first, model.draws) = means.middleRows(1, model.draws).transpose();
      for (const FeatureSet& set : model.sets) {
        part.middleCols(first, set.weights.cols()) += set.At(batch);
        first += set.weights.cols();
      }
    }
    AddRoughness(batch, part);
  }
  return losses.unaryExpr([this](double y) { return table_.At(y); });
}

}  // namespace shirabe::suggestion::analysis
