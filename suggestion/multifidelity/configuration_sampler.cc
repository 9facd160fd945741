#include "suggestion/multifidelity/configuration_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

bool HasLoss(const TrialSummary& trial) {
  return trial.state == TrialState::kCompleted && std::isfinite(trial.loss);
}

bool HasSeveral(const History& history) {
  return history.further_objectives() > 0 || history.constraints() > 0;
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

std::vector<int64_t> RankAcrossRungs(const std::vector<RungLosses>& configurations) {
  const auto count = static_cast<int64_t>(configurations.size());
  const int rungs = count == 0 ? 0 : static_cast<int>(configurations[0].size());
  std::vector<int64_t> order;
  std::vector<bool> placed(count);
  for (int rung = rungs - 1; rung >= 0; --rung) {
    const auto loss = [&](int64_t c) { return configurations[c][rung]; };
    std::vector<int64_t> here;
    for (int64_t c = 0; c < count; ++c) {
      if (!placed[c] && !std::isnan(loss(c))) here.push_back(c);
    }
    std::stable_sort(here.begin(), here.end(),
                     [&](int64_t a, int64_t b) { return loss(a) < loss(b); });
    std::vector<double> common;        // losses here of those placed already
    std::vector<size_t> common_place;  // and their places, ascending
    for (size_t place = 0; place < order.size(); ++place) {
      if (std::isnan(loss(order[place]))) continue;
      common.push_back(loss(order[place]));
      common_place.push_back(place);
    }
    std::sort(common.begin(), common.end());
    std::vector<int64_t> merged;
    size_t taken = 0;  // of `order`
    for (const int64_t c : here) {
      const size_t better =
          std::upper_bound(common.begin(), common.end(), loss(c)) - common.begin();
      const size_t behind = common.empty() ? order.size()
                            : better == 0  ? 0
                                           : common_place[better - 1] + 1;
      while (taken < behind) merged.push_back(order[taken++]);
      merged.push_back(c);
      placed[c] = true;
    }
    while (taken < order.size()) merged.push_back(order[taken++]);
    order = std::move(merged);
  }
  return order;
}

std::vector<SettingInfo> ConfigSourceSettings(const std::string& searcher) {
  return {
      {.name = "searcher",
       .default_value = searcher,
       .help = "the algorithm that chooses configurations, from the ranks of those that were "
               "trained"},
      {.name = "random_fraction",
       .type = SettingInfo::Type::kDouble,
       .default_value = "0.3333",
       .min = 0,
       .max = 1,
       .help = "of the configurations stay random whatever the searcher has learned"},
  };
}

StatusOr<ConfigSource> ConfigSource::Create(const Problem& problem, const Rungs& rungs) {
  ConfigSource searcher;
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

ConfigurationSampler::ConfigurationSampler(const History& history, const Rungs& rungs,
                                           const ConfigSource& searcher)
    : history_(history),
      rungs_(rungs),
      source_(searcher),
      configurations_(history, rungs.axis()),
      model_(configurations_.space()) {
  if (searcher.algorithm != nullptr) BuildModel();
}

int ConfigurationSampler::RungOf(const Point& point) const {
  return static_cast<int>(history_.space().axis(rungs_.axis()).Level(point[rungs_.axis()]));
}

ConfigurationSampler::Known ConfigurationSampler::Collect() const {
  Known known;
  absl::flat_hash_map<uint64_t, size_t> place;  // by Space::Key
  const std::vector<double> losses = RungOrder();
  for (int64_t i = 0; i < history_.size(); ++i) {
    if (history_.trial(i).outside) continue;
    const uint64_t key = configurations_.space().Key(configurations_.at(i));
    if (history_.trial(i).state == TrialState::kInfeasible) known.failed.insert(key);
    if (!HasLoss(history_.trial(i)) || std::isnan(losses[i])) {
      known.without.push_back(i);
      continue;
    }
    const auto [it, fresh] = place.emplace(key, known.losses.size());
    if (fresh) {
      known.losses.emplace_back(rungs_.top() + 1, std::numeric_limits<double>::quiet_NaN());
      known.trial.push_back(i);
    }
    known.losses[it->second][RungOf(history_.point(i))] = losses[i];
  }
  return known;
}

// By trial, what to compare it by with the others of its rung: the loss; with several objectives,
// or constraints, its place there, and NaN where one of its losses is missing.
std::vector<double> ConfigurationSampler::RungOrder() const {
  std::vector<double> losses(history_.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<std::vector<int64_t>> rungs(rungs_.top() + 1);
  const TrialOrder order(history_);
  for (int64_t i = 0; i < history_.size(); ++i) {
    if (!HasSeveral(history_)) losses[i] = history_.trial(i).loss;
    if (order.HasResult(i)) rungs[RungOf(history_.point(i))].push_back(i);
  }
  if (!HasSeveral(history_)) return losses;
  for (std::vector<int64_t>& rung : rungs) {
    double place = 0;
    for (const int64_t index : order.Sort(std::move(rung))) losses[index] = place++;
  }
  return losses;
}

// Every configuration once: with its rank, as failed, or as still to come.
void ConfigurationSampler::BuildModel() {
  AddPrior();
  const Known known = Collect();
  ranked_ = static_cast<int64_t>(known.losses.size());
  informed_ = ranked_ >= source_.enough || !model_.prior().empty();
  if (!informed_) return;
  std::vector<double> rank(known.losses.size());
  double place = 0;
  for (const int64_t c : RankAcrossRungs(known.losses)) rank[c] = place++;
  // In the order in which they were trained: some searchers give older ones less weight.
  for (size_t c = 0; c < known.trial.size(); ++c) {
    const Point point = configurations_.at(known.trial[c]);
    const bool failed = known.failed.contains(model_.space().Key(point));
    model_.Add(point, {.state = failed ? TrialState::kInfeasible : TrialState::kCompleted,
                       .loss = rank[c]});
  }
  for (const int64_t i : known.without) {
    if (model_.Visited(configurations_.at(i))) continue;
    const bool active = history_.trial(i).state == TrialState::kActive;
    model_.Add(configurations_.at(i),
               {.state = active ? TrialState::kActive : TrialState::kInfeasible});
  }
}

void ConfigurationSampler::AddPrior() {
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
std::optional<Suggestion> ConfigurationSampler::AskConfigSource(const Rng& root) {
  StatusOr<Proposal> proposal = source_.algorithm->Propose(model_, 1, root);
  if (!proposal.ok() || proposal->suggestions.empty()) return std::nullopt;
  Suggestion& asked = proposal->suggestions[0];
  if (asked.parent || !configurations_.Claim(asked.point)) return std::nullopt;
  const std::string what = ranked_ >= source_.enough
                               ? absl::StrCat("the ranks of ", ranked_, " configurations")
                               : std::string("what earlier experiments found");
  return Suggestion{
      .point = asked.point,
      .explanation = absl::StrCat(source_.name, " on ", what, ": ", asked.explanation)};
}

std::optional<Suggestion> ConfigurationSampler::Next(int rung, uint64_t ordinal, const Rng& root) {
  Rng rng = root.Fork(ordinal);
  std::optional<Suggestion> next;
  if (informed_ && rng.Uniform() >= source_.random_fraction) next = AskConfigSource(rng);
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

TriedConfigurations::TriedConfigurations(const History& history, std::optional<int> axis)
    : axis_(axis),
      tried_(axis ? history.space().Without(*axis) : history.space()),
      unvisited_(tried_) {
  for (int64_t i = 0; i < history.size(); ++i) {
    Point point = history.point(i);
    if (axis_) point.erase(point.begin() + *axis_);
    tried_.Add(point, {.outside = history.trial(i).outside});
  }
}

Point TriedConfigurations::With(Point configuration, double resource) const {
  if (axis_) configuration.insert(configuration.begin() + *axis_, resource);
  return configuration;
}

}  // namespace shirabe::suggestion
