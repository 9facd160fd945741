// Bayesian optimisation: a Gaussian process learns from the trials so far which points promise
// most. For trials that cost minutes or more, up to some twenty parameters and a thousand trials.
//
// One suggestion, step by step:
//   1. gather   results, failures and running trials from the history     gp/results.h
//   2. learn    warp and process of the objective, and of feasibility     gp/surrogate.h
//   3. imagine  what the running trials may give, in scenarios            Chooser::Imagine
//   4. search   the largest log expected improvement in a trust region    gp/search.h
//   5. take     the best point that is not tried yet                      Chooser::FirstUntried
//   6. explain  and imagine its result too, for the next of the batch
//
// The first points, while there is nothing to learn from, are quasi-random; every other one of them
// is the best of an earlier experiment, where there are any (spec.shirabe.warmStart). In the end,
// where results are noisy, it says which trial is the best in the mean (gp/recommend.h).
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "suggestion/algorithm.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/normal_distribution.h"
#include "suggestion/gp/scored_results.h"
#include "suggestion/gp/surrogate.h"
#include "suggestion/gp/trust_region.h"
#include "suggestion/sobol_sequence.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

using Eigen::Index;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr Index kScenarios = 32;
// Noise of more than this share of the function's variance makes single results untrustworthy.
constexpr double kNoisy = 0.05;
// Points nearer than this in every coordinate teach nothing new.
constexpr double kTooClose = 1e-9, kAside = 1e-3;

struct Config {
  gp::Utility utility = gp::Utility::kLogEi;
  bool climb = true;
  int64_t initial = 5;
  bool maximize = false;
  std::string replaces;  // the base_estimator that it answers for, "" where that is GP
};

// Chooses the points of one proposal, each in the knowledge of those before it.
class CandidateSelector {
 public:
  CandidateSelector(const Config& config, const Space& space, const gp::Results& data,
                    gp::SurrogateMemo& memory);

  // nullopt if every point has been tried.
  std::optional<Suggestion> Next(UnvisitedPoints& unvisited, Rng rng);
  // In several scenarios from now on, because the trials at these points are still running.
  void Imagine(const std::vector<Point>& points, Rng rng);

 private:
  void FindIncumbent();
  void LearnFailures();
  gp::Region MakeRegion() const;
  std::optional<Point> FirstUntried(const std::vector<gp::Ranked>& ranked,
                                    UnvisitedPoints& unvisited, Rng& rng);
  bool TooClose(const gp::Inputs& point) const;
  std::string Explain(const Point& point, const gp::Acquisition& acquisition) const;
  std::string Words(double y) const;

  const Config& config_;
  const gp::Results& data_;
  gp::InputLayout layout_;
  VectorXd scores_;
  gp::SurrogateCache::Answer learned_;
  gp::Surrogate surrogate_;  // the same, grown by what is imagined
  std::optional<gp::Posterior> feasibility_;
  Index best_ = 0;         // the incumbent among data_.points
  RowVectorXd incumbent_;  // its y, or what a scenario imagines to be better
};

CandidateSelector::CandidateSelector(const Config& config, const Space& space,
                                     const gp::Results& data, gp::SurrogateMemo& memory)
    : config_(config),
      data_(data),
      layout_(space),
      scores_(Eigen::Map<const VectorXd>(data.scores.data(), data.scores.size())),
      learned_(gp::SurrogateCache::Shared().Learn(layout_.From(data.points), scores_, memory)),
      surrogate_(learned_->surrogate) {
  memory = learned_->memory;
  FindIncumbent();
  LearnFailures();
}

// By what was observed, or, where that is mostly noise, by what the process makes of it.
void CandidateSelector::FindIncumbent() {
  const gp::Theta& theta = surrogate_.posterior.theta();
  VectorXd y = surrogate_.warp.warped();
  if (theta.noise() > kNoisy * theta.scale()) {
    y = surrogate_.posterior.Predict(surrogate_.posterior.inputs()).mean.col(0);
  }
  incumbent_ = RowVectorXd::Constant(1, y.maxCoeff(&best_));
}

