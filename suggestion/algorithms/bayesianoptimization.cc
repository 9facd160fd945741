// Bayesian optimisation: a Gaussian process learns from the trials so far which points promise
// most. For trials that cost minutes or more, up to some twenty parameters and a thousand trials.
//
// One suggestion, step by step:
//   1. gather   results, failures and running trials from the history     gp/scored_results.h
//   2. learn    warp and process of the objective, and of feasibility     gp/surrogate.h
//   3. imagine  what the running trials may give, in scenarios            gp/candidate_selector.h
//   4. search   the largest log expected improvement in a trust region    gp/acquisition_search.h
//   5. take     the best point that is not tried yet                      gp::FirstUntried
//   6. explain  and imagine its result too, for the next of the batch
//
// The first points, while there is nothing to learn from, are quasi-random; every other one of them
// is the best of an earlier experiment, where there are any (spec.shirabe.warmStart). In the end,
// where results are noisy, it says which trial is the best in the mean (gp/surrogate.h). Where
// there are several objectives, or constraints, 2 to 6 are those of gp/front_selector.h.
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
#include "base/sorting.h"
#include "suggestion/algorithm.h"
#include "suggestion/gp/candidate_selector.h"
#include "suggestion/gp/engine_choice.h"
#include "suggestion/gp/fit_chain.h"
#include "suggestion/gp/front_selector.h"
#include "suggestion/gp/regret_bound.h"
#include "suggestion/gp/scored_results.h"
#include "suggestion/gp/surrogate.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

struct Config {
  gp::SelectorOptions selector;
  int64_t initial = 5;
  bool front = false;    // several objectives, or constraints: gp/front_selector.h
  std::string replaces;  // the base_estimator that it answers for, "" where that is GP
};

