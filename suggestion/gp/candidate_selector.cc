#include "suggestion/gp/candidate_selector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "base/statistics.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/engine_choice.h"
#include "suggestion/gp/lbfgs.h"
#include "suggestion/sobol_sequence.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr Index kScenarios = 32;
// Noise of more than this share of the function's variance makes single results untrustworthy.
constexpr double kNoisy = 0.05;

}  // namespace

CandidateSelector::CandidateSelector(const SelectorOptions& options, const Space& space,
                                     const Results& data, SurrogateMemo& memory)
    : options_(options),
      data_(data),
      layout_(space),
      scores_(Eigen::Map<const VectorXd>(data.scores.data(), data.scores.size())),
      learned_(SurrogateCache::Shared().Learn(layout_.From(data.points), scores_, memory)),
      surrogate_(learned_->surrogate) {
  memory = learned_->memo;
  FindIncumbent();
  LearnFailures();
}

// By what was observed, or, where that is mostly noise, by what the process makes of it.
void CandidateSelector::FindIncumbent() {
  const Theta& theta = surrogate_.posterior.theta();
  VectorXd y = surrogate_.warp.warped();
  if (theta.noise() > kNoisy * theta.scale()) {
    y = surrogate_.posterior.Mean(surrogate_.posterior.inputs()).col(0);
  }
  incumbent_ = RowVectorXd::Constant(1, y.maxCoeff(&best_));
}

void CandidateSelector::LearnFailures() {
  if (data_.failed.empty()) return;
  feasibility_ = gp::LearnFailures(layout_, data_, learned_->memo.engine, surrogate_.posterior);
}

void CandidateSelector::Imagine(const std::vector<Point>& points, Rng rng) {
  if (points.empty()) return;
  Posterior& posterior = surrogate_.posterior;
  if (posterior.scenarios() == 1) {
    posterior.Split(kScenarios);
    incumbent_ = RowVectorXd::Constant(kScenarios, incumbent_[0]);
  }
  const SobolSequence sequence(1);
  for (const Point& point : points) {
    if (IsCancelled()) return;
    const Inputs inputs = layout_.From({point});
    const Posterior::Prediction prediction = posterior.Predict(inputs);
    const double deviation = std::sqrt(prediction.variance[0]);
    const uint64_t seed = rng.Next();
    RowVectorXd y = prediction.mean.row(0);
    for (Index k = 0; k < y.size(); ++k) {
      const double u = sequence.At(static_cast<uint64_t>(k), seed)[0];
      y[k] += deviation * NormalQuantile(std::clamp(u, 1e-9, 1 - 1e-9));
    }
    posterior.Append(inputs, y);
    incumbent_ = incumbent_.cwiseMax(y);
  }
}

Region CandidateSelector::MakeRegion() const {
  const Inputs centre = layout_.From({data_.points[best_]});
  const Index p = centre.x.cols();
  Region region{{VectorXd::Zero(p), VectorXd::Ones(p)}, centre};
  // Where a coordinate has steps, a box soon holds one step only; a failure nearby may be the end
  // of the road there; and while others run in the box, the next one may look beyond it.
  const bool alone = surrogate_.posterior.scenarios() == 1;
  if (layout_.discrete() || std::isinf(data_.ends.back()) || !alone) return region;
  const int dimensions = layout_.space().size();
  const Eigen::Map<const VectorXd> ends(data_.ends.data(), static_cast<Index>(data_.ends.size()));
  const double side = TrustRegionSide(ends, dimensions, data_.initial);
  region.box = TrustRegion(side, centre.x.row(0).transpose(),
                           surrogate_.posterior.theta().Lengths(static_cast<int>(p)));
  return region;
}

