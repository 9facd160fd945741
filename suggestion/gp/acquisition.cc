#include "suggestion/gp/acquisition.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/statistics.h"
#include "base/text/number.h"
#include "suggestion/gp/normal_distribution.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double kConfidence = 1.96;  // deviations, as scikit-optimize's kappa
// Below it what FillNormals gives beyond kLeastZ could count.
constexpr double kLeastImprovement = 1e-250;

}  // namespace

void Chances::AddTo(const Inputs& points, VectorXd& values, MatrixXd* gradient) const {
  const Slopes slopes = gradient != nullptr ? Slopes::kYes : Slopes::kNo;
  for (const Chance& chance : all_) {
    const Posterior::Prediction prediction = chance.posterior->Score(points, slopes);
    MatrixXd by_mean(points.rows(), 1);
    VectorXd by_variance(points.rows());
    for (Index i = 0; i < points.rows(); ++i) {
      const double variance = prediction.variance[i] + chance.noise;
      const double z = prediction.mean(i, 0) / std::sqrt(variance);
      const Value log = LogCdf(z);
      values[i] += log.value;
      by_mean(i, 0) = log.slope / std::sqrt(variance);
      by_variance[i] = -0.5 * log.slope * z / variance;
    }
    if (gradient == nullptr) continue;
    *gradient += chance.posterior->Pullback(points, prediction, by_mean, by_variance);
  }
}

VectorXd Chances::Probability(const Inputs& points) const {
  VectorXd probability = VectorXd::Ones(points.rows());
  for (const Chance& chance : all_) {
    const Posterior::Prediction prediction = chance.posterior->Predict(points);
    for (Index i = 0; i < points.rows(); ++i) {
      const double variance = prediction.variance[i] + chance.noise;
      probability[i] *= NormalCdf(prediction.mean(i, 0) / std::sqrt(variance));
    }
  }
  return probability;
}

// ---- one objective -----------------------------------------------------------------------------

ObjectiveAcquisition::ObjectiveAcquisition(Utility utility, const Posterior& objective,
                                           RowVectorXd incumbents, std::vector<Chance> chances)
    : utility_(utility),
      objective_(objective),
      incumbents_(std::move(incumbents)),
      chances_(std::move(chances)) {}

ObjectiveAcquisition::Score ObjectiveAcquisition::ScoreOf(double mean, double sigma,
                                                          double incumbent) const {
  if (utility_ == Utility::kUcb) return {mean + kConfidence * sigma, 1, kConfidence};
  const double z = (mean - incumbent) / sigma;
  const Value log = utility_ == Utility::kLogEi ? LogH(z) : LogCdf(z);
  const Score score{log.value, log.slope / sigma, -log.slope * z / sigma};
  if (utility_ == Utility::kLogPi) return score;
  return {score.value + std::log(sigma), score.by_mean, score.by_sigma + 1 / sigma};
}

VectorXd ObjectiveAcquisition::Combine(const Posterior::Prediction& prediction,
                                       Derivatives* derivatives) const {
  const Index points = prediction.mean.rows(), scenarios = prediction.mean.cols();
  VectorXd values(points);
  RowVectorXd score(scenarios), by_mean(scenarios), by_sigma(scenarios);
  for (Index i = 0; i < points; ++i) {
    const double sigma = std::sqrt(prediction.variance[i]);
    for (Index k = 0; k < scenarios; ++k) {
      const Score one = ScoreOf(prediction.mean(i, k), sigma, incumbents_[k]);
      score[k] = one.value;
      by_mean[k] = one.by_mean;
      by_sigma[k] = one.by_sigma;
    }
    // The weight of each scenario in the derivative; the mean of logarithms' exponentials, taken
    // about the largest, or the plain mean.
    RowVectorXd weights = RowVectorXd::Constant(scenarios, 1.0 / static_cast<double>(scenarios));
    if (utility_ == Utility::kUcb) {
      values[i] = score.mean();
    } else {
      const double largest = score.maxCoeff();
      const RowVectorXd shares = (score.array() - largest).exp();
      values[i] = largest + std::log(shares.mean());
      weights = shares / shares.sum();
    }
    if (derivatives == nullptr) continue;
    derivatives->mean.row(i) = weights.cwiseProduct(by_mean);
    derivatives->variance[i] = weights.dot(by_sigma) / (2 * sigma);
  }
  return values;
}

VectorXd Acquisition::EvaluateAll(const Inputs& points) const {
  constexpr Index kBlock = 128;
  const Index block = ScoredElsewhere() ? points.rows() : kBlock;
  VectorXd values(points.rows());
  for (Index begin = 0; begin < points.rows(); begin += block) {
    const Index count = std::min(block, points.rows() - begin);
    values.segment(begin, count) = Evaluate(points.Rows(begin, count));
  }
  return values;
}

