#include "suggestion/gp/surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/rng.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr char kMagic[8] = {'g', 'p', ' ', 'm', 'e', 'm', 'o', '1'};
// So many points more than at the last fit ask for another: each of them up to 60, then 2 %.
constexpr int64_t kEveryTime = 60;
constexpr double kGrowth = 1.02;
// The parameters are fitted to no more points than this, because each step costs their cube.
constexpr Index kMaxFitted = 400;
// Of labels of variance 1: how far one odd trial is believed.
constexpr double kLabelNoise = 0.1;
// A warp that is not better by this share of ordered pairs does not replace the last one.
constexpr double kHysteresis = 0.005;

// The least count of points, after a fit to `fitted_at` of them, at which there is another.
int64_t NextFit(int64_t fitted_at) {
  if (fitted_at < kEveryTime) return fitted_at + 1;
  return static_cast<int64_t>(std::ceil(kGrowth * static_cast<double>(fitted_at)));
}

bool NeedsFit(int64_t n, const SurrogateMemo& memory) {
  if (memory.fitted_at <= 0 || n < memory.fitted_at) return true;
  if (memory.thetas[static_cast<int>(memory.warp)].values.size() == 0) return true;
  return n >= NextFit(memory.fitted_at);
}

// Which points the parameters are fitted to: all of them, or the better half of what is allowed and
// others evenly from the rest.
std::vector<Index> ChooseForFit(const VectorXd& scores) {
  std::vector<Index> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  if (scores.size() <= kMaxFitted) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return scores[a] > scores[b]; });
  std::vector<Index> chosen(order.begin(), order.begin() + kMaxFitted / 2);
  std::sort(order.begin() + kMaxFitted / 2, order.end());
  const Index rest = scores.size() - kMaxFitted / 2, wanted = kMaxFitted - kMaxFitted / 2;
  for (Index i = 0; i < wanted; ++i) chosen.push_back(order[kMaxFitted / 2 + i * rest / wanted]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

Theta FitTo(const std::vector<Index>& chosen, const Inputs& inputs, const VectorXd& y,
            const Theta& start) {
  if (static_cast<Index>(chosen.size()) == y.size()) return Fit(inputs, y, start).theta;
  return Fit({inputs.x(chosen, Eigen::all), inputs.u(chosen, Eigen::all)}, y(chosen), start).theta;
}

Theta StartOf(const Theta& last, const Inputs& inputs) {
  if (last.values.size() > 0) return last;
  return DefaultTheta(inputs.numeric(), inputs.categorical());
}

Posterior Condition(const Theta& theta, const Inputs& inputs, const VectorXd& y) {
  Posterior posterior(theta, inputs);
  posterior.SetTargets(y);
  return posterior;
}

void Put(std::string& text, double value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  text.append(bytes, sizeof bytes);
}

double Get(const std::string& text, size_t at) {
  double value = 0;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

// As a double of 48 whole bits, so that every field has the same form.
double Checksum(const std::string& text) { return static_cast<double>(Fingerprint(text) >> 16); }

}  // namespace

std::string SurrogateMemo::Serialize() const {
  std::string text(kMagic, sizeof kMagic);
  Put(text, static_cast<double>(fitted_at));
  Put(text, static_cast<double>(static_cast<int>(warp)));
  for (const Theta& theta : thetas) {
    Put(text, static_cast<double>(theta.values.size()));
    for (const double value : theta.values) Put(text, value);
  }
  Put(text, Checksum(text));
  return text;
}

SurrogateMemo SurrogateMemo::Parse(const std::string& text, int theta_size) {
  constexpr size_t kField = sizeof(double);
  if (text.size() < sizeof kMagic + kField || text.size() % kField != 0) return {};
  if (std::memcmp(text.data(), kMagic, sizeof kMagic) != 0) return {};
  const size_t end = text.size() - kField;
  if (Get(text, end) != Checksum(text.substr(0, end))) return {};
  SurrogateMemo memory;
  size_t at = sizeof kMagic;
  const auto next = [&] {
    const double value = at < end ? Get(text, at) : 0;
    at += kField;
    return value;
  };
  memory.fitted_at = static_cast<int64_t>(next());
  memory.warp = static_cast<WarpKind>(static_cast<int>(next()));
  for (Theta& theta : memory.thetas) {
    const auto size = static_cast<int>(next());
    if (size != 0 && size != theta_size) return {};  // of another space
    theta.values.resize(size);
    for (double& value : theta.values) value = next();
  }
  return at == end ? memory : SurrogateMemo();
}

int64_t LastFitCount(int64_t points) {
  if (points <= kEveryTime) return points;
  int64_t count = kEveryTime;
  for (int64_t next = count; next <= points; next = NextFit(next)) count = next;
  return count;
}

Surrogate Learn(const Inputs& inputs, const VectorXd& scores, SurrogateMemo& memory) {
  if (NeedsFit(inputs.rows(), memory)) return Refit(inputs, scores, memory);
  Warp warp(memory.warp, scores);
  Posterior posterior =
      Condition(memory.thetas[static_cast<int>(memory.warp)], inputs, warp.warped());
  return {std::move(warp), std::move(posterior)};
}

Surrogate Refit(const Inputs& inputs, const VectorXd& scores, SurrogateMemo& memory) {
  std::optional<Surrogate> best;
  double best_order = -1;
  const WarpKind last = memory.warp;
  const bool has_last = memory.fitted_at > 0;
  const std::vector<Index> chosen = ChooseForFit(scores);
  for (const WarpKind kind : kWarpKinds) {
    Warp warp(kind, scores);
    Theta& theta = memory.thetas[static_cast<int>(kind)];
    theta = FitTo(chosen, inputs, warp.warped(), StartOf(theta, inputs));
    Posterior posterior = Condition(theta, inputs, warp.warped());
    double order = Concordance(scores, posterior.LeaveOneOut());
    if (has_last && kind == last) order += kHysteresis;
    if (order <= best_order) continue;
    best_order = order;
    memory.warp = kind;
    best = Surrogate{std::move(warp), std::move(posterior)};
  }
  memory.fitted_at = inputs.rows();
  return *std::move(best);
}

Posterior LearnUnwarped(const Inputs& inputs, const VectorXd& y, SurrogateMemo& memory) {
  memory.warp = WarpKind::kNone;
  Theta& theta = memory.thetas[static_cast<int>(memory.warp)];
  if (NeedsFit(inputs.rows(), memory)) {
    theta = FitTo(ChooseForFit(-y.cwiseAbs()), inputs, y, StartOf(theta, inputs));
    memory.fitted_at = inputs.rows();
  }
  return Condition(theta, inputs, y);
}

Posterior LearnFeasibility(const Inputs& inputs, const VectorXd& labels) {
  Theta theta = DefaultTheta(inputs.numeric(), inputs.categorical());
  theta.values[theta.values.size() - 2] = std::log(kLabelNoise);
  return Condition(theta, inputs, labels);
}

namespace {

constexpr int64_t kShared = 64 << 20;

std::string BytesOf(const Eigen::MatrixXd& matrix) {
  return {reinterpret_cast<const char*>(matrix.data()), matrix.size() * sizeof(double)};
}

bool Same(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
}

}  // namespace

SurrogateCache& SurrogateCache::Shared() {
  static SurrogateCache cache(kShared);
  return cache;
}

bool SurrogateCache::Question::operator==(const Question& other) const {
  return memory == other.memory && Same(scores, other.scores) && Same(inputs.x, other.inputs.x) &&
         Same(inputs.u, other.inputs.u);
}

uint64_t SurrogateCache::DigestOf(const Question& question) {
  const std::string bytes = BytesOf(question.inputs.x) + BytesOf(question.inputs.u) +
                            BytesOf(question.scores) + question.memory;
  return Fingerprint(bytes);
}

SurrogateCache::Answer SurrogateCache::Learn(const Inputs& inputs, const Eigen::VectorXd& scores,
                                             const SurrogateMemo& memory) {
  Question question{inputs, scores, memory.Serialize()};
  const uint64_t digest = DigestOf(question);
  {
    const MutexLock lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found != by_digest_.end() && found->second->question == question) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().answer;
    }
  }
  SurrogateMemo after = memory;
  Surrogate surrogate = gp::Learn(inputs, scores, after);
  auto answer =
      std::make_shared<const Learned>(Learned{std::move(surrogate), after});  // shared: see Learn
  const int64_t n = inputs.rows(), columns = inputs.numeric() + inputs.categorical();
  const int64_t bytes = static_cast<int64_t>(sizeof(double)) * n * (n + 2 * columns + 8);
  // One that was cut short is not the answer to this question.
  if (!IsCancelled()) Insert({digest, std::move(question), answer, bytes});
  return answer;
}