// A failure among successes was bad luck. One among failures is a place where nothing is to be
// gained: a result in the middle of all, y = 0, whatever the successes beside it promise.
void CandidateSelector::LearnFailures() {
  if (data_.failed.empty()) return;
  std::vector<Point> points = data_.points;
  points.insert(points.end(), data_.failed.begin(), data_.failed.end());
  VectorXd labels = VectorXd::Ones(static_cast<Index>(points.size()));
  labels.tail(static_cast<Index>(data_.failed.size())).setConstant(-1);
  feasibility_ = gp::LearnFeasibility(layout_.From(points), labels);
  const VectorXd by_others = feasibility_->LeaveOneOut();
  const Index results = surrogate_.warp.warped().size();
  for (size_t i = 0; i < data_.failed.size(); ++i) {
    if (by_others[results + static_cast<Index>(i)] >= 0) continue;
    surrogate_.posterior.Append(layout_.From({data_.failed[i]}), RowVectorXd::Constant(1, 0));
  }
}

void CandidateSelector::Imagine(const std::vector<Point>& points, Rng rng) {
  if (points.empty()) return;
  gp::Posterior& posterior = surrogate_.posterior;
  if (posterior.scenarios() == 1) {
    posterior.Split(kScenarios);
    incumbent_ = RowVectorXd::Constant(kScenarios, incumbent_[0]);
  }
  const SobolSequence sequence(1);
  for (const Point& point : points) {
    if (IsCancelled()) return;
    const gp::Inputs inputs = layout_.From({point});
    const gp::Posterior::Prediction prediction = posterior.Predict(inputs);
    const double deviation = std::sqrt(prediction.variance[0]);
    const uint64_t seed = rng.Next();
    RowVectorXd y = prediction.mean.row(0);
    for (Index k = 0; k < y.size(); ++k) {
      const double u = sequence.At(static_cast<uint64_t>(k), seed)[0];
      y[k] += deviation * gp::Quantile(std::clamp(u, 1e-9, 1 - 1e-9));
    }
    posterior.Append(inputs, y);
    incumbent_ = incumbent_.cwiseMax(y);
  }
}

gp::Region CandidateSelector::MakeRegion() const {
  const gp::Inputs centre = layout_.From({data_.points[best_]});
  const Index p = centre.x.cols();
  gp::Region region{{VectorXd::Zero(p), VectorXd::Ones(p)}, centre};
  // Where a coordinate has steps, a box soon holds one step only; a failure nearby may be the end
  // of the road there; and while others run in the box, the next one may look beyond it.
  const bool alone = surrogate_.posterior.scenarios() == 1;
  if (layout_.discrete() || std::isinf(data_.ends.back()) || !alone) return region;
  const int dimensions = layout_.space().size();
  const Eigen::Map<const VectorXd> ends(data_.ends.data(), static_cast<Index>(data_.ends.size()));
  const double side = gp::TrustRegionSide(ends, dimensions, data_.initial);
  region.box = gp::TrustRegion(side, centre.x.row(0).transpose(),
                               surrogate_.posterior.theta().Lengths(static_cast<int>(p)));
  return region;
}

std::optional<Suggestion> CandidateSelector::Next(UnvisitedPoints& unvisited, Rng rng) {
  const gp::Acquisition acquisition(config_.utility, surrogate_.posterior, incumbent_,
                                    feasibility_ ? &*feasibility_ : nullptr);
  const gp::Region region = MakeRegion();
  gp::Search search(layout_, acquisition, region, rng.Fork(0));
  rng = rng.Fork(1);
  std::optional<Point> point = FirstUntried(search.Run(config_.climb), unvisited, rng);
  if (!point) return std::nullopt;
  std::string why = Explain(*point, acquisition);
  return Suggestion{.point = *std::move(point), .explanation = std::move(why)};
}

bool CandidateSelector::TooClose(const gp::Inputs& point) const {
  const gp::Inputs& seen = surrogate_.posterior.inputs();
  for (Index i = 0; i < seen.rows(); ++i) {
    const bool same_x =
        point.x.cols() == 0 || (seen.x.row(i) - point.x.row(0)).cwiseAbs().maxCoeff() < kTooClose;
    if (same_x && (seen.u.row(i).array() == point.u.row(0).array()).all()) return true;
  }
  return false;
}

std::optional<Point> CandidateSelector::FirstUntried(const std::vector<gp::Ranked>& ranked,
                                                     UnvisitedPoints& unvisited, Rng& rng) {
  const Space& space = layout_.space();
  for (const gp::Ranked& candidate : ranked) {
    gp::Inputs inputs = layout_.From({candidate.point});
    if (!space.cardinality().finite && TooClose(inputs)) {
      for (double& x : inputs.x.row(0)) x = std::clamp(x + kAside * rng.Normal(), 0.0, 1.0);
    }
    const Point point = space.Canonical(layout_.ToPoint(inputs, 0));
    if (unvisited.Claim(point)) return point;
  }
  return unvisited.Draw(rng);
}