VectorXd ObjectiveAcquisition::Compute(const Inputs& points, MatrixXd* gradient) const {
  const Slopes slopes = gradient != nullptr ? Slopes::kYes : Slopes::kNo;
  const Posterior::Prediction prediction = objective_.Score(points, slopes);
  VectorXd values;
  if (gradient == nullptr) {
    values = Combine(prediction, nullptr);
  } else {
    Derivatives derivatives{MatrixXd(points.rows(), objective_.scenarios()),
                            VectorXd(points.rows())};
    values = Combine(prediction, &derivatives);
    *gradient = objective_.Pullback(points, prediction, derivatives.mean, derivatives.variance);
  }
  chances_.AddTo(points, values, gradient);
  return values;
}

Eigen::ArrayXd ObjectiveAcquisition::Lengths() const {
  return objective_.theta().Lengths(objective_.inputs().numeric());
}

// ---- several objectives ------------------------------------------------------------------------

HypervolumeAcquisition::HypervolumeAcquisition(std::vector<const Posterior*> objectives,
                                               const std::vector<std::vector<ScoreBox>>& boxes,
                                               std::vector<Chance> chances)
    : objectives_(std::move(objectives)), chances_(std::move(chances)) {
  const size_t m = objectives_.size();
  for (const std::vector<ScoreBox>& of_scenario : boxes) {
    Scenario scenario;
    std::vector<double>& edges = scenario.edges;
    for (size_t j = 0; j < m; ++j) {
      const auto begin = static_cast<std::ptrdiff_t>(edges.size());
      for (const ScoreBox& box : of_scenario) {
        edges.push_back(box.lower[j]);
        if (std::isfinite(box.upper[j])) edges.push_back(box.upper[j]);
      }
      std::sort(edges.begin() + begin, edges.end());
      edges.erase(std::unique(edges.begin() + begin, edges.end()), edges.end());
      scenario.ends.push_back(static_cast<int>(edges.size()));
    }
    for (const ScoreBox& box : of_scenario) {
      for (size_t j = 0; j < m; ++j) {
        const auto begin = edges.begin() + (j == 0 ? 0 : scenario.ends[j - 1]);
        const auto place = [&](double at) {
          if (!std::isfinite(at)) return static_cast<int>(edges.size());
          const auto end = edges.begin() + scenario.ends[j];
          return static_cast<int>(std::lower_bound(begin, end, at) - edges.begin());
        };
        scenario.sides.push_back(place(box.lower[j]));
        scenario.sides.push_back(place(box.upper[j]));
      }
    }
    scenarios_.push_back(std::move(scenario));
  }
}

struct HypervolumeAcquisition::Scratch {
  std::vector<double> means, sigmas;      // of the point, by objective
  std::vector<double> z, h, cdf, pdf;     // by edge
  std::vector<double> width, cdfs, pdfs;  // E(l) - E(u) of a box, and its derivatives, by objective
};

void HypervolumeAcquisition::ScoreOf(const Scenario& scenario, Scratch& scratch,
                                     Score& score) const {
  auto& [means, sigmas, z, h, cdf, pdf, width, cdfs, pdfs] = scratch;
  const size_t m = objectives_.size(), count = scenario.edges.size();
  for (std::vector<double>* of_edges : {&z, &h, &cdf, &pdf}) of_edges->resize(count + 1);
  for (size_t j = 0, e = 0; j < m; ++j) {
    const double inverse = 1 / sigmas[j];
    for (; e < static_cast<size_t>(scenario.ends[j]); ++e) {
      z[e] = (means[j] - scenario.edges[e]) * inverse;
    }
  }
  FillNormals(z.data(), static_cast<int>(count), {h.data(), cdf.data(), pdf.data()});
  h[count] = cdf[count] = pdf[count] = 0;
  for (size_t j = 0, e = 0; j < m; ++j) {
    for (; e < static_cast<size_t>(scenario.ends[j]); ++e) h[e] *= sigmas[j];
  }
  const bool derivatives = !score.by_mean.empty();
  std::fill(score.by_mean.begin(), score.by_mean.end(), 0);
  std::fill(score.by_sigma.begin(), score.by_sigma.end(), 0);
  double sum = 0;
  for (size_t at = 0; at < scenario.sides.size(); at += 2 * m) {
    double product = 1;
    for (size_t j = 0; j < m; ++j) {
      const int l = scenario.sides[at + 2 * j], u = scenario.sides[at + 2 * j + 1];
      width[j] = h[l] - h[u];
      product *= width[j];
      cdfs[j] = cdf[l] - cdf[u];
      pdfs[j] = pdf[l] - pdf[u];
    }
    sum += product;
    for (size_t j = 0; j < m && derivatives; ++j) {
      double others = 1;
      for (size_t i = 0; i < m; ++i) others *= i == j ? 1 : width[i];
      score.by_mean[j] += others * cdfs[j];
      score.by_sigma[j] += others * pdfs[j];
    }
  }
  if (!(sum > kLeastImprovement)) return LogScoreOf(scenario, scratch, score);
  score.value = std::log(sum);
  for (double& one : score.by_mean) one /= sum;
  for (double& one : score.by_sigma) one /= sum;
}

