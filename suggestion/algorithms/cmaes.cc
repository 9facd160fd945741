// CMA-ES: the evolution of a normal distribution over the numbers of a space, which learns their
// scales and correlations, and of the probabilities of its categories, with restarts. The
// mathematics is in suggestion/cmaes/cma_search.h and what that includes, the way from trials to it
// in suggestion/cmaes/cma_replay.h; here are the settings and the suggestions.
//
// Restarts are on by default, unlike Katib's: once a run has found its optimum, more of the same
// finds nothing, and the trials that are left cost as much as the others. With restart_strategy
// none the search goes on where it is, and tries what is untried there, then anywhere.
//
// lr_adapt is off by default: with the noise of track D of bench/regret, smaller steps cost more
// than they saved in the first 600 trials.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cancellation.h"
#include "base/text/number.h"
#include "suggestion/algorithm.h"
#include "suggestion/cmaes/cma_replay.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

constexpr char kDefaultSigma[] = "0.1667";

std::string Explanation(const CmaReplay& replay, bool likely) {
  const std::string generation = absl::StrCat("generation ", replay.generation().number + 1,
                                              " of run ", replay.generation().run + 1);
  if (!likely) return generation + ": anywhere, since what is likely to be good has been tried";
  const Eigen::VectorXd deviations = replay.search().distribution().Deviations();
  return absl::StrFormat("%s: around the mean of the best so far, by about %.2g of each range",
                         generation, std::exp(deviations.array().log().mean()));
}

class Cmaes : public Algorithm {
 public:
  Cmaes(const Problem& problem, const CmaOptions& options)
      : space_(problem.space),
        layout_(space_),
        options_(options),
        fingerprint_(FingerprintOf(problem)) {}

  static StatusOr<std::unique_ptr<Algorithm>> Create(const Problem& problem);

  StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) override {
    const CmaReplay replay({layout_, options_, history, root, fingerprint_});
    OrthogonalSampler sampler = replay.sampler();
    UnvisitedPoints unvisited(history);
    std::vector<Suggestion> suggestions;
    while (static_cast<int>(suggestions.size()) < count && !IsCancelled()) {
      const Rng rng = root.Fork(history.next_ordinal() + suggestions.size());
      std::optional<Point> point = Likely(replay.search(), unvisited, rng, sampler);
      const std::string explanation = Explanation(replay, point.has_value());
      if (!point) point = Untried(replay.search(), unvisited, rng, sampler);
      if (!point) break;
      suggestions.push_back({.point = *std::move(point),
                             .labels = {{CmaReplay::kLabel, replay.label()}},
                             .explanation = explanation});
    }
    Proposal proposal = unvisited.Finish(std::move(suggestions));
    proposal.memo = replay.memo();
    return proposal;
  }

 private:
  static uint64_t FingerprintOf(const Problem& problem);
  std::optional<Point> Likely(const CmaSearch& search, UnvisitedPoints& unvisited, Rng rng,
                              OrthogonalSampler& sampler) const;
  std::optional<Point> Untried(const CmaSearch& search, UnvisitedPoints& unvisited, Rng rng,
                               OrthogonalSampler& sampler) const;

  Space space_;
  CmaLayout layout_;
  CmaOptions options_;
  uint64_t fingerprint_;
};

// Katib's services refuse fewer than two as well: with one there is nothing to correlate.
Status CheckNumeric(size_t numeric) {
  if (numeric >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "algorithm cmaes: there ", numeric == 1 ? "is 1 parameter" : "are 0 parameters",
      " of type int, double or discrete, and it needs at least 2; use algorithm tpe, or random"));
}

// Katib's services take any that is not negative.
double SigmaOf(double given) {
  constexpr double kMinSigma = 1e-6, kMaxSigma = 1;
  if (given == 0) return *ParseNumber(kDefaultSigma);
  return std::clamp(given, kMinSigma, kMaxSigma);
}

