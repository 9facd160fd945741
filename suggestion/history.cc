#include "suggestion/history.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"

namespace shirabe::suggestion {

void History::Add(const Point& point, const TrialSummary& view) {
  CHECK(static_cast<int>(point.size()) == dimensions_);
  if (!view.outside) visited_.emplace(space_.Key(point), size());
  x_.insert(x_.end(), point.begin(), point.end());
  views_.push_back(view);
  Count(views_.back());  // `view` may be one of them
}

void History::Count(const TrialSummary& view) {
  further_objectives_ = std::max(further_objectives_, view.further_losses.size());
  constraints_ = std::max(constraints_, view.margins.size());
}

void History::Update(int64_t index, const TrialSummary& view) {
  CHECK(index >= 0 && index < size());
  const TrialSummary before = views_[index];
  views_[index] = view;
  views_[index].earlier = before.earlier;
  views_[index].outside = before.outside;
  Count(view);
}

void History::SetLabels(int64_t index, std::vector<std::pair<std::string, std::string>> labels) {
  if (!labels.empty()) labels_[index] = std::move(labels);
}

const std::vector<PriorTrial>& History::prior() const {
  static const std::vector<PriorTrial> none;
  return prior_ == nullptr ? none : *prior_;
}

void History::SetPrior(std::vector<PriorTrial> prior) {
  for (const PriorTrial& trial : prior) {
    CHECK(static_cast<int>(trial.point.size()) == dimensions_ && std::isfinite(trial.loss));
  }
  prior_ = std::make_shared<const std::vector<PriorTrial>>(std::move(prior));  // shared: the header
}

Point History::point(int64_t index) const {
  const auto first = x_.begin() + index * dimensions_;
  return Point(first, first + dimensions_);
}

const std::vector<std::pair<std::string, std::string>>& History::labels(int64_t index) const {
  static const std::vector<std::pair<std::string, std::string>> none;
  const auto found = labels_.find(index);
  return found == labels_.end() ? none : found->second;
}

std::optional<std::string> History::label(int64_t index, const std::string& name) const {
  for (const auto& [key, value] : labels(index)) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<int64_t> History::number_label(int64_t index, const std::string& name) const {
  const auto text = label(index, name);
  int64_t number = 0;
  if (!text || !absl::SimpleAtoi(*text, &number) || number < 0) return std::nullopt;
  return number;
}

// ---- which are better --------------------------------------------------------------------------

namespace {

constexpr double kBreaksConstraints = 1, kFailed = 3;

bool IsFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

// Also what lacks a loss or a margin that others have.
bool HasFailed(const History& history, const TrialSummary& trial) {
  return trial.state == TrialState::kInfeasible || !std::isfinite(trial.loss) ||
         trial.further_losses.size() < history.further_objectives() ||
         trial.margins.size() < history.constraints() || !IsFinite(trial.further_losses) ||
         !IsFinite(trial.margins);
}

// By constraint, the largest amount by which a trial breaks it.
std::vector<double> LargestBreaches(const History& history) {
  std::vector<double> largest;
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.outside || trial.state == TrialState::kActive || HasFailed(history, trial)) continue;
    largest.resize(std::max(largest.size(), trial.margins.size()), 0);
    for (size_t c = 0; c < trial.margins.size(); ++c) {
      largest[c] = std::max(largest[c], -trial.margins[c]);
    }
  }
  return largest;
}

// In [0, 1]: 0 = all constraints are kept.
double Breach(const TrialSummary& trial, const std::vector<double>& largest) {
  double breach = 0;
  for (size_t c = 0; c < trial.margins.size(); ++c) {
    if (trial.margins[c] < 0) breach += -trial.margins[c] / largest[c];
  }
  return breach / static_cast<double>(std::max<size_t>(1, trial.margins.size()));
}

// Of several objectives, or with constraints.
Ranking RankIndividuals(const History& history) {
  Ranking ranking;
  std::vector<Individual> ranked;
  for (Individual& individual : EndedIndividuals(history)) {
    if (individual.violation == kFailed) {
      ranking.failed.push_back(individual.trial);
    } else {
      ranked.push_back(std::move(individual));
    }
  }
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.state == TrialState::kActive && !trial.outside) ranking.pending.push_back(i);
  }
  ReplaceByRanks(ranked);
  const size_t all = ranked.size();
  for (const Individual& individual : Survivors(std::move(ranked), all)) {
    ranking.ranked.push_back(individual.trial);
  }
  return ranking;
}

}  // namespace