void SurrogateCache::Insert(Entry entry) {
  const MutexLock lock(mutex_);
  const auto drop = [this](Entries::iterator old) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bytes_ -= old->bytes;
    by_digest_.erase(old->digest);
    entries_.erase(old);
  };
  const auto same = by_digest_.find(entry.digest);
  if (same != by_digest_.end()) drop(same->second);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_digest_[entries_.front().digest] = entries_.begin();
  while (bytes_ > capacity_) drop(std::prev(entries_.end()));
}

int64_t SurrogateCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

namespace {

constexpr double kSure = 2;  // deviations of the difference

}  // namespace

std::optional<Recommended> Recommend(const Surrogate& surrogate, const Eigen::VectorXd& scores) {
  const Posterior& posterior = surrogate.posterior;
  const Posterior::Prediction prediction = posterior.Predict(posterior.inputs());
  const auto mean = prediction.mean.col(0);
  Recommended found;
  scores.maxCoeff(&found.best);
  mean.maxCoeff(&found.point);
  const Eigen::Index b = found.best, r = found.point;
  const double together =
      prediction.cross.k(b, r) - prediction.solved.col(b).dot(prediction.solved.col(r));
  const double variance = prediction.variance[r] + prediction.variance[b] - 2 * together;
  if (!(mean[r] - mean[b] > kSure * std::sqrt(std::max(0.0, variance)))) return std::nullopt;
  const double deviation = std::sqrt(prediction.variance[r]);
  const Warp& warp = surrogate.warp;
  found.score = warp.Unwarp(mean[r]);
  found.deviation = (warp.Unwarp(mean[r] + deviation) - warp.Unwarp(mean[r] - deviation)) / 2;
  found.at_best = warp.Unwarp(mean[b]);
  return found;
}

}  // namespace shirabe::suggestion::gp