StatusOr<std::unique_ptr<Algorithm>> Cmaes::Create(const Problem& problem) {
  RETURN_IF_ERROR(CheckNumeric(CmaLayout(problem.space).numeric.size()));
  const auto setting = [&problem](const char* name) {
    const std::string* value = FindSetting(problem.settings, name);
    return value == nullptr ? std::string() : *value;
  };
  const std::string population = setting("popsize");
  const std::string restarts = setting("restart_strategy");
  using Strategy = CmaRestarts::Strategy;
  const CmaOptions options{.sigma = SigmaOf(*ParseNumber(setting("sigma"))),
                           .population = population.empty()
                                             ? DefaultPopulation(problem.space.size())
                                             : static_cast<int64_t>(*ParseNumber(population)),
                           .restarts = restarts == "none" || restarts == "None" ? Strategy::kNone
                                       : restarts == "ipop"                     ? Strategy::kIpop
                                                                                : Strategy::kBipop,
                           .adapt_rates = absl::AsciiStrToLower(setting("lr_adapt")) == "true"};
  return std::make_unique<Cmaes>(problem, options);
}

uint64_t Cmaes::FingerprintOf(const Problem& problem) {
  std::string text;
  for (const auto& [name, value] : problem.settings) absl::StrAppend(&text, name, "=", value, "\n");
  for (int i = 0; i < problem.space.size(); ++i) {
    const Axis& axis = problem.space.axis(i);
    absl::StrAppend(&text, axis.name(), " ", axis.categorical(), " ", axis.levels(), "\n");
  }
  return Fingerprint(text);
}

// The first draw that is untried, if it comes soon.
std::optional<Point> Cmaes::Likely(const CmaSearch& search, UnvisitedPoints& unvisited, Rng rng,
                                   OrthogonalSampler& sampler) const {
  if (unvisited.Exhausted()) return std::nullopt;
  for (int attempt = 0; attempt < CmaReplay::kAttempts; ++attempt) {
    const CmaDraw draw = search.Draw(rng, sampler);
    Point point = layout_.PointOf(space_, draw);
    if (!unvisited.Claim(point)) continue;
    sampler.Add(draw.z);
    return point;
  }
  return std::nullopt;
}

// Any point that is left.
std::optional<Point> Cmaes::Untried(const CmaSearch& search, UnvisitedPoints& unvisited, Rng rng,
                                    OrthogonalSampler& sampler) const {
  std::optional<Point> point = unvisited.Draw(rng);
  if (!point) return std::nullopt;
  sampler.Add(search.Injected(layout_.Numbers(*point), layout_.Categories(*point)).z);
  return point;
}

std::vector<SettingInfo> CmaesSettings() {
  return {{.name = "sigma",
           .type = SettingInfo::Type::kDouble,
           .default_value = kDefaultSigma,
           .min = 0,
           .max = std::numeric_limits<double>::infinity(),
           .help = "first standard deviation, as a part of each parameter's range; above 1 it is "
                   "1, and 0 means the default"},
          {.name = "restart_strategy",
           .default_value = "bipop",
           .words = {"none", "None", "ipop", "bipop"},
           .help = "what follows when nothing improves: none goes on there, ipop starts elsewhere "
                   "with twice as many trials a generation, bipop with many and few in turn"},
          {.name = "popsize",
           .type = SettingInfo::Type::kInt,
           .min = 4,
           .max = 10000,
           .help = "trials a generation; 4 + 3 ln(parameters) if not given"},
          {.name = "lr_adapt",
           .type = SettingInfo::Type::kBool,
           .default_value = "false",
           .help = "slower steps while generations contradict each other: for noisy losses and "
                   "thousands of trials"}};
}

SHIRABE_REGISTER(AlgorithmInfo, {.name = "cmaes",
                                 .help = "Evolution of a normal distribution that learns scales "
                                         "and correlations; for two or more numeric parameters "
                                         "and some hundreds of trials.",
                                 .settings = CmaesSettings(),
                                 .create = &Cmaes::Create});

}  // namespace
}  // namespace shirabe::suggestion
