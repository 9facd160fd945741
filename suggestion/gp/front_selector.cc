#include "suggestion/gp/front_selector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "base/statistics.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/engine_choice.h"
#include "suggestion/pareto/hypervolume.h"
#include "suggestion/sobol_sequence.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr Index kFrontScenarios = 8;
// Up to so many objectives the hypervolume itself.
constexpr Index kExact = 3;
// The reference lies beyond the worst of the front by this share of its range, and at least by
// so many deviations of the scores.
constexpr double kBeyond = 0.1, kLeastBeyond = 0.25;
constexpr double kAugmented = 0.05;

bool Varies(const VectorXd& values) {
  return values.size() >= 2 && Standardize(values).squaredNorm() > 0;
}

// Signed logarithms in units of the median amount: the sign is what matters, and where it changes.
VectorXd WarpMargins(const VectorXd& margins) {
  const VectorXd amounts = margins.cwiseAbs();
  double unit = Median({amounts.begin(), amounts.end()});
  if (!(unit > 0)) unit = amounts.maxCoeff();
  if (!(unit > 0)) return margins;
  unit = std::max(unit, amounts.maxCoeff() * 1e-300);  // or a quotient is infinite
  VectorXd y = (margins / unit).unaryExpr([](double z) { return std::asinh(z); });
  return y / std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
}

std::vector<double> Row(const MatrixXd& matrix, Index i) {
  std::vector<double> row(matrix.cols());
  for (Index j = 0; j < matrix.cols(); ++j) row[j] = matrix(i, j);
  return row;
}

void AppendExpected(const Inputs& point, Posterior& posterior) {
  posterior.Append(point, posterior.Predict(point).mean.row(0));
}

Individual AsIndividual(Index i, const std::vector<double>& scores) {
  Individual individual{.trial = i, .losses = scores};
  for (double& loss : individual.losses) loss = -loss;
  return individual;
}

}  // namespace

// ---- results -----------------------------------------------------------------------------------

bool FrontResults::Learnable() const {
  for (Index j = 0; j < scores.cols(); ++j) {
    if (Varies(scores.col(j))) return true;
  }
  return false;
}

bool FrontResults::Keeps(Index i) const { return (margins.row(i).array() >= 0).all(); }

FrontResults GatherFront(const History& history, int64_t most_points) {
  const Ranking ranking = RankTrials(history);
  std::vector<int64_t> kept = ranking.ranked;
  const auto most = static_cast<size_t>(most_points);
  if (kept.size() > most) {
    std::vector<int64_t> rest(kept.begin() + most / 2, kept.end());
    std::sort(rest.begin(), rest.end());
    kept.resize(most / 2);
    kept.insert(kept.end(), rest.end() - (most - most / 2), rest.end());
  }
  std::sort(kept.begin(), kept.end());
  FrontResults results;
  const std::vector<double> scores = ScoresOf(history);
  const auto n = static_cast<Index>(kept.size());
  results.scores.resize(n, 1 + static_cast<Index>(history.further_objectives()));
  results.margins.resize(n, static_cast<Index>(history.constraints()));
  for (Index i = 0; i < n; ++i) {
    const TrialSummary& trial = history.trial(kept[i]);
    results.points.push_back(history.point(kept[i]));
    results.numbers.push_back(kept[i] + 1);
    results.scores(i, 0) = scores[kept[i]];
    for (Index j = 1; j < results.scores.cols(); ++j) {
      results.scores(i, j) = -trial.further_losses[j - 1];
    }
    for (Index c = 0; c < results.margins.cols(); ++c) results.margins(i, c) = trial.margins[c];
  }
  for (auto column : results.scores.colwise()) {
    BoundWorst({column.data(), static_cast<size_t>(n)});
  }
  const auto latest = [&history](const std::vector<int64_t>& trials) {
    std::vector<Point> points;
    const auto count = static_cast<int64_t>(trials.size());
    for (int64_t i = std::max<int64_t>(0, count - Results::kMaxOthers); i < count; ++i) {
      points.push_back(history.point(trials[i]));
    }
    return points;
  };
  results.failed = latest(ranking.failed);
  results.pending = latest(ranking.pending);
  return results;
}

// ---- the memo ----------------------------------------------------------------------------------

// How many objectives, then each memo after its length.
std::string FrontMemo::Serialize() const {
  std::string text = absl::StrCat("front ", objectives.size(), ":");
  for (const auto* memos : {&objectives, &constraints}) {
    for (const SurrogateMemo& memo : *memos) {
      const std::string one = memo.Serialize();
      absl::StrAppend(&text, one.size(), ":", one);
    }
  }
  return text;
}