std::vector<Individual> EndedIndividuals(const History& history) {
  int64_t furthest = 0;
  for (int64_t i = 0; i < history.size(); ++i) {
    furthest = std::max(furthest, history.trial(i).last_step);
  }
  const double steps = static_cast<double>(furthest) + 2;
  const std::vector<double> breaches = LargestBreaches(history);
  std::vector<Individual> individuals;
  individuals.reserve(history.size());
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.state == TrialState::kActive || trial.outside) continue;
    Individual individual{.trial = i, .losses = {trial.loss}};
    individual.losses.insert(individual.losses.end(), trial.further_losses.begin(),
                             trial.further_losses.end());
    if (HasFailed(history, trial)) {
      // As many as the others have: what failed may have none.
      individual.losses.assign(1 + history.further_objectives(), 0);
      individual.violation = kFailed;
    } else if (const double breach = Breach(trial, breaches); breach > 0) {
      individual.violation = kBreaksConstraints + breach;
    } else if (trial.early_stopped) {
      const double reached = std::max(0.0, static_cast<double>(trial.last_step));
      individual.violation = 1 - (reached + 1) / steps;
    }
    individuals.push_back(std::move(individual));
  }
  return individuals;
}

Ranking RankTrials(const History& history) {
  if (history.further_objectives() > 0 || history.constraints() > 0) {
    return RankIndividuals(history);
  }
  Ranking ranking;
  // Sorted by value rather than through the history: it is what a suggestion waits for.
  std::vector<std::tuple<bool, int64_t, double, int64_t>> keys;
  keys.reserve(history.size());
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.outside) continue;
    if (trial.state == TrialState::kActive) {
      ranking.pending.push_back(i);
    } else if (HasFailed(history, trial)) {
      ranking.failed.push_back(i);
    } else {
      const int64_t step = trial.early_stopped ? trial.last_step : 0;
      keys.emplace_back(trial.early_stopped, ~step, trial.loss, i);  // ~: descending
    }
  }
  std::sort(keys.begin(), keys.end());
  ranking.ranked.reserve(keys.size());
  for (const auto& key : keys) ranking.ranked.push_back(std::get<3>(key));
  return ranking;
}

TrialOrder::TrialOrder(const History& history) : history_(history) {
  if (history.further_objectives() == 0 && history.constraints() == 0) return;
  individuals_ = EndedIndividuals(history);
}

bool TrialOrder::HasResult(int64_t index) const {
  const TrialSummary& trial = history_.trial(index);
  return trial.state == TrialState::kCompleted && !trial.early_stopped && !trial.outside &&
         !HasFailed(history_, trial);
}

std::vector<int64_t> TrialOrder::Sort(std::vector<int64_t> indices) const {
  if (individuals_.empty()) {
    std::stable_sort(indices.begin(), indices.end(), [this](int64_t a, int64_t b) {
      return history_.trial(a).loss < history_.trial(b).loss;
    });
    return indices;
  }
  std::vector<Individual> chosen;
  for (const int64_t index : indices) {
    chosen.push_back(*std::lower_bound(
        individuals_.begin(), individuals_.end(), index,
        [](const Individual& individual, int64_t trial) { return individual.trial < trial; }));
  }
  const size_t all = chosen.size();
  std::vector<int64_t> sorted;
  for (const Individual& individual : Survivors(std::move(chosen), all)) {
    sorted.push_back(individual.trial);
  }
  return sorted;
}

}  // namespace shirabe::suggestion
