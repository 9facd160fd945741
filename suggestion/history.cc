#include "suggestion/history.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"

namespace shirabe::suggestion {

void History::Add(const Point& point, const TrialSummary& view) {
  CHECK(static_cast<int>(point.size()) == dimensions_);
  visited_.emplace(space_.Key(point), size());
  x_.insert(x_.end(), point.begin(), point.end());
  views_.push_back(view);
}

void History::Update(int64_t index, const TrialSummary& view) {
  CHECK(index >= 0 && index < size());
  views_[index] = view;
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

Ranking RankTrials(const History& history) {
  Ranking ranking;
  // Sorted by value rather than through the history: it is what a suggestion waits for.
  std::vector<std::tuple<bool, int64_t, double, int64_t>> keys;
  keys.reserve(history.size());
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.state == TrialState::kActive) {
      ranking.pending.push_back(i);
    } else if (trial.state == TrialState::kInfeasible || !std::isfinite(trial.loss)) {
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

}  // namespace shirabe::suggestion