FrontMemo FrontMemo::Parse(const std::string& text, int theta_size) {
  std::string_view left = text;
  const auto number = [&left]() -> std::optional<size_t> {
    const size_t colon = left.substr(0, 24).find(':');
    uint64_t value = 0;
    if (colon == std::string_view::npos ||
        !absl::SimpleAtoi(std::string(left.substr(0, colon)), &value)) {
      return std::nullopt;
    }
    left.remove_prefix(colon + 1);
    return value;
  };
  if (!left.starts_with("front ")) return {};
  left.remove_prefix(6);
  const std::optional<size_t> objectives = number();
  if (!objectives) return {};
  FrontMemo memo;
  while (!left.empty()) {
    const std::optional<size_t> size = number();
    if (!size || *size > left.size()) return {};
    auto& memos = memo.objectives.size() < *objectives ? memo.objectives : memo.constraints;
    memos.push_back(SurrogateMemo::Parse(std::string(left.substr(0, *size)), theta_size));
    left.remove_prefix(*size);
  }
  return memo;
}

// ---- selection ---------------------------------------------------------------------------------

FrontSelector::FrontSelector(const Space& space, const FrontResults& data, Rng rng,
                             FrontMemo& memory)
    : data_(data), layout_(space) {
  const Inputs inputs = layout_.From(data.points);
  const MatrixXd scores = ScoresToLearn(rng);
  memory.objectives.resize(scores.cols());
  memory.constraints.resize(data.margins.cols());
  for (Index j = 0; j < scores.cols(); ++j) {
    if (!Varies(scores.col(j))) continue;
    const auto learned =
        SurrogateCache::Shared().Learn(inputs, scores.col(j), memory.objectives[j]);
    memory.objectives[j] = learned->memo;
    objectives_.push_back(learned->surrogate);
    engines_.push_back(learned->memo.engine);
  }
  for (Index c = 0; c < data.margins.cols(); ++c) {
    constraints_.push_back(
        LearnUnwarped(inputs, WarpMargins(data.margins.col(c)), memory.constraints[c]));
    engines_.push_back(memory.constraints[c].engine);
  }
  if (!data.failed.empty()) {
    std::vector<Point> points = data.points;
    points.insert(points.end(), data.failed.begin(), data.failed.end());
    VectorXd labels = VectorXd::Ones(static_cast<Index>(points.size()));
    labels.tail(static_cast<Index>(data.failed.size())).setConstant(-1);
    feasibility_ = LearnFeasibility(layout_.From(points), labels, engines_.front());
  }
  std::vector<Individual> all;
  for (Index i = 0; i < scores.rows(); ++i) {
    if (data.Keeps(i)) all.push_back(AsIndividual(i, Row(scores, i)));
  }
  for (const Individual& one : FirstFront(all)) front_.push_back(one.trial);
  imagined_.resize(1);
}

MatrixXd FrontSelector::ScoresToLearn(Rng rng) const {
  if (data_.scores.cols() <= kExact) return data_.scores;
  VectorXd weights(data_.scores.cols());
  for (double& weight : weights) weight = -std::log(std::max(rng.Uniform(), 1e-300));
  weights /= weights.sum();
  // Halves: scores may be huge.
  const RowVectorXd best = data_.scores.colwise().maxCoeff() / 2;
  const RowVectorXd range = best - data_.scores.colwise().minCoeff() / 2;
  MatrixXd scores(data_.scores.rows(), 1);
  for (Index i = 0; i < scores.rows(); ++i) {
    double largest = 0, sum = 0;
    for (Index j = 0; j < weights.size(); ++j) {
      if (!(range[j] > 0)) continue;
      const double loss = weights[j] * ((best[j] - data_.scores(i, j) / 2) / range[j]);
      largest = std::max(largest, loss);
      sum += loss;
    }
    scores(i, 0) = -(largest + kAugmented * sum);
  }
  return scores;
}

void FrontSelector::Imagine(const std::vector<Point>& points, Rng rng) {
  if (points.empty() || objectives_.empty()) return;
  if (objectives_[0].posterior.scenarios() == 1) {
    for (Surrogate& objective : objectives_) objective.posterior.Split(kFrontScenarios);
    imagined_.assign(kFrontScenarios, imagined_[0]);
  }
  const SobolSequence sequence(static_cast<int>(objectives_.size()));
  for (const Point& point : points) {
    if (IsCancelled()) return;
    const Inputs inputs = layout_.From({point});
    const bool counts = Chances(AllChances()).Probability(inputs)[0] > 0.5;
    const uint64_t seed = rng.Next();
    MatrixXd y(kFrontScenarios, static_cast<Index>(objectives_.size()));
    for (Index j = 0; j < y.cols(); ++j) {
      Posterior& posterior = objectives_[j].posterior;
      const Posterior::Prediction prediction = posterior.Predict(inputs);
      for (Index k = 0; k < y.rows(); ++k) {
        const double u = sequence.At(static_cast<uint64_t>(k), seed)[j];
        y(k, j) = prediction.mean(0, k) +
                  std::sqrt(prediction.variance[0]) * NormalQuantile(std::clamp(u, 1e-9, 1 - 1e-9));
      }
      posterior.Append(inputs, y.col(j).transpose());
    }
    for (Index k = 0; k < y.rows() && counts; ++k) imagined_[k].push_back(Row(y, k));
    // There, what is expected: it is as much, and less of it is left open.
    for (Posterior& constraint : constraints_) AppendExpected(inputs, constraint);
    if (feasibility_) AppendExpected(inputs, *feasibility_);
  }
}