// A warped score in the units of the objective.
std::string CandidateSelector::Words(double y) const {
  const double score = surrogate_.warp.Unwarp(y);
  return absl::StrFormat("%.4g", config_.maximize ? score : -score);
}

std::string CandidateSelector::Explain(const Point& point,
                                       const gp::Acquisition& acquisition) const {
  const gp::Inputs inputs = layout_.From({point});
  const gp::Posterior& posterior = surrogate_.posterior;
  const gp::Posterior::Prediction prediction = posterior.Predict(inputs);
  const double mean = prediction.mean.mean(), deviation = std::sqrt(prediction.variance[0]);
  const double best = incumbent_.mean();
  // Whether it is taken for what is known there, or for what is not.
  const bool explores = prediction.variance[0] > 0.25 * posterior.theta().scale();
  Index nearest = 0;
  prediction.cross.k.col(0).head(static_cast<Index>(data_.numbers.size())).maxCoeff(&nearest);
  std::string text = absl::StrCat(
      "predicts ", Words(mean), " (", Words(mean - deviation), " to ", Words(mean + deviation),
      "), best so far ", Words(surrogate_.warp.warped()[best_]), ", ",
      absl::StrFormat("%.0f", 100 * gp::Cdf((mean - best) / deviation)), " % likely to beat it; ",
      explores ? "explores, nearest to trial " : "exploits what trial ", data_.numbers[nearest],
      explores ? "" : " found", "; ", gp::NameOf(learned_->memory.warp));
  if (feasibility_) {
    absl::StrAppendFormat(&text, "; %.0f %% likely to give a result",
                          100 * acquisition.Feasibility(inputs)[0]);
  }
  return text;
}

// ---- the algorithm ------------------------------------------------------------------------------

class Bayesian : public Algorithm {
 public:
  Bayesian(const Config& config, int dimensions) : config_(config), initial_design_(dimensions) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem);
  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override;
  StatusOr<std::optional<Recommendation>> Recommend(const History& history) const override;

 private:
  std::optional<Suggestion> First(const History& history, UnvisitedPoints& unvisited,
                                  uint64_t ordinal, const Rng& root) const;

  Config config_;
  InitialDesign initial_design_;
};

// The best points of earlier experiments, each by its rank among those of its own, whose losses
// may have another scale.
std::vector<const PriorTrial*> ByRank(const std::vector<PriorTrial>& prior) {
  std::vector<const PriorTrial*> order;
  for (const PriorTrial& trial : prior) order.push_back(&trial);
  std::stable_sort(order.begin(), order.end(),
                   [](const PriorTrial* a, const PriorTrial* b) { return a->loss < b->loss; });
  std::map<int, int64_t> ranked;  // so many of each source
  std::map<const PriorTrial*, int64_t> rank;
  for (const PriorTrial* trial : order) rank[trial] = ranked[trial->source]++;
  std::stable_sort(order.begin(), order.end(), [&rank](const PriorTrial* a, const PriorTrial* b) {
    return std::pair(rank[a], a->source) < std::pair(rank[b], b->source);
  });
  return order;
}

std::optional<Suggestion> FromEarlier(const History& history, UnvisitedPoints& unvisited) {
  for (const PriorTrial* trial : ByRank(history.prior())) {
    if (!unvisited.Claim(trial->point)) continue;
    return Suggestion{.point = trial->point,
                      .explanation = "among the best of an earlier experiment"};
  }
  return std::nullopt;
}

std::optional<Suggestion> Bayesian::First(const History& history, UnvisitedPoints& unvisited,
                                          uint64_t ordinal, const Rng& root) const {
  if (ordinal % 2 == 0) {
    if (std::optional<Suggestion> earlier = FromEarlier(history, unvisited)) return earlier;
  }
  return initial_design_.Next(history.space(), ordinal, root, unvisited);
}

gp::SurrogateMemo MemoryOf(const History& history) {
  return gp::SurrogateMemo::Parse(history.memo, gp::Theta::Size(0, 0) + history.space().size());
}

