#include "suggestion/newcomers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/number.h"

namespace shirabe::suggestion {
namespace {

bool HasLoss(const TrialView& trial) {
  return trial.state == TrialState::kCompleted && std::isfinite(trial.loss);
}

// Below this number of results an algorithm draws at random of its own accord.
int64_t StartupOf(const AlgorithmInfo& info) {
  for (const SettingInfo& setting : info.settings) {
    if (setting.name != "n_startup_trials") continue;
    return static_cast<int64_t>(ParseNumber(setting.default_value).value_or(0));
  }
  return 0;
}

}  // namespace

std::vector<SettingInfo> SearcherSettings(const std::string& searcher) {
  return {
      {.name = "searcher",
       .default_value = searcher,
       .help = "the algorithm that chooses configurations, from the results of the highest rung "
               "that has enough of them"},
      {.name = "random_fraction",
       .type = SettingInfo::Type::kDouble,
       .default_value = "0.3333",
       .min = 0,
       .max = 1,
       .help = "of the configurations stay random whatever the searcher has learned"},
  };
}

StatusOr<Searcher> Searcher::Create(const Problem& problem, const Rungs& rungs) {
  Searcher searcher;
  const std::string* name = FindSetting(problem.settings, "searcher");
  if (name == nullptr || *name == "random") return searcher;
  const auto* info = Registry<AlgorithmInfo>::Get().Find(*name);
  const bool trains = info != nullptr && (info->reshape != nullptr || info->name == "pbt");
  if (trains) {
    return absl::InvalidArgumentError(
        absl::StrCat("searcher \"", *name, "\" decides itself what is trained for how long; give ",
                     "one that only chooses points, such as tpe"));
  }
  const Problem rest{.space = problem.space.Without(rungs.axis()), .parallel = problem.parallel};
  auto algorithm = CreateAlgorithm(*name, rest);
  if (!algorithm.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("searcher \"", *name, "\": ", Message(algorithm.status())));
  }
  searcher.algorithm = *std::move(algorithm);
  searcher.name = info->name;
  const std::string* fraction = FindSetting(problem.settings, "random_fraction");
  searcher.random_fraction = fraction == nullptr ? 0 : ParseNumber(*fraction).value_or(0);
  searcher.enough = std::max<int64_t>(rest.space.size() + 1, StartupOf(*info));
  return searcher;
}

Newcomers::Newcomers(const History& history, const Rungs& rungs, const Searcher& searcher)
    : history_(history),
      rungs_(rungs),
      searcher_(searcher),
      configurations_(history, rungs.axis()),
      model_(configurations_.space()) {
  if (searcher.algorithm != nullptr) BuildModel();
}

int Newcomers::RungOf(const Point& point) const {
  return static_cast<int>(history_.space().axis(rungs_.axis()).Level(point[rungs_.axis()]));
}

void Newcomers::BuildModel() {
  std::vector<int64_t> results(rungs_.top() + 1);
  std::vector<int> rung_of(history_.size());
  for (int64_t i = 0; i < history_.size(); ++i) {
    rung_of[i] = RungOf(history_.point(i));
    if (HasLoss(history_.trial(i))) ++results[rung_of[i]];
  }
  for (int rung = 0; rung <= rungs_.top(); ++rung) {
    if (results[rung] >= searcher_.enough) model_rung_ = rung;
  }
  AddPrior();
  informed_ = model_rung_ || !model_.prior().empty();
  if (!informed_) return;
  for (int64_t i = 0; i < history_.size(); ++i) {
    if (rung_of[i] == model_rung_.value_or(0) && history_.trial(i).state != TrialState::kActive) {
      model_.Add(configurations_.at(i), history_.trial(i));
    }
  }
  for (int64_t i = 0; i < history_.size(); ++i) {
    const bool result = history_.trial(i).state == TrialState::kCompleted;
    if (!result && !model_.Visited(configurations_.at(i))) {
      model_.Add(configurations_.at(i), {.state = history_.trial(i).state});
    }
  }
}

void Newcomers::AddPrior() {
  std::map<int, int> highest;  // by source
  for (const PriorTrial& prior : history_.prior()) {
    int& rung = highest[prior.source];
    rung = std::max(rung, RungOf(prior.point));
  }
  std::vector<PriorTrial> shown;
  for (PriorTrial prior : history_.prior()) {
    if (RungOf(prior.point) != highest[prior.source]) continue;
    prior.point.erase(prior.point.begin() + rungs_.axis());
    shown.push_back(std::move(prior));
  }
  if (!shown.empty()) model_.SetPrior(std::move(shown));
}

// What it proposes is taken only if it is new on every rung.
std::optional<Suggestion> Newcomers::AskSearcher(const Rng& root) {
  StatusOr<Proposal> proposal = searcher_.algorithm->Propose(model_, 1, root);
  if (!proposal.ok() || proposal->suggestions.empty()) return std::nullopt;
  Suggestion& asked = proposal->suggestions[0];
  if (asked.parent || !configurations_.Take(asked.point)) return std::nullopt;
  const std::string what = model_rung_ ? "the results with " + rungs_.Describe(*model_rung_)
                                       : std::string("what earlier experiments found");
  return Suggestion{
      .point = asked.point,
      .explanation = absl::StrCat(searcher_.name, " on ", what, ": ", asked.explanation)};
}

std::optional<Suggestion> Newcomers::Next(int rung, uint64_t ordinal, const Rng& root) {
  Rng rng = root.Fork(ordinal);
  std::optional<Suggestion> next;
  if (informed_ && rng.Uniform() >= searcher_.random_fraction) next = AskSearcher(rng);
  if (!next) {
    std::optional<Point> point = configurations_.Draw(rng);
    if (!point) return std::nullopt;
    next = Suggestion{.point = *std::move(point), .explanation = "a random configuration"};
  }
  if (informed_) model_.Add(next->point, {});
  const Axis& axis = history_.space().axis(rungs_.axis());
  next->point = configurations_.With(std::move(next->point), axis.Coordinate(rung));
  return next;
}

}  // namespace shirabe::suggestion