class Bayesian : public Algorithm {
 public:
  Bayesian(const Config& config, int dimensions) : config_(config), initial_design_(dimensions) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem);
  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override;
  StatusOr<std::optional<Recommendation>> Recommend(const History& history) const override;
  StatusOr<std::optional<double>> BoundRegret(const History& history,
                                              const Rng& root) const override;
  static bool BoundsRegret(const Problem& problem) {
    return problem.objectives == 1 && problem.constraints == 0;
  }

 private:
  // Of several objectives, or with constraints.
  Proposal ProposeForFront(const History& history, int count, const Rng& root) const;
  struct Request {
    const History& history;
    int count;
    const Rng& root;
    bool learnable;
  };
  struct Asked {
    Request request;
    std::vector<Point> pending;  // running trials, and what is suggested with the next one
  };
  // First points, then those of a selector, which `make` makes when it is needed.
  template <class Selector, class Make>
  Proposal Fill(Asked asked, const Make& make) const;
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
  StableSort(order, [](const PriorTrial* a, const PriorTrial* b) { return a->loss < b->loss; });
  std::map<int, int64_t> ranked;  // so many of each source
  std::map<const PriorTrial*, int64_t> rank;
  for (const PriorTrial* trial : order) rank[trial] = ranked[trial->source]++;
  StableSort(order, [&rank](const PriorTrial* a, const PriorTrial* b) {
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

template <class Selector, class Make>
Proposal Bayesian::Fill(Asked asked, const Make& make) const {
  const auto& [history, count, root, learnable] = asked.request;
  UnvisitedPoints unvisited(history);
  std::vector<Suggestion> suggestions;
  std::optional<Selector> selector;
  while (static_cast<int>(suggestions.size()) < count && !IsCancelled() && !unvisited.Exhausted()) {
    const auto ordinal = static_cast<uint64_t>(history.next_ordinal()) + suggestions.size();
    const bool first = static_cast<int64_t>(ordinal) < config_.initial || !learnable;
    if (!first && !selector) make(selector, root.Fork(ordinal));
    if (selector) selector->Imagine(std::exchange(asked.pending, {}), root.Fork(ordinal).Fork(2));
    std::optional<Suggestion> next = first ? First(history, unvisited, ordinal, root)
                                           : selector->Next(unvisited, root.Fork(ordinal));
    if (!next) break;
    asked.pending.push_back(next->point);
    suggestions.push_back(*std::move(next));
  }
  return unvisited.Finish(std::move(suggestions));
}

Proposal WithMemo(Proposal proposal, std::string memo) {
  if (memo.size() <= kMaxMemo) proposal.memo = std::move(memo);
  return proposal;
}

int64_t MostOf(const History& history, const gp::SurrogateMemo& memory) {
  return gp::MostResults(memory.past(), history.size(), history.space().size());
}

// For people, where the GPU that has fitted is used no more; "" = it is, or never was.
std::string Notice(gp::EngineKind before, gp::EngineKind after) {
  const bool gone = before == gp::EngineKind::kAccelerator && after == gp::EngineKind::kProcessor;
  if (!gone) return "";
  return "the GPU that fitted the Gaussian process is gone, or failed: the processor has fitted it "
         "again, and stays with it; `shirabe doctor` says what is found";
}

StatusOr<Proposal> Bayesian::Propose(const History& history, int count, const Rng& root) {
  if (config_.front) return ProposeForFront(history, count, root);
  gp::SurrogateMemo memory = gp::MemoryOf(history);
  const gp::EngineKind engine = memory.engine;
  const int64_t most = MostOf(history, memory);
  const gp::Results data = gp::Gather(history, config_.initial, most);
  Proposal proposal = Fill<gp::CandidateSelector>(
      {{history, count, root, data.Learnable()}, data.pending}, [&](auto& selector, const Rng&) {
        if (memory.fitted_at <= 0) memory = gp::MemoryFrom(history);
        selector.emplace(config_.selector, history.space(), data, memory);
      });
  if (!config_.replaces.empty()) {
    proposal.algorithm = "a Gaussian process answers for base_estimator " + config_.replaces;
  } else if (history.size() > most) {
    proposal.algorithm = absl::StrCat("of many results it learns from the latest ", most / 2,
                                      " and the best ", most / 2, " of the others");
  }
  proposal.notice = Notice(engine, memory.engine);
  return WithMemo(std::move(proposal), memory.Serialize());
}

Proposal Bayesian::ProposeForFront(const History& history, int count, const Rng& root) const {
  const int theta_size = gp::Theta::Size(0, 0) + history.space().size();
  gp::FrontMemo memory = gp::FrontMemo::Parse(history.memo(), theta_size);
  const gp::SurrogateMemo first =
      memory.objectives.empty() ? gp::SurrogateMemo() : memory.objectives.front();
  const gp::FrontResults data = gp::GatherFront(history, MostOf(history, first));
  Proposal proposal =
      Fill<gp::FrontSelector>({{history, count, root, data.Learnable()}, data.pending},
                              [&](auto& selector, const Rng& rng) {
                                selector.emplace(history.space(), data, rng.Fork(4), memory);
                              });
  if (!memory.objectives.empty()) {
    proposal.notice = Notice(first.engine, memory.objectives.front().engine);
  }
  return WithMemo(std::move(proposal), memory.Serialize());
}

StatusOr<std::optional<Recommendation>> Bayesian::Recommend(const History& history) const {
  if (config_.front) return std::nullopt;
  gp::SurrogateMemo memory = gp::MemoryOf(history);
  const gp::Results data = gp::Gather(history, config_.initial, MostOf(history, memory));
  if (!data.Learnable()) return std::nullopt;
  const Eigen::Map<const Eigen::VectorXd> scores(data.scores.data(),
                                                 static_cast<Eigen::Index>(data.scores.size()));
  const gp::Inputs inputs = gp::InputLayout(history.space()).From(data.points);
  if (memory.fitted_at <= 0) memory = gp::MemoryFrom(history);
  const auto learned = gp::SurrogateCache::Shared().Learn(inputs, scores, memory);
  const auto found = gp::Recommend(learned->surrogate, scores);
  if (!found) return std::nullopt;
  const double sign = config_.selector.maximize ? 1 : -1;
  return Recommendation{
      .trial = data.numbers[found->point] - 1,
      .loss = -found->score,
      .deviation = found->deviation,
      .reason = absl::StrFormat("the best result, %.4g of trial %d, was luck, %.4g is predicted "
                                "there; this one is the best in the mean",
                                sign * scores[found->best], data.numbers[found->best],
                                sign * found->at_best)};
}

StatusOr<std::optional<double>> Bayesian::BoundRegret(const History& history,
                                                      const Rng& root) const {
  return gp::BoundRegret(history, config_.initial, root);
}

StatusOr<std::unique_ptr<Algorithm>> Bayesian::Create(const Problem& problem) {
  Config config;
  const auto setting = [&](const char* name) {
    const std::string* value = FindSetting(problem.settings, name);
    return value != nullptr ? *value : std::string();
  };
  if (!absl::SimpleAtoi(setting("n_initial_points"), &config.initial)) config.initial = 5;
  const std::string utility = setting("acq_func");
  if (utility == "LCB") config.selector.utility = gp::Utility::kUcb;
  if (utility == "PI" || utility == "PIps") config.selector.utility = gp::Utility::kLogPi;
  if (setting("base_estimator") != "GP") config.replaces = setting("base_estimator");
  config.selector.maximize = problem.maximize;
  config.front = problem.objectives > 1 || problem.constraints > 0;
  config.selector.climb = setting("acq_optimizer") != "sampling";
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
           .min = 0,
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
                                 .create = &Bayesian::Create,
                                 .bounds_regret = &Bayesian::BoundsRegret,
                                 .several_objectives = true,
                                 .constraints = true,
                                 .space_rules = true,
                                 .space_priors = true});

}  // namespace
}  // namespace shirabe::suggestion