StatusOr<Proposal> Bayesian::Propose(const History& history, int count, const Rng& root) {
  const gp::Results data = gp::Gather(history, config_.initial);
  gp::SurrogateMemo memory = MemoryOf(history);
  UnvisitedPoints unvisited(history);
  std::vector<Suggestion> suggestions;
  const bool learnable = data.Learnable();
  std::optional<CandidateSelector> chooser;
  std::vector<Point> pending = data.pending;
  while (static_cast<int>(suggestions.size()) < count && !IsCancelled() && !unvisited.Exhausted()) {
    const auto ordinal = static_cast<uint64_t>(history.next_ordinal()) + suggestions.size();
    const bool first = static_cast<int64_t>(ordinal) < config_.initial || !learnable;
    if (!first && !chooser) chooser.emplace(config_, history.space(), data, memory);
    if (chooser) chooser->Imagine(std::exchange(pending, {}), root.Fork(ordinal).Fork(2));
    std::optional<Suggestion> next = first ? First(history, unvisited, ordinal, root)
                                           : chooser->Next(unvisited, root.Fork(ordinal));
    if (!next) break;
    pending.push_back(next->point);
    suggestions.push_back(*std::move(next));
  }
  Proposal proposal = unvisited.Finish(std::move(suggestions));
  proposal.memo = memory.Serialize();
  if (proposal.memo.size() > kMaxMemo) proposal.memo.clear();
  if (!config_.replaces.empty()) {
    proposal.algorithm = "a Gaussian process answers for base_estimator " + config_.replaces;
  }
  return proposal;
}

StatusOr<std::optional<Recommendation>> Bayesian::Recommend(const History& history) const {
  const gp::Results data = gp::Gather(history, config_.initial);
  if (!data.Learnable()) return std::nullopt;
  const Eigen::Map<const VectorXd> scores(data.scores.data(),
                                          static_cast<Index>(data.scores.size()));
  const gp::Inputs inputs = gp::InputLayout(history.space()).From(data.points);
  const auto learned = gp::SurrogateCache::Shared().Learn(inputs, scores, MemoryOf(history));
  const auto found = gp::Recommend(learned->surrogate, scores);
  if (!found) return std::nullopt;
  const double sign = config_.maximize ? 1 : -1;
  return Recommendation{
      .trial = data.numbers[found->point] - 1,
      .loss = -found->score,
      .deviation = found->deviation,
      .reason = absl::StrFormat("the best result, %.4g of trial %d, was luck, %.4g is predicted "
                                "there; this one is the best in the mean",
                                sign * scores[found->best], data.numbers[found->best],
                                sign * found->at_best)};
}

StatusOr<std::unique_ptr<Algorithm>> Bayesian::Create(const Problem& problem) {
  Config config;
  const auto setting = [&](const char* name) {
    const std::string* value = FindSetting(problem.settings, name);
    return value != nullptr ? *value : std::string();
  };
  if (!absl::SimpleAtoi(setting("n_initial_points"), &config.initial)) config.initial = 5;
  const std::string utility = setting("acq_func");
  if (utility == "LCB") config.utility = gp::Utility::kUcb;
  if (utility == "PI" || utility == "PIps") config.utility = gp::Utility::kLogPi;
  if (setting("base_estimator") != "GP") config.replaces = setting("base_estimator");
  config.maximize = problem.maximize;
  config.climb = setting("acq_optimizer") != "sampling";
  return std::make_unique<Bayesian>(config, problem.space.size());
}

std::vector<SettingInfo> BayesianSettings() {
  return {{.name = "base_estimator",
           .default_value = "GP",
           .words = {"GP", "RF", "ET", "GBRT"},
           .replaced = {"RF", "ET", "GBRT"},
           .help = "the model; a Gaussian process answers for Katib's forests and trees too"},
          {.name = "n_initial_points",
           .type = SettingInfo::Type::kInt,
           .default_value = "5",
           .min = 1,
           .max = 1e6,
           .help = "quasi-random trials before the first that learns from results"},
          {.name = "acq_func",
           .default_value = "gp_hedge",
           .words = {"gp_hedge", "EI", "LCB", "PI", "EIps", "PIps"},
           .replaced = {"EIps", "PIps"},
           .help = "what makes a point promising: gp_hedge and EI the logarithm of the expected "
                   "improvement, PI its probability, LCB a confidence bound; EIps and PIps are EI "
                   "and PI, without regard to seconds"},
          {.name = "acq_optimizer",
           .default_value = "auto",
           .words = {"auto", "sampling", "lbfgs"},
           .help = "sampling: the best of 2048 points; otherwise they are climbed from"}};
}

SHIRABE_REGISTER(AlgorithmInfo, {.name = "bayesianoptimization",
                                 .aliases = {"gp"},
                                 .help = "A Gaussian process learns which points promise most; "
                                         "for trials that cost minutes.",
                                 .settings = BayesianSettings(),
                                 .create = &Bayesian::Create});

}  // namespace
}  // namespace shirabe::suggestion