std::vector<Chance> FrontSelector::AllChances() const {
  std::vector<Chance> chances;
  for (const Posterior& constraint : constraints_) chances.push_back({.posterior = &constraint});
  if (feasibility_) {
    chances.push_back({.posterior = &*feasibility_, .noise = feasibility_->theta().noise()});
  }
  return chances;
}

// What neither the front nor what is imagined in this scenario dominates, beyond the reference.
std::vector<ScoreBox> FrontSelector::FreeBoxes(Index scenario) const {
  const size_t m = objectives_.size();
  std::vector<std::vector<double>> scores = imagined_[scenario];
  for (const Index i : front_) {
    std::vector<double> row;
    for (const Surrogate& objective : objectives_) row.push_back(objective.warp.warped()[i]);
    scores.push_back(std::move(row));
  }
  if (scores.empty()) return {};
  std::vector<Individual> all;
  for (const auto& row : scores) all.push_back(AsIndividual(0, row));
  std::vector<Losses> front;
  for (const Individual& one : FirstFront(all)) front.push_back(one.losses);
  Losses reference(m);
  for (size_t j = 0; j < m; ++j) {
    double least = front[0][j], most = front[0][j];
    for (const Losses& losses : front) {
      least = std::min(least, losses[j]);
      most = std::max(most, losses[j]);
    }
    // With one objective nothing but what is better counts.
    reference[j] = m == 1 ? least : most + std::max(kBeyond * (most - least), kLeastBeyond);
  }
  std::vector<ScoreBox> boxes;
  for (const LossBox& free : NonDominatedBoxes(front, reference)) {
    ScoreBox& box = boxes.emplace_back();
    for (size_t j = 0; j < m; ++j) {
      box.lower.push_back(-free.upper[j]);
      box.upper.push_back(-free.lower[j]);
    }
  }
  return boxes;
}

void FrontSelector::ScoreThere() {
  size_t next = 0;
  for (Surrogate& objective : objectives_) ScoreBy(engines_[next++], objective.posterior);
  for (Posterior& constraint : constraints_) ScoreBy(engines_[next++], constraint);
  if (feasibility_) ScoreBy(engines_.front(), *feasibility_);
}

std::optional<Suggestion> FrontSelector::Next(UnvisitedPoints& unvisited, Rng rng) {
  ScoreThere();
  std::vector<const Posterior*> objectives;
  for (const Surrogate& objective : objectives_) objectives.push_back(&objective.posterior);
  std::vector<std::vector<ScoreBox>> boxes;
  for (Index k = 0; k < static_cast<Index>(imagined_.size()); ++k) {
    std::vector<ScoreBox> free = FreeBoxes(k);
    if (!free.empty()) boxes.push_back(std::move(free));
  }
  // Nothing keeps the constraints yet, in some scenario or in all.
  if (boxes.size() < imagined_.size()) boxes.clear();
  const HypervolumeAcquisition acquisition(objectives, boxes, AllChances());
  const Index around = front_.empty() ? static_cast<Index>(rng.Fork(3).Below(data_.points.size()))
                                      : front_[rng.Fork(3).Below(front_.size())];
  const Inputs centre = layout_.From({data_.points[around]});
  const Index p = centre.x.cols();
  const Region region{{VectorXd::Zero(p), VectorXd::Ones(p)}, centre};
  const PriorAcquisition weighed(acquisition, layout_, static_cast<Index>(data_.points.size()));
  AcquisitionSearch search(layout_, weighed, region, rng.Fork(0));
  rng = rng.Fork(1);
  std::optional<Point> point =
      FirstUntried(search.Run(true), {layout_, objectives_[0].posterior.inputs()}, unvisited, rng);
  if (!point) return std::nullopt;
  std::string why = Explain(*point, Chances(AllChances()));
  return Suggestion{.point = *std::move(point), .explanation = std::move(why)};
}

std::string FrontSelector::Explain(const Point& point, const Chances& chances) const {
  const Inputs inputs = layout_.From({point});
  Index nearest = 0;
  objectives_[0]
      .posterior.Predict(inputs)
      .cross.k.col(0)
      .head(static_cast<Index>(data_.numbers.size()))
      .maxCoeff(&nearest);
  std::string text;
  if (front_.empty()) {
    text = "no trial keeps the constraints yet: the likeliest to do so";
  } else if (data_.scores.cols() == 1) {
    text = "expected to be better than the best that keeps the constraints";
  } else {
    text = absl::StrCat("expected to widen the front of ", front_.size(), " trials most");
  }
  absl::StrAppend(&text, "; nearest to trial ", data_.numbers[nearest]);
  if (!constraints_.empty() || feasibility_) {
    absl::StrAppendFormat(&text, "; %.0f %% likely to count", 100 * chances.Probability(inputs)[0]);
  }
  return text;
}

}  // namespace shirabe::suggestion::gp