void HypervolumeAcquisition::LogScoreOf(const Scenario& scenario, const Scratch& scratch,
                                        Score& score) const {
  // log E, or log (E(l) - E(u)), with derivatives by μ and σ.
  struct Improvement {
    double log, by_mean, by_sigma;
  };
  const size_t m = objectives_.size(), n = scenario.sides.size() / (2 * m);
  std::vector<Improvement> at;  // by edge
  for (size_t j = 0; j < m; ++j) {
    const double sigma = scratch.sigmas[j];
    while (at.size() < static_cast<size_t>(scenario.ends[j])) {
      const double z = scratch.z[at.size()];
      const Value h = LogH(z);
      at.push_back({h.value + std::log(sigma), h.slope / sigma, (1 - h.slope * z) / sigma});
    }
  }
  std::vector<Improvement> sides(n * m);
  std::vector<double> logs(n, 0);
  double largest = -kInfinity;
  for (size_t b = 0; b < n; ++b) {
    for (size_t j = 0; j < m; ++j) {
      const int lower = scenario.sides[2 * (b * m + j)],
                upper = scenario.sides[2 * (b * m + j) + 1];
      Improvement& side = sides[b * m + j] = at[lower];
      if (upper < static_cast<int>(at.size())) {
        const Improvement& beyond = at[upper];
        const double ratio = std::min(std::exp(beyond.log - side.log), 1 - 1e-15);
        side.log += std::log1p(-ratio);
        side.by_mean = (side.by_mean - ratio * beyond.by_mean) / (1 - ratio);
        side.by_sigma = (side.by_sigma - ratio * beyond.by_sigma) / (1 - ratio);
      }
      logs[b] += side.log;
    }
    largest = std::max(largest, logs[b]);
  }
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - largest);
  score.value = largest + std::log(sum);
  if (score.by_mean.empty()) return;
  std::fill(score.by_mean.begin(), score.by_mean.end(), 0);
  std::fill(score.by_sigma.begin(), score.by_sigma.end(), 0);
  for (size_t b = 0; b < n; ++b) {
    const double share = std::exp(logs[b] - largest) / sum;
    for (size_t j = 0; j < m; ++j) {
      score.by_mean[j] += share * sides[b * m + j].by_mean;
      score.by_sigma[j] += share * sides[b * m + j].by_sigma;
    }
  }
}

VectorXd HypervolumeAcquisition::Compute(const Inputs& points, MatrixXd* gradient) const {
  const size_t m = objectives_.size(), s = scenarios_.size();
  VectorXd values = VectorXd::Zero(points.rows());
  if (gradient != nullptr) *gradient = MatrixXd::Zero(points.rows(), points.numeric());
  if (s > 0) {
    std::vector<Posterior::Prediction> predictions;
    std::vector<MatrixXd> by_mean(m, MatrixXd(points.rows(), static_cast<Index>(s)));
    std::vector<VectorXd> by_variance(m, VectorXd::Zero(points.rows()));
    for (const Posterior* objective : objectives_) {
      predictions.push_back(
          objective->Score(points, gradient != nullptr ? Slopes::kYes : Slopes::kNo));
    }
    const std::vector<double> of_each(m), wanted(gradient != nullptr ? m : 0);
    Scratch scratch{of_each, of_each, {}, {}, {}, {}, of_each, of_each, of_each};
    std::vector<Score> scores(s, {0, wanted, wanted});
    for (Index i = 0; i < points.rows(); ++i) {
      for (size_t j = 0; j < m; ++j) scratch.sigmas[j] = std::sqrt(predictions[j].variance[i]);
      double largest = -kInfinity;
      for (size_t k = 0; k < s; ++k) {
        const auto column = static_cast<Index>(k);
        for (size_t j = 0; j < m; ++j) scratch.means[j] = predictions[j].mean(i, column);
        ScoreOf(scenarios_[k], scratch, scores[k]);
        largest = std::max(largest, scores[k].value);
      }
      double sum = 0;
      for (const Score& score : scores) sum += std::exp(score.value - largest);
      values[i] = largest + std::log(sum / static_cast<double>(s));
      if (gradient == nullptr) continue;
      for (size_t k = 0; k < s; ++k) {
        const double share = std::exp(scores[k].value - largest) / sum;
        for (size_t j = 0; j < m; ++j) {
          by_mean[j](i, static_cast<Index>(k)) = share * scores[k].by_mean[j];
          by_variance[j][i] += share * scores[k].by_sigma[j] / (2 * scratch.sigmas[j]);
        }
      }
    }
    for (size_t j = 0; j < m && gradient != nullptr; ++j) {
      *gradient += objectives_[j]->Pullback(points, predictions[j], by_mean[j], by_variance[j]);
    }
  }
  chances_.AddTo(points, values, gradient);
  return values;
}

bool HypervolumeAcquisition::ScoredElsewhere() const {
  return std::all_of(objectives_.begin(), objectives_.end(),
                     [](const Posterior* objective) { return objective->has_scorer(); });
}

Eigen::ArrayXd HypervolumeAcquisition::Lengths() const {
  Eigen::ArrayXd least = objectives_[0]->theta().Lengths(objectives_[0]->inputs().numeric());
  for (const Posterior* objective : objectives_) {
    least = least.min(objective->theta().Lengths(objective->inputs().numeric()));
  }
  return least;
}

}  // namespace shirabe::suggestion::gp