std::optional<Suggestion> CandidateSelector::Next(UnvisitedPoints& unvisited, Rng rng) {
  ScoreBy(learned_->memo.engine, surrogate_.posterior);
  const ObjectiveAcquisition acquisition(options_.utility, surrogate_.posterior, incumbent_,
                                         ChancesOfResult());
  const Region region = MakeRegion();
  const PriorAcquisition weighed(acquisition, layout_, static_cast<Index>(data_.points.size()));
  AcquisitionSearch search(layout_, weighed, region, rng.Fork(0));
  rng = rng.Fork(1);
  std::optional<Point> point = FirstUntried(
      search.Run(options_.climb), {layout_, surrogate_.posterior.inputs()}, unvisited, rng);
  if (!point) return std::nullopt;
  std::string why = Explain(*point);
  return Suggestion{.point = *std::move(point), .explanation = std::move(why)};
}

// A warped score in the units of the objective.
std::string CandidateSelector::Words(double y) const {
  const double score = surrogate_.warp.Unwarp(y);
  return absl::StrFormat("%.4g", options_.maximize ? score : -score);
}

std::vector<Chance> CandidateSelector::ChancesOfResult() const {
  if (!feasibility_) return {};
  return {{.posterior = &*feasibility_, .noise = feasibility_->theta().noise()}};
}

std::string CandidateSelector::Explain(const Point& point) const {
  const Inputs inputs = layout_.From({point});
  const Posterior& posterior = surrogate_.posterior;
  const Posterior::Prediction prediction = posterior.Predict(inputs);
  const double mean = prediction.mean.mean(), deviation = std::sqrt(prediction.variance[0]);
  const double best = incumbent_.mean();
  // Whether it is taken for what is known there, or for what is not.
  const bool explores = prediction.variance[0] > 0.25 * posterior.theta().scale();
  Index nearest = 0;
  prediction.cross.k.col(0).head(static_cast<Index>(data_.numbers.size())).maxCoeff(&nearest);
  const double side = options_.maximize ? deviation : -deviation;
  std::string text = absl::StrCat(
      "predicts ", Words(mean), " (", Words(mean - side), " to ", Words(mean + side),
      "), where trial ", data_.numbers[best_], " has ", Words(surrogate_.warp.warped()[best_]),
      ", ", absl::StrFormat("%.0f", 100 * NormalCdf((mean - best) / deviation)),
      " % likely to beat it; ", explores ? "explores, nearest to trial " : "exploits what trial ",
      data_.numbers[nearest], explores ? "" : " found", "; ", NameOf(learned_->memo.warp));
  if (learned_->memo.engine == EngineKind::kAccelerator) absl::StrAppend(&text, "; by the GPU");
  if (surrogate_.moved) absl::StrAppend(&text, "; fitted again without the GPU, which failed");
  if (layout_.space().priors() != nullptr) absl::StrAppend(&text, "; weighed by the priors");
  if (feasibility_) {
    absl::StrAppendFormat(&text, "; %.0f %% likely to give a result",
                          100 * Chances(ChancesOfResult()).Probability(inputs)[0]);
  }
  return text;
}

Posterior LearnFailures(const InputLayout& layout, const Results& data, EngineKind engine,
                        Posterior& objective) {
  std::vector<Point> points = data.points;
  points.insert(points.end(), data.failed.begin(), data.failed.end());
  const auto results = static_cast<Index>(data.points.size());
  const auto failures = static_cast<Index>(data.failed.size());
  VectorXd labels = VectorXd::Ones(results + failures);
  labels.tail(failures).setConstant(-1);
  Posterior feasibility = LearnFeasibility(layout.From(points), labels, engine);
  const VectorXd by_others = feasibility.LeaveOneOut();
  std::vector<Point> hopeless;
  for (Index i = 0; i < failures; ++i) {
    if (by_others[results + i] < 0) hopeless.push_back(data.failed[i]);
  }
  if (hopeless.empty()) return feasibility;
  const auto count = static_cast<Index>(hopeless.size());
  Extend(engine, objective, layout.From(hopeless), Eigen::MatrixXd::Zero(count, 1));
  return feasibility;
}

}  // namespace shirabe::suggestion::gp
