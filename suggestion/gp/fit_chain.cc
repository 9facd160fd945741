#include "suggestion/gp/fit_chain.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/cancellation.h"
#include "base/sha256.h"
#include "base/sorting.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/engine_choice.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int64_t kSharedFits = 16 << 20;

constexpr int64_t kFirstStart = 16, kStartsEnd = 200;  // of θ(s)
constexpr int64_t kOwnStart = 128;                     // E

// A fit to the first `count` results, or to some of them.
struct Stage {
  int64_t count;
  bool some = false;
};

// Those that lead to θ(m), which is the last of them.
std::vector<Stage> Stages(int64_t results) {
  const int64_t m = LastFitCount(results);
  std::vector<Stage> stages;
  int64_t s = kFirstStart, last = 0;
  for (; s < m || (s == m && m >= kStartsEnd); s += s / 8) {
    last = s;
    if (m < kStartsEnd) stages.push_back({s});
  }
  if (m >= kStartsEnd) stages.push_back({last, true});
  stages.push_back({m});
  return stages;
}

void Append(std::string& bytes, double value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Behind the digest of a fit to some of the results.
constexpr char kOfSome[] = "-";

// Of the first results up to each stage: all that a fit to them depends on. Each goes on from the
// one before it, so that every row is read once.
std::vector<std::string> DigestsOf(const Inputs& inputs, const VectorXd& scores,
                                   const std::vector<Stage>& stages) {
  std::string bytes = "fit chain 2";
  Append(bytes, inputs.numeric());
  Append(bytes, inputs.categorical());
  std::vector<std::string> digests;
  int64_t row = 0;
  for (const Stage& stage : stages) {
    for (; row < stage.count; ++row) {
      for (int j = 0; j < inputs.numeric(); ++j) Append(bytes, inputs.x(row, j));
      for (int j = 0; j < inputs.categorical(); ++j) Append(bytes, inputs.u(row, j));
      Append(bytes, scores[row]);
    }
    bytes = HexSha256(bytes);
    digests.push_back(bytes + (stage.some ? kOfSome : ""));
  }
  return digests;
}

// After the digests of fits that an accelerator makes, which differ in their last digits.
constexpr char kOtherEngine[] = "+";

bool IsAccelerated(int64_t results, int coordinates) {
  const auto points = static_cast<Index>(std::min<int64_t>(results, Results::kMaxAccelerated));
  const auto fits = static_cast<int>(std::size(kWarpKinds));
  return FindAcceleratedEngine({points, coordinates, fits}) != nullptr;
}

// What the fit of the stage leaves, from where it starts; nothing where the results are all equal.
SurrogateMemo FitFirst(const Stage& stage, const Inputs& inputs, const VectorXd& scores,
                       SurrogateMemo start) {
  const int64_t most =
      MostResults(start.past(), stage.count, inputs.numeric() + inputs.categorical());
  std::vector<int64_t> rows = KeptResults({scores.data(), scores.data() + stage.count}, most);
  if (stage.some) {
    const auto count = static_cast<int64_t>(rows.size());
    CHECK(count >= kOwnStart);
    for (int64_t i = 0; i < kOwnStart; ++i) rows[i] = rows[i * count / kOwnStart];
    rows.resize(kOwnStart);
  }
  VectorXd kept = scores(rows);
  BoundWorst({kept.data(), static_cast<size_t>(kept.size())});
  if (Standardize(kept).squaredNorm() == 0) return {};
  RefitMemory({inputs.x(rows, Eigen::all), inputs.u(rows, Eigen::all)}, kept, start);
  return start;
}

}  // namespace

FitChain& FitChain::Shared() {
  static FitChain chain(kSharedFits);
  return chain;
}

SurrogateMemo FitChain::After(const Inputs& inputs, const VectorXd& scores) {
  if (scores.size() < 2) return {};
  const std::vector<Stage> stages = Stages(scores.size());
  std::vector<std::string> digests = DigestsOf(inputs, scores, stages);
  std::vector<bool> accelerated(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    accelerated[i] = IsAccelerated(stages[i].some ? kOwnStart : stages[i].count,
                                   inputs.numeric() + inputs.categorical());
    if (accelerated[i]) digests[i] += kOtherEngine;
  }
  SurrogateMemo memo;
  size_t next = stages.size();  // the first stage whose θ is not known
  while (next > 0) {
    if (auto known = Find(digests[next - 1])) {
      memo = *std::move(known);
      break;
    }
    --next;
  }
  for (; next < stages.size(); ++next) {
    memo = FitFirst(stages[next], inputs, scores, std::move(memo));
    if (IsCancelled()) break;  // cut short, it is not θ of this stage
    // Nor is it where an accelerator has failed.
    if ((memo.engine == EngineKind::kAccelerator) != accelerated[next]) continue;
    Keep({digests[next], memo});
  }
  return memo;
}

int64_t FitChain::BytesOf(const Entry& entry) {
  constexpr int64_t kOfLists = 128;  // nodes and slots, about
  int64_t numbers = 0;
  for (const Theta& theta : entry.memo.thetas) numbers += theta.values.size();
  return static_cast<int64_t>(sizeof(Entry)) + kOfLists +
         2 * static_cast<int64_t>(entry.digest.size()) +
         numbers * static_cast<int64_t>(sizeof(double));
}

std::optional<SurrogateMemo> FitChain::Find(const std::string& digest) {
  const MutexLock lock(mutex_);
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return entries_.front().memo;
}

void FitChain::Keep(Entry entry) {
  const MutexLock lock(mutex_);
  ++fits_;
  if (by_digest_.contains(entry.digest)) return;  // two asked at the same time
  bytes_ += BytesOf(entry);
  entries_.push_front(std::move(entry));
  by_digest_[entries_.front().digest] = entries_.begin();
  while (bytes_ > capacity_) {
    bytes_ -= BytesOf(entries_.back());
    by_digest_.erase(entries_.back().digest);
    entries_.pop_back();
  }
}

int64_t FitChain::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

int64_t FitChain::fits() const {
  const MutexLock lock(mutex_);
  return fits_;
}

namespace {

std::vector<int64_t> InOrderOfEnds(const History& history) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    const bool result = trial.state == TrialState::kCompleted && std::isfinite(trial.loss);
    if (result && !trial.outside) order.push_back(i);
  }
  StableSort(order, [&history](int64_t a, int64_t b) {
    return history.trial(a).ended < history.trial(b).ended;
  });
  return order;
}

}  // namespace

SurrogateMemo MemoryOf(const History& history) {
  return SurrogateMemo::Parse(history.memo(), Theta::Size(0, 0) + history.space().size());
}

SurrogateMemo MemoryFrom(const History& history) {
  const InputLayout layout(history.space());
  const std::vector<int64_t> order = InOrderOfEnds(history);
  Inputs inputs = layout.Empty(static_cast<Index>(order.size()));
  const std::vector<double> by_trial = ScoresOf(history);
  VectorXd scores(static_cast<Index>(order.size()));
  for (Index row = 0; row < scores.size(); ++row) {
    layout.Set(inputs, row, history.point(order[row]));
    scores[row] = by_trial[order[row]];
  }
  return FitChain::Shared().After(inputs, scores);
}

}  // namespace shirabe::suggestion::gp
